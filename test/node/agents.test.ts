// Three of the agent of examples/ on one node, each a process with a file and exec probes of its own.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Agent, execProbes, readTextfile, startAgent } from "../agent.ts";
import { folder } from "../support.ts";
import { controlPlane, createNode, type Node, nodeName, only, podManifest, since37, until } from "./node.ts";

const manifests = {
  ...Object.fromEntries(controlPlane.map((name) => [`${name}.yaml`, podManifest(name, { namespace: "kube-system" })])),
  "once.yaml": podManifest("once", { spec: { restartPolicy: "Never" } }),
};

const phaseOf = (name: string) => `agent_pods{phase="${name}"}`;
const passes = { startup: 0, readiness: 0, liveness: 0 };
const fails = { startup: 1, readiness: 1, liveness: 1 };

/** Waits until every agent has so many pods in these phases and none in others. */
async function expectCounts(agents: readonly Agent[], counts: Readonly<Record<string, number>>): Promise<void> {
  for (const { textfile } of agents) {
    await until(`${textfile} to have ${JSON.stringify(counts)}`, () => {
      const values = readTextfile(textfile);
      return (
        values.agent_up_to_date === 1 &&
        ["Pending", "Running", "Succeeded", "Failed", "Unknown"].every(
          (phase) => values[phaseOf(phase)] === (counts[phase] ?? 0),
        )
      );
    });
  }
}

/** The same, and a listing has them too. */
async function expectAgreement(node: Node, agents: readonly Agent[], counts: Readonly<Record<string, number>>) {
  await expectCounts(agents, counts);
  const listed: Record<string, number> = {};
  for (const { phase } of (await node.pods()).values()) listed[phase] = (listed[phase] ?? 0) + 1;
  assert.deepEqual(listed, counts);
}

/** Every agent's probes, run at once. */
const probesOf = (node: Node, agents: readonly Agent[]) => Promise.all(agents.map(() => execProbes(node.socket)));

describe("three agents of examples/", only, () => {
  test("on one node", async (t) => {
    const home = folder(t);
    const node = await createNode(t, manifests);
    const agents = [1, 2, 3].map((i) => startAgent(t, node.socket, join(home, `agent-${i}.prom`)));

    await t.test("before the first start none has a file, and their probes fail", async () => {
      for (const agent of agents) await until("a first fault", () => agent.stderr().includes("SocketMissing"));
      for (const { textfile } of agents) assert.equal(existsSync(textfile), false);
      assert.deepEqual(await probesOf(node, agents), [fails, fails, fails]);
    });

    await t.test("each counts what ListPods returns, and their probes pass", async () => {
      await node.start();
      await expectAgreement(node, agents, { Running: 5 });
      assert.deepEqual(await probesOf(node, agents), [passes, passes, passes]);
    });

    await t.test("a pod that comes, one that goes and one that fails is counted by each", async () => {
      node.write("vip.yaml", podManifest("vip", { namespace: "kube-system" }));
      node.write("spare.yaml", podManifest("spare"));
      await expectAgreement(node, agents, { Running: 7 });
      assert.equal(await node.runtime(`exit default/once-${nodeName} 7`), 1);
      await expectAgreement(node, agents, { Running: 6, Failed: 1 });
      node.remove("spare.yaml");
      await expectAgreement(node, agents, { Running: 5, Failed: 1 });
    });

    await t.test(
      "a client that drains the limiter costs none its view, and no probe but startup its pass",
      async () => {
        await node.runtime(`drain ${node.socket}`);
        try {
          node.write("spare.yaml", podManifest("spare"));
          await expectCounts(agents, { Running: 6, Failed: 1 });
          for (const { readiness, liveness } of await probesOf(node, agents)) {
            assert.deepEqual({ readiness, liveness }, { readiness: 0, liveness: 0 });
          }
        } finally {
          await node.runtime(`rest ${node.socket}`);
        }
        await expectAgreement(node, agents, { Running: 6, Failed: 1 });
      },
    );

    await t.test("the kubelet is killed: each keeps its counts and says that they are old", async () => {
      await node.stop("SIGKILL");
      for (const { textfile } of agents) {
        await until("counts that are old", () => readTextfile(textfile).agent_up_to_date === 0);
        const values = readTextfile(textfile);
        assert.deepEqual([values[phaseOf("Running")], values[phaseOf("Failed")]], [6, 1]);
      }
      assert.deepEqual(await probesOf(node, agents), [fails, fails, fails]);
    });

    await t.test("the next one is initializing: so do they then, and only liveness passes", since37, async () => {
      await node.start({ apiPort: 8080 });
      for (const agent of agents) {
        await until("an agent that is told so", () => agent.stderr().includes("Initializing"));
        assert.equal(readTextfile(agent.textfile)[phaseOf("Running")], 6);
      }
      const stays = { startup: 1, readiness: 1, liveness: 0 };
      assert.deepEqual(await probesOf(node, agents), [stays, stays, stays]);
      await node.stop("SIGTERM");
    });

    await t.test("the kubelet is back with other pods: each counts what ListPods returns", async () => {
      node.remove("vip.yaml");
      node.remove("once.yaml");
      await node.start();
      await expectAgreement(node, agents, { Running: 5 });
      assert.deepEqual(await probesOf(node, agents), [passes, passes, passes]);
    });

    await t.test("SIGTERM ends each of them well", async () => {
      for (const agent of agents) agent.stop("SIGTERM");
      assert.deepEqual(await Promise.all(agents.map(({ ended }) => ended)), [0, 0, 0]);
    });
  });
});
