import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checks } from "../../probes/list.ts";
import {
  findingsOf,
  inFolder,
  manifestText,
  reportOf,
  runWords,
  verdict,
  withSimulator,
  writeFiles,
} from "./support.ts";

test("the order in which all runs them: manifests before what goes by them, and what uses up the rate limit last", () => {
  const names = checks.map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => name !== "watch"),
    ["socket", "ready", "manifests", "static-pods", "rate-limit"],
  );
  assert.equal(names.at(-1), "rate-limit");
});

const secret = {
  ...JSON.parse(manifestText("secretive")),
  spec: { containers: [{ name: "main", image: "i" }], imagePullSecrets: [{ name: "key" }] },
};

describe("all: one cause, one code", () => {
  test("a refused manifest is told by manifests, and static-pods refers to it", () =>
    withSimulator("healthy", async ({ socket, manifests }, folder) => {
      const path = writeFiles(`${folder}/m`, {
        ...manifests,
        "secretive.yaml": JSON.stringify(secret),
        broken: "a: [",
      });
      const words = ["--socket", socket, "--manifests", path];
      const all = await runWords(["all", ...words]);
      assert.equal(verdict(all), "CRITICAL ManifestRefused");
      assert.deepEqual(findingsOf(reportOf(all, "manifests")), [
        "WARNING ManifestIgnored broken",
        "CRITICAL ManifestRefused secretive.yaml",
      ]);
      const check = reportOf(all, "static-pods");
      assert.equal(verdict(check), "OK StaticPodsHealthy");
      assert.deepEqual(check.findings, []);
      assert.ok(check.details.includes("secretive.yaml: ManifestRefused, see manifests"), check.details.join("\n"));
      // By itself it says so.
      const alone = reportOf(await runWords(["static-pods", ...words]), "static-pods");
      assert.deepEqual(findingsOf(alone), [
        "CRITICAL ManifestRefused secretive.yaml",
        "WARNING ManifestIgnored broken",
      ]);
    }));

  test("manifests that cannot be read skip static-pods", () =>
    withSimulator("healthy", async ({ socket }, folder) => {
      writeFiles(folder, { file: "" });
      const all = await runWords(["all", "--socket", socket, "--manifests", `${folder}/file/m`]);
      assert.equal(verdict(all), "UNKNOWN ManifestsUnreadable");
      assert.deepEqual(reportOf(all, "static-pods").skipped, { cause: "ManifestsUnreadable" });
    }));

  // a15: a worker has no manifests, and that is well.
  test("no folder of manifests, and everything else fine: OK", () =>
    withSimulator(
      "healthy",
      async ({ socket }, folder) => {
        const all = await runWords(["all", "--socket", socket, "--manifests", `${folder}/none`]);
        assert.equal(verdict(all), "OK SocketSecure");
        assert.match(reportOf(all, "manifests").summary, /does not exist/);
      },
      { staticPods: 0 },
    ));

  test("the manifests are judged though nobody is on the socket", () =>
    withSimulator("dead", async ({ socket }, folder) => {
      const path = writeFiles(`${folder}/m`, { "a.yaml": manifestText("a"), "a.yaml.bak": manifestText("a") });
      const all = await runWords(["all", "--socket", socket, "--manifests", path]);
      assert.equal(verdict(all), "CRITICAL SocketDead");
      assert.deepEqual(findingsOf(reportOf(all, "manifests")), ["WARNING ManifestShadowed a.yaml"]);
      assert.equal(all.tokensSpent, 0);
    }));

  // a13: a kubelet before 1.37 runs what the one of 1.37 refuses.
  test("a refused manifest whose pod runs is a WARNING", () =>
    withSimulator("healthy", async ({ socket, manifests }, folder) => {
      const [file, text] = Object.entries(manifests)[0]!;
      const refused = JSON.parse(text);
      refused.spec.imagePullSecrets = [{ name: "key" }];
      const path = writeFiles(`${folder}/m`, { ...manifests, [file]: JSON.stringify(refused) });
      const all = await runWords(["all", "--socket", socket, "--manifests", path]);
      assert.equal(verdict(all), "WARNING ManifestRefused");
      assert.match(all.summary, /kube-apiserver-node-1 runs, and a kubelet of 1\.37 /);
      assert.equal(verdict(reportOf(all, "static-pods")), "OK StaticPodsHealthy");
    }));
});

test("the manifests of another node than this one are judged without any kubelet", () =>
  inFolder(async (folder) => {
    const path = writeFiles(folder, { "a.yaml": manifestText("a") });
    const report = await runWords([
      "manifests",
      "--manifests",
      path,
      "--node-name",
      "CP-7",
      "--socket",
      "/nonexistent/s",
    ]);
    assert.equal(verdict(report), "OK ManifestsClean");
    assert.deepEqual(reportOf(report, "manifests").data.files, [
      { file: "a.yaml", verdict: "pod", pod: "kube-system/a-cp-7", reason: "" },
    ]);
  }));
