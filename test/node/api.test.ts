// A kubelet whose pods come from an API server or a web server, and what the Pods API makes of them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  before37,
  createNode,
  expectVerdict,
  type Node,
  nodeName,
  only,
  podManifest,
  registered,
  since37,
  until,
} from "./node.ts";

const port = 8080;
const staticName = `default/static-${nodeName}`;
const plain = ["static-pods", "--expect", staticName];

// What an API server fills in, and a kubelet does not do without.
const defaulted = {
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  dnsPolicy: "Default",
  restartPolicy: "Always",
};

/** A pod as an API server has it. */
function apiPod(name: string, annotations: object = {}, spec: object = {}, metadata: object = {}): object {
  const manifest = podManifest(name, { spec: { nodeName, ...defaulted, ...spec } });
  return {
    ...manifest,
    metadata: {
      name,
      namespace: "default",
      uid: `uid-of-${name}`,
      resourceVersion: "1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      annotations,
      ...metadata,
    },
    status: { phase: "Pending" },
  };
}

const phase = async (node: Node, name: string) => (await node.pods()).get(`default/${name}`)?.phase;

describe("pods of an API server and of a URL", { concurrency: 3, ...only }, () => {
  test("a kubelet with an API server", async (t) => {
    const node = await createNode(t, { "static.yaml": podManifest("static") });
    await node.start({ apiPort: port });

    await t.test("not ready lasts until the API server knows the node, though it answers", since37, async () => {
      node.serveApi(port, {});
      await until("the kubelet to look for its node", () => node.log().includes('type="*v1.Node"'));
      await until("the API server to be found", () => /Caches populated.*\*v1\.Node/.test(node.log()));
      await expectVerdict(node, ["ready"], "WARNING", "Initializing", { meanwhile: [] });
    });

    node.serveApi(port, { nodes: registered });
    await expectVerdict(node, plain, "OK", "StaticPodsHealthy");
    const uid = (await node.pods()).get(staticName)!.uid;
    const mirror = {
      "kubernetes.io/config.source": "file",
      "kubernetes.io/config.hash": uid,
      "kubernetes.io/config.mirror": uid,
    };
    const pods = [
      apiPod("plain"),
      apiPod("rejected", {}, { nodeSelector: { "no-such-label": "x" } }),
      apiPod(`static-${nodeName}`, mirror),
    ];
    node.serveApi(port, { nodes: registered, pods });
    await until("the pods of the API server", async () => {
      return (await phase(node, "plain")) === "Running" && (await phase(node, "rejected")) === "Failed";
    });

    await t.test("pods of the API server are listed with source api, rejected ones too", async () => {
      const listed = await node.pods();
      for (const name of ["plain", "rejected"]) assert.equal(listed.get(`default/${name}`)?.source, "api");
    });

    await t.test("a mirror pod is not listed, the static pod is; its UID is NOT_FOUND", async () => {
      const listed = [...(await node.pods()).values()].filter(({ name }) => name === `static-${nodeName}`);
      assert.deepEqual(
        listed.map((pod) => [pod.uid, pod.source]),
        [[uid, "file"]],
      );
      assert.equal(await node.client().get(`uid-of-static-${nodeName}`), null);
    });

    await t.test("a pod of the API server that is being deleted is listed", async () => {
      const leaving = apiPod(
        "plain",
        {},
        {},
        { deletionTimestamp: "2026-01-02T00:00:00Z", deletionGracePeriodSeconds: 1 },
      );
      node.serveApi(port, { nodes: registered, pods: [leaving, ...pods.slice(1)] });
      const deletedMs = Date.parse("2026-01-02T00:00:00Z");
      await until("the deletion", async () => (await node.pods()).get("default/plain")?.deletedMs === deletedMs);
      // Its end, which waits for the API server, is not the end of its being listed.
      await until("its containers to end", async () => !(await node.pods()).get("default/plain")!.ready);
      await expectVerdict(node, plain, "OK", "StaticPodsHealthy");
      await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
    });

    await t.test("static-pods counts static pods only", async () => {
      await expectVerdict(node, ["static-pods", "--expect-count", "1:1"], "OK", "StaticPodsHealthy");
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", { says: /^1 of 1 / });
    });

    await t.test("an outage that begins later does not undo readiness", async () => {
      await node.stopApi();
      const before = node.log().length;
      await until("the kubelet to miss its API server", () => node.log().slice(before).includes("connection refused"));
      await expectVerdict(node, ["ready"], "OK", "Ready", { meanwhile: [] });
      await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
      assert.equal((await node.pods()).size, 3);
    });
  });

  test("a kubelet with a staticPodURL", async (t) => {
    const node = await createNode(t, { "static.yaml": podManifest("static") });
    const list = { apiVersion: "v1", kind: "PodList", items: [podManifest("one"), podManifest("two")] };
    await node.start({ config: { staticPodURL: `http://127.0.0.1:${port}/manifest` } });

    await expectVerdict(node, ["manifests"], "OK", "ManifestsClean", { says: /1 pod of as many/ });

    await t.test("not ready lasts until the URL answers", since37, async () => {
      await expectVerdict(node, ["ready"], "WARNING", "Initializing", { meanwhile: [] });
    });
    await t.test("1.36 lists what it has while the URL does not answer", before37, async () => {
      await expectVerdict(node, plain, "OK", "StaticPodsHealthy");
    });

    await t.test("the pods of a PodList are listed with source http, and are not held to be unexpected", async () => {
      node.serveApi(port, { manifest: JSON.stringify(list) });
      await until("the pods of the list", async () => (await phase(node, `two-${nodeName}`)) === "Running");
      assert.equal((await node.pods()).get(`default/one-${nodeName}`)?.source, "http");
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
      await expectVerdict(node, ["static-pods", "--expect-count", "3:3"], "OK", "StaticPodsHealthy");
    });
    await t.test("a single Pod takes the place of a list", async () => {
      node.serveApi(port, { manifest: JSON.stringify(podManifest("single")) });
      await until("the single pod", async () => (await phase(node, `single-${nodeName}`)) === "Running");
      await until("the end of the list's", async () => !(await node.pods()).has(`default/one-${nodeName}`));
    });
  });
});
