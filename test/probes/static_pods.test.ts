import assert from "node:assert/strict";
import { utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Outcome } from "../../lib/check.ts";
import { Fault } from "../../lib/fault.ts";
import { scenarios } from "../../lib/simulator.ts";
import { staticPods } from "../../probes/static_pods.ts";
import {
  type FakeKubelet,
  fakeContext,
  inFolder,
  manifestText,
  metricOf,
  only,
  pod,
  reportOf,
  runCheck,
  runWords,
  verdict,
  withSimulator,
  writeFiles,
} from "./support.ts";

/** What the check finds where the kubelet lists these pods, and the folder has these files. */
function found(
  files: Readonly<Record<string, string>>,
  kubelet: FakeKubelet,
  ...words: readonly string[]
): Promise<Outcome> {
  return inFolder((folder) => {
    writeFiles(folder, files);
    return runCheck(staticPods, fakeContext(kubelet), "--manifests", folder, ...words);
  });
}

const expecting = (names: string, kubelet: FakeKubelet, ...words: readonly string[]) =>
  runCheck(staticPods, fakeContext(kubelet), "--expect", names, ...words);

const told = ({ findings }: Outcome) =>
  findings.map(({ code, status, subject, message }) => `${status ?? ""} ${code} ${subject}: ${message}`.trim());

describe("static-pods, expected and there", () => {
  test("each manifest's pod is listed, runs and is ready", async () => {
    const outcome = await found(
      { "a.yaml": manifestText("a"), "b.yaml": manifestText("b") },
      { pods: [pod("a-node-1"), pod("b-node-1"), pod("app", { source: "api", phase: "Failed", ready: false })] },
    );
    assert.deepEqual(outcome.findings, []);
    assert.equal(outcome.summary, "2 of 2 static pods run and are ready");
    assert.deepEqual(
      outcome.metrics.map(({ name, value }) => `${name}=${value}`).join(" "),
      "unhealthy=0 expected=2 present=2 ready=2 missing=0 failed=0 not_ready=0 unexpected=0 stale=0",
    );
    assert.equal((outcome.data!.pods as unknown[]).length, 2);
  });

  // a01 (kubernetes/kubernetes#136962): the copy is last by name, and its image is what runs.
  test("a .bak copy gives no third pod, and is what the image is compared with", async () => {
    const files = { "a.yaml": manifestText("a", "i:2"), "a.yaml.bak": manifestText("a", "i:1") };
    assert.deepEqual((await found(files, { pods: [pod("a-node-1", { images: ["i:1"] })] })).findings, []);
    assert.deepEqual(told(await found(files, { pods: [pod("a-node-1", { images: ["i:2"] })] })), [
      "StaticPodStale kube-system/a-node-1: it runs i:2, which a.yaml.bak does not ask for",
    ]);
  });

  // a15
  test("no folder: none is expected, and those that are there are unexpected", async () => {
    const run = (...pods: ReturnType<typeof pod>[]) =>
      runCheck(staticPods, fakeContext({ pods }), "--manifests", "/nonexistent/m");
    const none = await run();
    assert.deepEqual([none.findings, none.summary], [[], "no static pods expected: /nonexistent/m does not exist"]);
    assert.deepEqual(told(await run(pod("a-node-1"))), [
      "StaticPodUnexpected kube-system/a-node-1: it runs, and nothing asks for it",
    ]);
    assert.deepEqual(told(await run(pod("a-node-1", { phase: "Succeeded", ready: false }))), [
      "StaticPodUnexpected kube-system/a-node-1: it is listed, and nothing asks for it",
    ]);
  });

  test("--expect in place of manifests, and a number", async () => {
    const pods = [pod("a-node-1"), pod("b-node-1")];
    assert.deepEqual((await expecting("kube-system/a-node-1,kube-system/b-node-1", { pods })).findings, []);
    assert.deepEqual(told(await expecting("kube-system/a-node-1", { pods })), [
      "StaticPodUnexpected kube-system/b-node-1: it runs, and nothing asks for it",
    ]);
    const count = (range: string, kubelet: FakeKubelet = { pods }) =>
      runCheck(staticPods, fakeContext(kubelet), "--expect-count", range).then(told);
    assert.deepEqual(await count("2:2"), []);
    assert.deepEqual(await count("3:"), ["StaticPodMissing : 2 static pods are listed, demanded are 3:"]);
    assert.deepEqual(await count("1"), ["StaticPodUnexpected : 2 static pods are listed, demanded are 1"]);
    assert.deepEqual(await count("3:", { pods, servedMs: 2000 }), [
      "WARNING StaticPodMissing : 2 static pods are listed, demanded are 3:; it has served for 2 s only",
    ]);
    assert.deepEqual(await count("@0:2"), [
      "StaticPodMissing : 2 static pods are listed, demanded are numbers outside of 0:2",
    ]);
  });

  test("all that are short of a number count, and none of them twice", async () => {
    const of = async (...words: string[]) => {
      const outcome = await runCheck(staticPods, fakeContext({ pods: [pod("a-node-1")] }), ...words);
      return ["unhealthy", "expected", "present", "missing"].map((name) => metricOf(outcome, name));
    };
    assert.deepEqual(await of("--expect-count", "5:"), [4, 5, 1, 4]);
    const names = "kube-system/a-node-1,kube-system/b-node-1,kube-system/c-node-1";
    assert.deepEqual(await of("--expect", names, "--expect-count", "3:3"), [2, 3, 1, 2]);
  });

  // A file and a URL that give one pod: the kubelet lists both, and lets one of them start.
  test("two pods of one name are one", async () => {
    const pods = [pod("a-node-1"), pod("a-node-1", { uid: "of-the-url", source: "http", seenMs: 1 })];
    const outcome = await runCheck(staticPods, fakeContext({ pods }), "--expect-count", "1:1");
    assert.deepEqual([outcome.findings, outcome.summary], [[], "1 of 1 static pods run and are ready"]);
  });

  test("--expect beside --manifests: what a manifest asks for is not unexpected", async () => {
    const files = { "a.yaml": manifestText("a"), "b.yaml": manifestText("b") };
    const pods = [pod("a-node-1"), pod("b-node-1"), pod("c-node-1")];
    assert.deepEqual(told(await found(files, { pods }, "--expect", "kube-system/a-node-1")), [
      "StaticPodUnexpected kube-system/c-node-1: it runs, and nothing asks for it",
    ]);
  });
});

describe("static-pods, missing", () => {
  test("though a manifest asks for it", async () => {
    const outcome = await found({ "a.yaml": manifestText("a") }, {});
    assert.deepEqual(told(outcome), [
      "StaticPodMissing kube-system/a-node-1: not listed by the kubelet, though a.yaml asks for it",
    ]);
    assert.deepEqual([metricOf(outcome, "missing"), metricOf(outcome, "unhealthy")], [1, 1]);
  });

  test("a manifest that changed within the scan period and a grace is a WARNING", async () => {
    const outcome = await found({ "a.yaml": manifestText("a") }, { nowMs: Date.now() + 25_000 });
    assert.equal(outcome.findings[0]?.status, "WARNING");
    assert.match(outcome.findings[0]?.message ?? "", /^not listed by the kubelet yet: its manifest changed 2\d s ago$/);
    const later = await found({ "a.yaml": manifestText("a") }, { nowMs: Date.now() + 31_000 });
    assert.equal(later.findings[0]?.status, undefined);
  });

  // A clock that was ahead at boot and is set back, or a time that came with an archive.
  test("a time that is yet to come excuses nothing", async () => {
    const missingOf = async (kubelet: FakeKubelet) =>
      only((await found({ "a.yaml": manifestText("a") }, kubelet)).findings, "StaticPodMissing").status;
    assert.equal(await missingOf({ nowMs: Date.now() - 3_600_000 }), undefined);
    assert.equal(await missingOf({ servedMs: -3_600_000 }), undefined);
    const young = await runCheck(staticPods, fakeContext({ servedMs: -3_600_000 }), "--expect-count", "1:");
    assert.equal(only(young.findings, "StaticPodMissing").status, undefined);
    const stale = { pods: [pod("a-node-1", { images: ["i:1"] })], nowMs: Date.now() - 3_600_000 };
    only((await found({ "a.yaml": manifestText("a") }, stale)).findings, "StaticPodStale");
  });

  // kubernetes 1.36 has no readiness check: what it does not list may only not be there yet.
  test("a kubelet in its first seconds is a WARNING", async () => {
    const outcome = await found({ "a.yaml": manifestText("a") }, { servedMs: 9000 });
    assert.deepEqual(told(outcome), [
      "WARNING StaticPodMissing kube-system/a-node-1: not listed by the kubelet yet: it has served for 9 s only",
    ]);
    assert.equal((await found({ "a.yaml": manifestText("a") }, { servedMs: 10_000 })).findings[0]?.status, undefined);
  });

  // a11 (rancher/rke2#8199)
  test("two manifests with one uid", async () => {
    const uid = { uid: "0123456789abcdef0123456789abcdef" };
    const files = { "a.yaml": manifestText("a", "i", uid), "b.yaml": manifestText("b", "i", uid) };
    const outcome = await found(files, { pods: [pod("b-node-1", { images: ["i"], uid: uid.uid })] });
    assert.deepEqual(told(outcome), [
      `StaticPodMissing kube-system/a-node-1: not listed by the kubelet: two manifests share the uid ${uid.uid} ` +
        "(a.yaml and b.yaml), and one of them is lost",
    ]);
  });

  // a13: five refused files are five reasons, not five pods that are missing without one.
  test("a refused manifest is that, with the reader's reason", async () => {
    const secretive = JSON.parse(manifestText("a"));
    secretive.spec.imagePullSecrets = [{ name: "key" }];
    const files = { "a.yaml": JSON.stringify(secretive) };
    const outcome = await found(files, {});
    assert.equal(outcome.findings.length, 1);
    const { subject, message } = only(outcome.findings, "ManifestRefused");
    assert.equal(subject, "a.yaml");
    assert.match(message, /^the kubelet does not run kube-system\/a-node-1: .*secret/i);
    assert.equal(metricOf(outcome, "expected"), 0);
    // A kubelet that runs it all the same is believed.
    const older = await found(files, { pods: [pod("a-node-1")] });
    assert.deepEqual([older.findings, metricOf(older, "expected"), metricOf(older, "ready")], [[], 1, 1]);
    // Where it is expected by name, the file's fault is why it is missing.
    const named = await found(files, {}, "--expect", "kube-system/a-node-1");
    assert.match(told(named)[0]!, /^StaticPodMissing .*: not listed by the kubelet: it refuses a\.yaml, .*secret/i);
  });

  test("a broken edit leaves no name to miss, but a file to name", async () => {
    const files = { "a.yaml": manifestText("a"), "b.yaml": "kind: Pod\n\tmetadata: [" };
    const outcome = await found(files, { pods: [pod("a-node-1")] });
    const { subject, message } = only(outcome.findings, "ManifestIgnored");
    assert.equal(subject, "b.yaml");
    assert.match(message, /^not YAML: .*; if it is meant to be a pod, that pod does not run$/);
    assert.deepEqual((await found(files, { pods: [pod("a-node-1")] }, "--ignore", "b.*")).findings, []);
  });

  test("the kubelet that runs is given no folder", async () => {
    const context = { ...fakeContext(), kubelet: { pid: 7, workingFolder: "/" } as never };
    // The default folder is that of this machine: nothing is expected where it is not there.
    const outcome = await runCheck(staticPods, context);
    assert.ok(outcome.details?.[0]?.endsWith("the kubelet is given no folder and reads none)"));
  });
});

describe("static-pods of a node that is called otherwise", () => {
  const files = { "a.yaml": manifestText("a"), "b.yaml": manifestText("b") };
  const renamed = (...names: string[]) => names.map((name) => pod(`${name}-cp-1`, { nodeName: "cp-1" }));

  test("all names differ by the node's name: told once for each, and not as unexpected too", async () => {
    const outcome = await found(files, { pods: renamed("a", "b") });
    assert.deepEqual(
      outcome.findings.map(({ code, message }) => `${code} ${message}`),
      Array(2).fill(
        "StaticPodMissing not listed by the kubelet: the kubelet calls this node cp-1, not node-1; see --node-name",
      ),
    );
  });
  test("what is missing under either name is missing, what is expected under neither is unexpected", async () => {
    const outcome = await found(files, { pods: renamed("a", "c") });
    assert.deepEqual(
      outcome.findings.map(({ code, subject, message }) => [code, subject, /--node-name/.test(message)]),
      [
        ["StaticPodMissing", "kube-system/a-node-1", true],
        ["StaticPodMissing", "kube-system/b-node-1", false],
        ["StaticPodUnexpected", "kube-system/c-cp-1", false],
      ],
    );
  });
  test("not where one is there under its own name", async () => {
    const outcome = await found(files, { pods: [pod("a-node-1", { nodeName: "cp-1" }), ...renamed("b")] });
    assert.ok(!told(outcome).some((line) => line.includes("--node-name")));
  });
});

describe("static-pods, not well", () => {
  const files = { "a.yaml": manifestText("a") };
  const one = async (differs: Parameters<typeof pod>[1], ...words: string[]) => {
    const nowMs = Date.now() + 3_600_000;
    const outcome = await found(files, { pods: [pod("a-node-1", { ready: false, ...differs })], nowMs }, ...words);
    assert.equal(outcome.findings.length, 1, told(outcome).join("\n"));
    return told(outcome)[0]!.replace("kube-system/a-node-1", "P");
  };
  const container = {
    name: "main",
    init: false,
    ready: false,
    restarts: 7,
    state: { kind: "waiting", reason: "CrashLoopBackOff", message: "", exitCode: 0, signal: 0 },
    lastState: { kind: "terminated", reason: "OOMKilled", message: "", exitCode: 137, signal: 0 },
  } as const;

  // d01 (kubernetes/kubernetes#76598)
  test("evicted, or refused at admission: phase, reason and message", async () => {
    assert.equal(
      await one({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." }),
      "StaticPodFailed P: phase Failed, Evicted: The node was low on resource: memory.",
    );
    assert.equal(
      await one({ phase: "Failed", reason: "OutOfcpu", message: "Node didn't have enough resource" }),
      "StaticPodFailed P: phase Failed, OutOfcpu: Node didn't have enough resource",
    );
    assert.equal(await one({ phase: "Succeeded" }), "StaticPodFailed P: phase Succeeded");
  });

  // d03 (kubernetes/kubernetes#71134)
  test("a crash loop: waiting reason, last exit code, restarts; CRITICAL after --ready-grace", async () => {
    const nowMs = Date.now() + 3_600_000;
    const text =
      "not ready for 1 min: container main CrashLoopBackOff, last ended with exit code 137 (OOMKilled), 7 restarts";
    const loop = { containers: [container], readySinceMs: nowMs - 60_000 };
    assert.equal(await one(loop), `StaticPodNotReady P: ${text}`);
    assert.equal(await one(loop, "--ready-grace", "30s"), `CRITICAL StaticPodNotReady P: ${text}`);
  });

  test("pending, without a status, and being terminated", async () => {
    const nowMs = Date.now() + 3_600_000;
    const waiting = { ...container, restarts: 0, lastState: { ...container.state, kind: "" } } as const;
    const image = { ...waiting, state: { ...container.state, reason: "ImagePullBackOff" } };
    const since = { readySinceMs: nowMs - 10_000 };
    assert.equal(
      await one({ ...since, phase: "Pending", containers: [image] }),
      "StaticPodNotReady P: phase Pending for 10 s: container main ImagePullBackOff",
    );
    assert.match(await one({ ...since, phase: "", readyReason: "x" }), /^StaticPodNotReady P: no status yet for 10 s/);
    assert.equal(await one({ deletedMs: nowMs }), "StaticPodNotReady P: it is being terminated");
  });

  test("ranges decide in place of the codes' own statuses", () =>
    withSimulator("failed-pod", async ({ socket, expect }) => {
      const of = async (...words: string[]) =>
        verdict(await runWords(["static-pods", "--socket", socket, "--expect", expect.join(), ...words]));
      assert.equal(await of(), "CRITICAL StaticPodFailed");
      assert.equal(await of("-w", "0", "-c", "1"), "WARNING StaticPodFailed");
      assert.equal(await of("-w", "1"), "OK StaticPodsHealthy");
    }));

  test("what a range or --severity lets pass is not said to be well", () =>
    withSimulator("not-ready", async ({ socket, expect }) => {
      const of = async (...words: string[]) =>
        (await runWords(["static-pods", "--socket", socket, "--expect", expect.join(), ...words])).summary;
      for (const words of [
        ["-c", "2"],
        ["--severity", "StaticPodNotReady=OK"],
      ]) {
        assert.equal(await of(...words), "3 of 4 static pods run and are ready");
      }
      const none = await runWords([
        ...["static-pods", "--socket", socket, "--manifests", import.meta.dirname],
        ...["--severity", "StaticPodUnexpected=OK,ManifestIgnored=OK", "--ignore", "*"],
      ]);
      assert.equal(none.summary, "no static pods expected, and 4 there");
    }));

  test("of two pods with one name, the one that stays is judged", async () => {
    const going = pod("a-node-1", { uid: "old", deletedMs: 1, phase: "Failed", ready: false });
    assert.deepEqual((await found(files, { pods: [going, pod("a-node-1")] })).findings, []);
    assert.deepEqual((await found(files, { pods: [pod("a-node-1"), going] })).findings, []);
  });
});

describe("static-pods, stale", () => {
  const files = { "a.yaml": manifestText("a", "i:2") };
  const old = pod("a-node-1", { images: ["i:1"] });
  test("other images than the manifest's, once it is older than a scan and a grace", async () => {
    assert.deepEqual(told(await found(files, { pods: [old] })), [
      "StaticPodStale kube-system/a-node-1: it runs i:1, which a.yaml does not ask for",
    ]);
    assert.deepEqual((await found(files, { pods: [old], nowMs: Date.now() + 29_000 })).findings, []);
  });
  test("fewer or other containers, and their order", async () => {
    for (const images of [[], ["i:2", "i:2"], ["i:2", "j"]]) {
      only((await found(files, { pods: [pod("a-node-1", { images })] })).findings, "StaticPodStale");
    }
  });
  // Measured on the kubelet's own server: config.seen stays with a touched file or a changed comment.
  test("a file that was only touched is a line, not a finding", async () => {
    const outcome = await found(files, { pods: [pod("a-node-1", { images: ["i:2"], seenMs: 1000 })] });
    assert.deepEqual(outcome.findings, []);
    assert.match(outcome.details?.join("\n") ?? "", /a-node-1: a\.yaml was written .* after the pod was taken up/);
  });
});

describe("static-pods of a URL", () => {
  const url = (differs = {}) => pod("u-node-1", { source: "http", ...differs });
  test("are explained by no manifest, and their health counts", async () => {
    const outcome = await found({ "a.yaml": manifestText("a") }, { pods: [pod("a-node-1"), url()] });
    assert.deepEqual([outcome.findings, outcome.summary], [[], "2 of 2 static pods run and are ready"]);
    const ill = await found({}, { pods: [url({ phase: "Failed", ready: false })] });
    assert.deepEqual(told(ill), ["StaticPodFailed kube-system/u-node-1: phase Failed"]);
  });
  test("can be expected by name", async () => {
    assert.deepEqual((await expecting("kube-system/u-node-1", { pods: [url()] })).findings, []);
    assert.deepEqual(told(await expecting("kube-system/u-node-1", {})), [
      "StaticPodMissing kube-system/u-node-1: not listed by the kubelet",
    ]);
  });
  test("the configuration's URL is told with -v", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { "c.yaml": `staticPodPath: ${folder}/m\nstaticPodURL: https://user:secret@x/\n` });
      const outcome = await runCheck(staticPods, fakeContext(), "--kubelet-config", join(folder, "c.yaml"));
      const lines = outcome.details?.join("\n") ?? "";
      assert.match(lines, /a URL gives static pods too \(staticPodURL of .*c\.yaml\)/);
      assert.doesNotMatch(lines, /secret/);
    }));
});

describe("static-pods whose inventory cannot be had", () => {
  test("say nothing of what is missing, but why", async () => {
    for (const code of ["Initializing", "RateLimited", "SocketDead", "Timeout", "Undecodable"] as const) {
      const context = {
        ...fakeContext(),
        listing: async () => {
          throw new Fault(code, "x");
        },
      };
      await assert.rejects(runCheck(staticPods, context, "--expect", "ns/a"), (error) => {
        assert.ok(error instanceof Fault);
        assert.deepEqual([error.code, error.details.cause], ["InventoryUnavailable", code]);
        return true;
      });
    }
  });
});

// The first state of a watch holds what a listing does, and costs no token.
describe("static-pods --source watch gives the same answer", () => {
  const compared = scenarios.filter(({ check, code }) => check === "static-pods" && code !== "InventoryUnavailable");
  for (const { name, needs } of compared) {
    test(name, () =>
      withSimulator(name, async ({ socket, expect, manifests }, folder) => {
        const birth = Date.now() / 1000 - 3600;
        utimesSync(socket, birth, birth);
        const path = writeFiles(join(folder, "m"), needs === "manifests" ? manifests : {}, 3600);
        const demand = needs === "manifests" ? ["--manifests", path] : ["--expect", expect.join()];
        const run = (source: string) => runWords(["static-pods", "--socket", socket, "--source", source, ...demand]);
        const [list, watch] = [await run("list"), await run("watch")];
        // Ages may have gone on by a second between the two.
        const without = (report: typeof list) =>
          JSON.parse(JSON.stringify(reportOf(report, "static-pods")).replace(/\d+ (m?s|min|h|d)\b/g, "N"));
        assert.deepEqual(without(watch), without(list));
        assert.deepEqual([list.tokensSpent, watch.tokensSpent], [1, 0]);
      }),
    );
  }

  test("initializing", () =>
    withSimulator("initializing", async ({ socket }) => {
      const report = await runWords(["static-pods", "--socket", socket, "--expect", "ns/a", "--source", "watch"]);
      assert.equal(verdict(report), "UNKNOWN InventoryUnavailable");
      assert.equal(reportOf(report, "static-pods").findings[0]?.cause, "Initializing");
      assert.equal(report.tokensSpent, 0);
    }));
});
