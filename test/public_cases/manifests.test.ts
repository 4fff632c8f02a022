// Public cases about static pod manifests, on the built binary: test/cases/CASES.md has each one's source and the right
// behaviour, expected.json what the kubelet's own reader made of the files. Where the kubelet's server is there, it reads
// the same folder, and `static-pods` is held against what it lists.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { age, checkOf, metricOf, needs, type ProbeJson, probe, probeJson, root, startKubelet } from "../support.ts";

interface Expected {
  readonly nodeName: string;
  readonly files: readonly { readonly file: string; readonly pod?: string; readonly error?: string }[] | null;
  readonly pods: readonly {
    readonly Namespace: string;
    readonly Name: string;
    readonly DeclaredUID: string;
    readonly Images: readonly string[];
  }[];
}

interface Data {
  readonly nodeName: string;
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string | null;
    readonly images: readonly string[];
    readonly file: string;
  }[];
  readonly files: readonly {
    readonly file: string;
    readonly verdict: string;
    readonly pod: string | null;
    readonly reason: string;
  }[];
}

const caseFolder = (id: string) => join(root, "test", "cases", id);
const folderOf = (id: string) => join(caseFolder(id), "manifests");
const expectedOf = (id: string): Expected => JSON.parse(readFileSync(join(caseFolder(id), "expected.json"), "utf8"));

function read(id: string, ...words: readonly string[]): Promise<ProbeJson> {
  const { nodeName } = expectedOf(id);
  return probeJson(["manifests", "--manifests", folderOf(id), "--node-name", nodeName, ...words]);
}

const dataOf = (run: ProbeJson) => checkOf(run, "manifests").data as unknown as Data;
const findingsOf = (run: ProbeJson, check = "manifests") =>
  checkOf(run, check).findings.map(({ status, code, subject }) => `${status} ${code} ${subject}`);

/** `static-pods` against the kubelet's own server, which reads the folder of the case. */
async function served(t: TestContext, id: string, ...words: readonly string[]): Promise<ProbeJson> {
  const { nodeName } = expectedOf(id);
  const { socket } = await startKubelet(t, ["--manifests", folderOf(id), "--node", nodeName.toLowerCase()]);
  age(socket, 3600);
  return probeJson([
    ...["static-pods", "--socket", socket, "--manifests", folderOf(id), "--node-name", nodeName],
    ...words,
  ]);
}

const ids = ["a01", "a03", "a05", "a07", "a08", "a11", "a13", "a15", "a17"];

describe("every case: the pods, images, UIDs and files that the kubelet's own reader has", () => {
  for (const id of ids) {
    test(id, async () => {
      const expected = expectedOf(id);
      const { nodeName, pods, files } = dataOf(await read(id));
      assert.equal(nodeName, expected.nodeName.toLowerCase());
      assert.deepEqual(
        pods.map(({ namespace, name, uid, images }) => [namespace, name, uid ?? "", images]),
        expected.pods.map((pod) => [pod.Namespace, pod.Name, pod.DeclaredUID, pod.Images]),
      );
      assert.deepEqual(
        files.map(({ file, verdict, pod }) => [file, ["pod", "shadowed"].includes(verdict) ? pod : null]),
        (expected.files ?? []).map(({ file, pod }) => [file, pod ?? null]),
      );
      // A file without a pod has a reason.
      for (const { verdict, reason } of files) assert.ok(verdict === "pod" || reason !== "");
    });
  }
});

describe("a01: a .bak copy beside the manifest (kubernetes/kubernetes#136962, kubernetes/kubeadm#2823)", () => {
  test("two pods, WARNING naming both files and the pod they share", async () => {
    const run = await read("a01");
    assert.equal(run.ended.status, 1);
    assert.deepEqual(findingsOf(run), ["WARNING ManifestShadowed kube-apiserver.yaml"]);
    assert.match(run.summary, /^kube-apiserver\.yaml: kube-system\/kube-apiserver-cp-1: kube-apiserver\.yaml\.bak /);
    assert.equal(metricOf(run, "manifests", "pods"), 2);
  });
  test("the kubelet runs the copy, and none is missing", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a01");
    assert.equal(run.code, "StaticPodsHealthy", run.summary);
    assert.equal(metricOf(run, "static-pods", "expected"), 2);
  });
});

describe("a03: files that are no pods (smart-edge-open/converged-edge-experience-kits#89, Capgemini/kubeform#78)", () => {
  const ignored = ["README", "extend_scheduler.yml", "kube-system.yaml", "kustomization.yaml"];
  test("one pod; WARNING with the ignored names, the fragment of kind Pod among them", async () => {
    const run = await read("a03");
    assert.equal(run.ended.status, 1);
    assert.deepEqual(
      findingsOf(run),
      ignored.map((file) => `WARNING ManifestIgnored ${file}`),
    );
  });
  test("--ignore silences named files", async () => {
    assert.equal((await read("a03", "--ignore", "README,*.yml,kustomization.*,kube-system.yaml")).ended.status, 0);
    assert.deepEqual(findingsOf(await read("a03", "--ignore", "README,k*.yaml")), [
      "WARNING ManifestIgnored extend_scheduler.yml",
    ]);
  });
  test("the kubelet runs the one", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a03");
    assert.equal(run.code, "StaticPodsHealthy", run.summary);
    assert.equal(metricOf(run, "static-pods", "expected"), 1);
  });
});

describe("a05: several documents in one file (pkg/kubelet/config/common.go)", () => {
  test("the first one counts; WARNING for files with further ones", async () => {
    const run = await read("a05");
    assert.equal(run.ended.status, 1);
    assert.deepEqual(
      findingsOf(run),
      ["broken-second.yaml", "empty-first-doc.yaml", "namespace-first.yaml", "two-docs.yaml"].map(
        (file) => `WARNING ManifestIgnored ${file}`,
      ),
    );
    assert.ok(!dataOf(run).pods.some(({ name }) => name.startsWith("second")));
  });
  test("the kubelet runs the six first ones", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a05");
    assert.equal(run.code, "StaticPodsHealthy", run.summary);
    assert.equal(metricOf(run, "static-pods", "present"), 6);
  });
});

describe("a07: JSON in .yaml, tabs, keys in capitals, a comment (openshift/library-go#1316, kubernetes/kubernetes#8692)", () => {
  // By the design's table a file of kind Pod that gives no pod is CRITICAL; the case would have a WARNING for it.
  test("names come from the pods and not from the files; the last two are not loaded", async () => {
    const run = await read("a07");
    assert.deepEqual(findingsOf(run), [
      "WARNING ManifestIgnored json-comment.json",
      "CRITICAL ManifestRefused uppercase-keys.json",
    ]);
    assert.match(checkOf(run, "manifests").findings[1]!.message, /^the kubelet does not run its pod: .*name/);
    assert.equal((await read("a07", "--severity", "ManifestRefused=WARNING")).ended.status, 1);
  });
  test("the kubelet runs the three", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a07");
    assert.equal(metricOf(run, "static-pods", "present"), 3);
    assert.equal(metricOf(run, "static-pods", "unexpected"), 0);
    assert.deepEqual(findingsOf(run, "static-pods"), [
      "CRITICAL ManifestRefused uppercase-keys.json",
      "WARNING ManifestIgnored json-comment.json",
    ]);
  });
});

describe("a08: a host name in capitals, with dots and a line end (kubernetes/kubernetes#59849, apprenda/kismatic#641)", () => {
  const raw = readFileSync(join(caseFolder("a08"), "hostname"), "utf8");
  test("trimmed and in lower case, the dots kept, from an option and from the environment", async () => {
    assert.match(raw, /[A-Z].*\./);
    const words = ["manifests", "--manifests", folderOf("a08")];
    for (const run of [
      await probeJson([...words, "--node-name", raw]),
      await probeJson(words, { env: { NODE_NAME: raw } }),
      await probeJson(words, { env: { KUBELET_PROBE_NODE_NAME: raw } }),
    ]) {
      assert.equal(run.ended.status, 0);
      assert.deepEqual(
        dataOf(run).pods.map(({ name }) => name),
        ["kube-proxy-worker-01.example.test"],
      );
    }
  });
  test("as the kubelet has it", { skip: needs.kubelet }, async (t) => {
    assert.equal((await served(t, "a08")).code, "StaticPodsHealthy");
  });
});

describe("a11: one metadata.uid in two manifests (rancher/rke2#8199, kubernetes/kubernetes#104648)", () => {
  test("both pods are expected, and the files are named", async () => {
    const run = await read("a11");
    assert.equal(run.ended.status, 1);
    assert.deepEqual(findingsOf(run), ["WARNING ManifestShadowed kube-proxy.yaml"]);
    assert.match(run.summary, /its uid is that of etcd\.yaml/);
    assert.equal(metricOf(run, "manifests", "pods"), 2);
  });
  test("one of them is lost: CRITICAL, two manifests share a uid", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a11");
    assert.equal(run.ended.status, 2);
    assert.equal(run.code, "StaticPodMissing");
    assert.match(run.summary, /: two manifests share the uid [0-9a-f]{32} \(/);
    assert.equal(metricOf(run, "static-pods", "expected"), 2);
    assert.equal(metricOf(run, "static-pods", "missing"), 1);
  });
});

describe("a13: references to objects of the API server (kubernetes/kubernetes#103587, kube-vip/kube-vip#183)", () => {
  const refused = ["configmap-env", "pullsecret", "sa-deprecated-field", "sa", "secret-volume"].map(
    (name) => `CRITICAL ManifestRefused ${name}.yaml`,
  );
  test("five refused, each CRITICAL with file and reason", async () => {
    const run = await read("a13");
    assert.equal(run.ended.status, 2);
    assert.deepEqual(findingsOf(run), refused);
    for (const { message } of checkOf(run, "manifests").findings) assert.match(message, /a static pod cannot$/);
  });
  test("the kubelet runs two, and the other five are not five that are missing", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a13");
    assert.deepEqual(findingsOf(run, "static-pods"), refused);
    assert.equal(metricOf(run, "static-pods", "expected"), 2);
    assert.equal(metricOf(run, "static-pods", "missing"), 0);
  });
  test("expected by name, each is missing for its reason", { skip: needs.kubelet }, async (t) => {
    const run = await served(
      t,
      "a13",
      "--expect",
      "kube-system/sa-cp-1,kube-system/good-cp-1,kube-system/saempty-cp-1",
    );
    assert.deepEqual(findingsOf(run, "static-pods"), ["CRITICAL StaticPodMissing kube-system/sa-cp-1"]);
    assert.match(run.summary, /: it refuses sa\.yaml, .* service account/);
  });
});

describe("a15: no folder of manifests (kubernetes/kops#5463, k3s-io/k3s#1691)", () => {
  test("OK with a note; CRITICAL where pods are demanded", async () => {
    assert.ok(!existsSync(folderOf("a15")));
    const run = await read("a15");
    assert.equal(run.ended.status, 0);
    assert.match(run.summary, /does not exist/);
    const demanded = await read("a15", "--pods", "1:");
    assert.equal(demanded.ended.status, 2);
    assert.equal(demanded.code, "ManifestsUnreadable");
  });
  test("no permission, or a path through a file, is UNKNOWN", async () => {
    const through = join(caseFolder("a15"), "expected.json", "manifests");
    const ended = await probe(["manifests", "--manifests", through]);
    assert.equal(ended.status, 3);
    assert.match(ended.stdout, /^MANIFESTS UNKNOWN - ManifestsUnreadable: Cannot read /);
  });
  test("static-pods and all on a worker: OK", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a15");
    assert.equal(run.code, "StaticPodsHealthy");
    assert.match(run.summary, /^no static pods expected: .* does not exist$/);
    const { socket } = await startKubelet(t, []);
    const ended = await probe(["all", "--socket", socket, "--manifests", folderOf("a15")]);
    assert.equal(ended.status, 0, ended.stdout);
  });
  test("the path of one file is legal too", async () => {
    const run = await probeJson([
      "manifests",
      "--manifests",
      join(folderOf("a08"), "kube-proxy.yaml"),
      "--node-name",
      "n",
    ]);
    assert.deepEqual(
      dataOf(run).pods.map(({ name }) => name),
      ["kube-proxy-n"],
    );
  });
});

describe("a17: manifests of any extension or none (kubernetes/kubernetes#40123, kubernetes-sigs/kubespray#4480)", () => {
  test("four pods, OK", async () => {
    const run = await read("a17");
    assert.equal(run.ended.status, 0);
    assert.equal(metricOf(run, "manifests", "pods"), 4);
  });
  test("as the kubelet runs them", { skip: needs.kubelet }, async (t) => {
    const run = await served(t, "a17");
    assert.equal(run.code, "StaticPodsHealthy");
    assert.equal(metricOf(run, "static-pods", "present"), 4);
  });
});
