// `static-pods` against the kubelet's own server: what a watch says is what a listing says, and what a changed manifest
// does to a pod that runs.

import assert from "node:assert/strict";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { age, checkOf, folder, metricOf, needs, probeJson, root, startKubelet, until } from "../support.ts";

const cases = (id: string) => join(root, "test", "cases", id, "manifests");

describe("--source watch gives what a listing gives, at no token", { skip: needs.kubelet }, () => {
  const rows: readonly (readonly [name: string, server: readonly string[], words: readonly string[]])[] = [
    ["generated pods", ["--pods", "20", "--static", "5", "--mirrors"], ["--expect-count", "5:5"]],
    ["static pods that have failed", ["--static", "3", "--phase", "Failed"], ["--expect-count", "3:3"]],
    ["static pods that are not ready", ["--static", "3", "--pod-ready=false"], ["--expect-count", "3:3"]],
    ["static pods without a status", ["--static", "2", "--no-status"], ["--expect-count", "3:"]],
    ["no pods", [], ["--expect-count", "0"]],
    ...["a01", "a05", "a11", "a13"].map(
      (id) =>
        [`the manifests of ${id}`, ["--manifests", cases(id), "--node", "cp-1"], ["--manifests", cases(id)]] as const,
    ),
    ["other manifests than it reads", ["--manifests", cases("a17"), "--node", "cp-1"], ["--manifests", cases("a01")]],
  ];
  for (const [name, server, words] of rows) {
    test(name, async (t) => {
      const { socket } = await startKubelet(t, server);
      age(socket, 3600);
      const run = (source: string) =>
        probeJson(["static-pods", "--socket", socket, "--node-name", "cp-1", "--source", source, ...words]);
      // A manifest is listed a moment after it is read.
      const list = await until("a listing that stays", async () => {
        const [one, other] = [await run("list"), await run("list")];
        return metricOf(one, "static-pods", "present") === metricOf(other, "static-pods", "present") && other;
      });
      const watch = await run("watch");
      const without = (json: typeof list) =>
        JSON.parse(JSON.stringify(checkOf(json, "static-pods")).replace(/\d+ (m?s|min)\b/g, "N"));
      assert.deepEqual(without(watch), without(list));
      assert.deepEqual([list.tokensSpent, watch.tokensSpent], [1, 0]);
    });
  }

  test("not ready: unavailable by either way, and never empty", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "2", "--ready=false"]);
    for (const source of ["list", "watch"]) {
      const run = await probeJson(["static-pods", "--socket", socket, "--expect-count", "1:", "--source", source]);
      assert.deepEqual([run.code, run.ended.status], ["InventoryUnavailable", 3]);
      assert.equal(checkOf(run, "static-pods").findings[0]?.cause, "Initializing");
    }
  });
});

const manifest = (image: string) => `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: kube-system}
spec:
  containers: [{name: web, image: "${image}"}]
`;

describe("a changed manifest", { skip: needs.kubelet }, () => {
  test("is taken up, and is not stale; one that another folder has is, once it is old enough", async (t) => {
    const home = folder(t);
    const [theirs, ours] = [join(home, "theirs"), join(home, "ours")];
    mkdirSync(theirs);
    mkdirSync(ours);
    const write = (path: string, image: string) => {
      writeFileSync(join(path, ".new"), manifest(image));
      renameSync(join(path, ".new"), join(path, "web.yaml"));
    };
    write(theirs, "registry.test/web:1");
    write(ours, "registry.test/web:2");
    const { socket } = await startKubelet(t, ["--manifests", theirs, "--node", "cp-1", "--file-check", "100ms"]);
    age(socket, 3600);
    const run = (path: string) =>
      probeJson(["static-pods", "--socket", socket, "--manifests", path, "--node-name", "cp-1"]);
    await until("the pod", async () => (await run(theirs)).code === "StaticPodsHealthy");
    write(theirs, "registry.test/web:3");
    await until("the new image", async () => {
      const json = await run(theirs);
      // Until it is taken up, the change is too young to be held against the kubelet.
      assert.equal(json.code, "StaticPodsHealthy", json.summary);
      return metricOf(json, "static-pods", "present") === 1;
    });
    // Nobody can set ctime, which is now: a change of this moment proves nothing.
    assert.equal((await run(ours)).code, "StaticPodsHealthy");
  });
});
