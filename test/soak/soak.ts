// Follows the kubelet's own server through restarts and drops, and holds the inventory against its listings.

import { type ChildProcess, spawn } from "node:child_process";
import { lstatSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPodsClient } from "../../lib/client.ts";
import type { Fault } from "../../lib/fault.ts";

/** What came of it. */
export interface SoakReport {
  readonly rounds: number;
  /** Kubelets that were killed, and that were told to end: those end each watch with "watch client channel closed". */
  killed: number;
  ended: number;
  /** Connections that were cut under a kubelet that went on. */
  cut: number;
  /** Pods that were added, changed, removed, or ended and kept listed, while the inventory was followed or cut off. */
  changes: number;
  /** What the inventory told. */
  told: number;
  resyncs: number;
  tokens: number;
  readonly faults: Record<string, number>;
  /** Rounds after which a pod that was listed was missing, or one that was not was there, for longer than the bound. */
  readonly lost: string[];
  readonly phantom: string[];
  /** Times that the inventory was told to be empty while the kubelet had pods. */
  empty: number;
  /** The longest that the inventory took to be the listing's after a round, in ms. */
  slowestMs: number;
  seconds: number;
}

const boundMs = 20_000;

/** Numbers from 0 to below 1 that a seed decides (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param server Path of the kubelet's own server. */
export async function soak(
  server: string,
  {
    rounds,
    seed,
    progress = () => {},
  }: { rounds: number; seed: number; progress?: (report: SoakReport, at: number) => void },
): Promise<SoakReport> {
  const random = createRandom(seed);
  const home = mkdtempSync(join(tmpdir(), "kp-soak-"));
  const paths = { socket: join(home, "k", "s.sock"), control: join(home, "c.sock"), front: join(home, "f.sock") };
  const report: SoakReport = {
    rounds,
    killed: 0,
    ended: 0,
    cut: 0,
    changes: 0,
    told: 0,
    resyncs: 0,
    tokens: 0,
    faults: {},
    lost: [],
    phantom: [],
    empty: 0,
    slowestMs: 0,
    seconds: 0,
  };
  const startMs = performance.now();
  // The connections of the inventory go through here, where they can be cut.
  const cuttable = new Set<Socket>();
  const front = createServer((near) => {
    const far = connect({ path: paths.socket });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      cuttable.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        cuttable.delete(one);
        other.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => front.listen(paths.front, resolve));

  let kubelet: ChildProcess | undefined;
  const referee = createPodsClient({ socket: paths.socket, timeoutMs: boundMs });
  const client = createPodsClient({ socket: paths.front, timeoutMs: boundMs });
  const stop = new AbortController();
  let pods: ReadonlyMap<string, { readonly name: string; readonly phase: string }> = new Map();
  const onFault = ({ code }: Fault) => {
    report.faults[code] = (report.faults[code] ?? 0) + 1;
  };
  const following = (async () => {
    const options = {
      fields: ["name", "phase"] as const,
      backoff: { firstMs: 5, mostMs: 40 },
      settleMs: 20,
      relistMs: 500,
      onFault,
    };
    for await (const change of client.inventory(stop.signal, options)) {
      pods = change.pods;
      report.told++;
      if (change.resynced) report.resyncs++;
      // A kubelet of this test has a pod at all times.
      if (change.pods.size === 0) report.empty++;
    }
  })();
  let failure: unknown;
  following.catch((error) => {
    failure = error;
  });

  async function start(): Promise<void> {
    const count = 1 + Math.floor(random() * 40);
    const own = Array.from({ length: count }, (_, index) => ({
      name: `pod-${Math.floor(random() * 1e9)}-${index}`,
      uid: `uid-${Math.floor(random() * 1e9)}-${index}`,
      phase: random() < 0.2 ? "Pending" : "Running",
    }));
    const file = join(home, "pods.json");
    writeFileSync(file, JSON.stringify({ pods: own }));
    const before = birth(paths.socket);
    // Not ready at first, as a kubelet is: a listing is refused then, and is no empty one.
    const args = ["--socket", paths.socket, "--control", paths.control, "--pods-json", file];
    rmSync(paths.control, { force: true });
    kubelet = spawn(server, [...args, ...(random() < 0.5 ? ["--ready-after", "50ms"] : [])], { stdio: "ignore" });
    const isNew = () => birth(paths.socket) !== "" && birth(paths.socket) !== before;
    await until("a kubelet", () => isNew() && birth(paths.control) !== "");
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ended = new Promise((resolve) => kubelet!.once("close", resolve));
    kubelet!.kill(signal);
    await ended;
  }

  function control(method: string, path: string, body = ""): Promise<string> {
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: paths.control, method, path }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (piece) => {
          text += piece;
        });
        answer.on("end", () => resolve(text.trim()));
      });
      asked.once("error", reject);
      asked.end(body);
    });
  }

  async function listed(): Promise<Map<string, string>> {
    for (;;) {
      try {
        const { pods } = await referee.list({ fields: ["uid", "phase"] });
        return new Map(pods.map(({ uid, phase }) => [uid, phase]));
      } catch (error) {
        const { code } = error as Fault;
        if (code !== "Initializing" && code !== "RateLimited" && code !== "ConnectionLost") throw error;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  /** Changes some pods, and leaves at least one. */
  async function change(): Promise<void> {
    const uids = [...(await listed()).keys()];
    for (let left = Math.floor(random() * 5); left > 0; left--) {
      report.changes++;
      const at = Math.floor(random() * uids.length);
      const kind = random();
      if (kind < 0.4 || uids.length < 3) {
        uids.push(await control("POST", "/pods", JSON.stringify({ name: `new-${Math.floor(random() * 1e9)}` })));
      } else if (kind < 0.6) await control("PUT", `/pods/${uids[at]}/status`, JSON.stringify({ phase: "Pending" }));
      else if (kind < 0.7) await control("DELETE", `/pods/${uids[at]}?keep=true`);
      else await control("DELETE", `/pods/${uids.splice(at, 1)[0]}`);
    }
  }

  /** Waits until the inventory is what the kubelet lists, and reports what it is not. */
  async function agree(when: string): Promise<void> {
    const sinceMs = performance.now();
    for (;;) {
      if (failure !== undefined) throw failure;
      const truth = await listed();
      const lost = [...truth].filter(([uid, phase]) => pods.get(uid)?.phase !== phase);
      const phantom = [...pods.keys()].filter((uid) => !truth.has(uid));
      const isOver = performance.now() - sinceMs > boundMs;
      if (isOver) {
        report.lost.push(...lost.map(([uid]) => `${when}: ${uid}`));
        report.phantom.push(...phantom.map((uid) => `${when}: ${uid}`));
      }
      if (isOver || lost.length + phantom.length === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    report.slowestMs = Math.max(report.slowestMs, performance.now() - sinceMs);
  }

  try {
    await start();
    for (let round = 0; round < rounds; round++) {
      const kind = random();
      if (kind < 0.35) {
        report.killed++;
        await end("SIGKILL");
        await start();
      } else if (kind < 0.7) {
        report.ended++;
        await end("SIGTERM");
        await start();
      } else {
        report.cut++;
        for (const socket of cuttable) socket.destroy();
      }
      // While the inventory is cut off, and once it follows again.
      for (const when of ["before", "after"]) {
        await change();
        await agree(`round ${round}, ${when} it follows again`);
      }
      report.tokens = client.tokensSpent;
      report.seconds = (performance.now() - startMs) / 1000;
      progress(report, round + 1);
    }
    return report;
  } finally {
    stop.abort();
    await following.catch(() => {});
    client.close();
    referee.close();
    kubelet?.kill("SIGKILL");
    for (const socket of cuttable) socket.destroy();
    await new Promise((resolve) => front.close(resolve));
    rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  }
}

function birth(path: string): string {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${stats.ino} ${stats.mtimeMs}`;
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const endMs = performance.now() + boundMs;
  while (!isSo()) {
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
