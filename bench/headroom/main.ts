// How far the estimate of `rate-limit --samples` is off: `node bench/headroom/main.ts` simulates, `--real` asks the kubelet's
// own server, with agents that call it and a bucket that is fed with the moments of their calls.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createPodsClient, type PodsClient } from "../../lib/client.ts";
import { Fault } from "../../lib/fault.ts";
import { takeSamples } from "../../lib/headroom.ts";
import { createRandom } from "../../test/soak/soak.ts";
import { type Agent, agentsOf, createBucket, judge, type Run, simulateRun, summarize } from "./model.ts";

const { values } = parseArgs({
  options: {
    real: { type: "boolean", default: false },
    runs: { type: "string", default: "20" },
    samples: { type: "string", default: "20" },
    interval: { type: "string", default: "400" },
    burst: { type: "string", default: "3" },
  },
});
const sampling = { samples: Number(values.samples), interval: Number(values.interval), burst: Number(values.burst) };
const sizes = values.real ? [1, 3, 5, 7, 10] : [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

const all: Run[] = [];
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
console.log("| agents | runs | refused share, true | estimated | off by | interval wide | true one within | tokens |");
console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
for (const agents of sizes) {
  const runs: Run[] = [];
  for (let run = 0; run < Number(values.runs); run++) {
    const createAgain = () => createRandom(agents * 1000 + run);
    runs.push(values.real ? await realRun(agents, createAgain()) : simulateRun(agents, sampling, createAgain));
  }
  all.push(...runs);
  const line = summarize(runs);
  const cells = [line.agents, line.runs, ...[line.truth, line.estimate, line.off, line.width].map(percent)];
  console.log(`| ${[...cells, `${line.within} of ${line.runs}`, line.tokens.toFixed(0)].join(" | ")} |`);
}
console.log(`\nwithin: ${all.filter(({ isWithin }) => isWithin).length} of ${all.length}`);

/** The agents call the kubelet's own server for as long as the probe samples it. */
async function realRun(count: number, random: () => number): Promise<Run> {
  const home = mkdtempSync(join(tmpdir(), "kp-bench-"));
  const socket = join(home, "s.sock");
  const server = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "dist", "kubelet-server");
  const kubelet = spawn(server, ["--socket", socket, "--pods", "1"], { stdio: "ignore" });
  const clients: PodsClient[] = [];
  const connect = async () => {
    const client = createPodsClient({ socket, timeoutMs: 10_000 });
    clients.push(client);
    await client.waitUntilReady(AbortSignal.timeout(20_000));
    return client;
  };
  try {
    const probe = await connect();
    const agents = await Promise.all(
      agentsOf(count, random).map(async (agent) => ({ agent, client: await connect() })),
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    const calls: { atMs: number; count: number }[] = [];
    const startMs = performance.now();
    let isOver = false;
    const calling = agents.map(({ agent, client }) => call(agent, client, startMs, calls, () => isOver));
    const tokensBefore = probe.tokensSpent;
    const samples = await takeSamples(sampling, (many) => admittedOf(probe, many));
    const lengthMs = performance.now() - startMs;
    const tokens = probe.tokensSpent - tokensBefore;
    isOver = true;
    await Promise.all(calling);
    const bucket = createBucket();
    for (const { atMs, count } of calls.sort((a, b) => a.atMs - b.atMs)) {
      if (atMs >= lengthMs) break;
      bucket.advance(atMs);
      for (let each = 0; each < count; each++) bucket.allow();
    }
    bucket.advance(lengthMs);
    return judge(count, bucket.emptyMs / lengthMs, samples, sampling.burst, tokens);
  } finally {
    for (const client of clients) client.close();
    kubelet.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true });
  }
}

async function call(
  agent: Agent,
  client: PodsClient,
  startMs: number,
  calls: { atMs: number; count: number }[],
  isOver: () => boolean,
): Promise<void> {
  for (let nextMs = agent.firstMs; !isOver(); ) {
    const waitMs = startMs + nextMs - performance.now();
    if (waitMs > 100) await new Promise((resolve) => setTimeout(resolve, 100));
    else {
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      const beforeMs = performance.now();
      const admitted = await admittedOf(client, agent.atOnce);
      calls.push({ atMs: (beforeMs + performance.now()) / 2 - startMs, count: agent.atOnce });
      nextMs = Math.max(agent.next(nextMs, admitted === agent.atOnce), performance.now() - startMs);
    }
  }
}

async function admittedOf(client: PodsClient, count: number): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: count }, async () => {
      try {
        await client.get("no-such-uid");
        return true;
      } catch (error) {
        if (error instanceof Fault && error.code === "RateLimited") return false;
        throw error;
      }
    }),
  );
  return answers.filter(Boolean).length;
}
