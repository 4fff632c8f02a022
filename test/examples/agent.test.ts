// The agent of examples/ follows a kubelet over its restarts, and its exec probes say the same as its file.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import { readManifests } from "../../lib/manifests.ts";
import { baseEnvironment, cleanUp, folder, needs, probe, root, startKubelet, until } from "../support.ts";

const pod = parse(readFileSync(join(root, "examples/agent.yaml"), "utf8"));
const [container] = pod.spec.containers;

/** A kubelet's pods, so many in each phase. */
function podsFile(home: string, name: string, phases: Readonly<Record<string, number>>): string {
  const pods = Object.entries(phases).flatMap(([phase, count]) =>
    Array.from({ length: count }, (_, index) => ({ name: `${name}-${phase}-${index}`.toLowerCase(), phase })),
  );
  const path = join(home, `${name}.json`);
  writeFileSync(path, JSON.stringify({ pods }));
  return path;
}

function startAgent(t: TestContext, socket: string, textfile: string) {
  const [, script] = container.command as string[];
  assert.equal(script, "/examples/agent.ts");
  const child = spawn(process.execPath, [join(root, script!), "--socket", socket, "--textfile", textfile], {
    env: { ...baseEnvironment, NODE_NO_WARNINGS: "1" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  cleanUp(t, () => child.kill("SIGKILL"));
  return { stop: (signal: NodeJS.Signals) => child.kill(signal), ended, stderr: () => stderr };
}

function readFile(path: string): Record<string, number> {
  if (!existsSync(path)) return {};
  const lines = readFileSync(path, "utf8").trim().split("\n");
  return Object.fromEntries(
    lines
      .filter((line) => !line.startsWith("#"))
      .map((line) => line.split(" "))
      .map(([name, value]) => [name, Number(value)]),
  );
}

test("an agent follows a kubelet that is killed and comes back with other pods", { skip: needs.kubelet }, async (t) => {
  const home = folder(t);
  const socket = join(home, "pods-api", "pods-api.sock");
  const textfile = join(home, "pods.prom");
  const probes = async () => {
    const statuses: (number | null)[] = [];
    for (const name of ["startupProbe", "readinessProbe", "livenessProbe"]) {
      const [program, ...args] = container[name].exec.command;
      assert.equal(program, "/kubelet-probe");
      statuses.push(
        (await probe(args, { env: { KUBELET_PROBE_SOCKET: socket, KUBELET_PROBE_TIMEOUT: "20s" } })).status,
      );
    }
    return statuses;
  };
  const expectCounts = (running: number, failed: number) =>
    until(`${running} running and ${failed} failed pods`, () => {
      const values = readFile(textfile);
      return (
        values.agent_up_to_date === 1 &&
        values['agent_pods{phase="Running"}'] === running &&
        values['agent_pods{phase="Failed"}'] === failed &&
        values['agent_pods{phase="Pending"}'] === 0
      );
    });

  // Before there is a kubelet: no file, for nothing is known.
  const agent = startAgent(t, socket, textfile);
  await until("a first fault", () => agent.stderr().includes("SocketMissing"));
  assert.ok(!existsSync(textfile));
  assert.deepEqual(await probes(), [1, 1, 1]);

  const first = await startKubelet(t, ["--pods-json", podsFile(home, "first", { Running: 5, Failed: 2 })], socket);
  await expectCounts(5, 2);
  assert.deepEqual(await probes(), [0, 0, 0]);

  await first.stop();
  await until("a file that says it is not up to date", () => readFile(textfile).agent_up_to_date === 0);
  // What was known stays: a kubelet that is away is no node without pods.
  assert.equal(readFile(textfile)['agent_pods{phase="Running"}'], 5);
  assert.deepEqual(await probes(), [1, 1, 1]);

  const initializing = await startKubelet(t, ["--ready=false"], socket);
  await until("a kubelet that is initializing", () => agent.stderr().includes("Initializing"));
  assert.equal(readFile(textfile)['agent_pods{phase="Running"}'], 5);
  assert.deepEqual(await probes(), [1, 1, 0]);
  await initializing.stop("SIGTERM");

  await startKubelet(t, ["--pods-json", podsFile(home, "second", { Running: 3, Failed: 1 })], socket);
  await expectCounts(3, 1);
  assert.deepEqual(await probes(), [0, 0, 0]);

  agent.stop("SIGTERM");
  assert.equal(await agent.ended, 0);
});

test("its manifest is one that the kubelet takes", async (t) => {
  const home = folder(t);
  copyFileSync(join(root, "examples/agent.yaml"), join(home, "agent.yaml"));
  const { files, pods } = await readManifests(home, "node-1");
  assert.deepEqual(
    files.map(({ verdict, reason }) => [verdict, reason]),
    [["pod", ""]],
  );
  assert.equal(pods[0]!.name, "pod-counter-node-1");
});
