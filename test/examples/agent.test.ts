// The agent of examples/ follows a kubelet over its restarts, and its exec probes say the same as its file.

import assert from "node:assert/strict";
import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readManifests } from "../../lib/manifests.ts";
import { execProbes, readTextfile, startAgent } from "../agent.ts";
import { folder, needs, root, startKubelet, until } from "../support.ts";

/** A kubelet's pods, so many in each phase. */
function podsFile(home: string, name: string, phases: Readonly<Record<string, number>>): string {
  const pods = Object.entries(phases).flatMap(([phase, count]) =>
    Array.from({ length: count }, (_, index) => ({ name: `${name}-${phase}-${index}`.toLowerCase(), phase })),
  );
  const path = join(home, `${name}.json`);
  writeFileSync(path, JSON.stringify({ pods }));
  return path;
}

test("an agent follows a kubelet that is killed and comes back with other pods", { skip: needs.kubelet }, async (t) => {
  const home = folder(t);
  const socket = join(home, "pods-api", "pods-api.sock");
  const textfile = join(home, "pods.prom");
  const expectCounts = (running: number, failed: number) =>
    until(`${running} running and ${failed} failed pods`, () => {
      const values = readTextfile(textfile);
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
  assert.deepEqual(await execProbes(socket), { startup: 1, readiness: 1, liveness: 1 });

  const first = await startKubelet(t, ["--pods-json", podsFile(home, "first", { Running: 5, Failed: 2 })], socket);
  await expectCounts(5, 2);
  assert.deepEqual(await execProbes(socket), { startup: 0, readiness: 0, liveness: 0 });

  await first.stop();
  await until("a file that says it is not up to date", () => readTextfile(textfile).agent_up_to_date === 0);
  // What was known stays: a kubelet that is away is no node without pods.
  assert.equal(readTextfile(textfile)['agent_pods{phase="Running"}'], 5);
  assert.deepEqual(await execProbes(socket), { startup: 1, readiness: 1, liveness: 1 });

  const initializing = await startKubelet(t, ["--ready=false"], socket);
  await until("a kubelet that is initializing", () => agent.stderr().includes("Initializing"));
  assert.equal(readTextfile(textfile)['agent_pods{phase="Running"}'], 5);
  assert.deepEqual(await execProbes(socket), { startup: 1, readiness: 1, liveness: 0 });
  await initializing.stop("SIGTERM");

  await startKubelet(t, ["--pods-json", podsFile(home, "second", { Running: 3, Failed: 1 })], socket);
  await expectCounts(3, 1);
  assert.deepEqual(await execProbes(socket), { startup: 0, readiness: 0, liveness: 0 });

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
