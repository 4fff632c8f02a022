import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { codes } from "../../lib/codes.ts";
import { format, outputs } from "../../lib/format.ts";
import { manifests } from "../../probes/manifests.ts";
import { staticPods } from "../../probes/static_pods.ts";
import {
  fakeContext,
  findingsOf,
  inFolder,
  manifestText,
  metricOf,
  pod,
  reportOf,
  runCheck,
  runWords,
  verdict,
  writeFiles,
} from "./support.ts";

/** What the check makes of these files. */
function judged(files: Readonly<Record<string, string>>, ...words: readonly string[]) {
  return inFolder(async (folder) => {
    mkdirSync(join(folder, "m"));
    const path = writeFiles(join(folder, "m"), files);
    const report = await runWords(["manifests", "--manifests", path, "--node-name", "cp-1", ...words]);
    return { report, check: reportOf(report, "manifests") };
  });
}

const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n";
const uid = { uid: "0123456789abcdef0123456789abcdef" };

describe("manifests", () => {
  test("a pod of each file: OK, with the data of the schema", async () => {
    const { report, check } = await judged({
      "b.json": manifestText("b", "registry.example/b:2", uid),
      "a.yaml": manifestText("a"),
      ".hidden": "[",
    });
    assert.equal(verdict(report), "OK ManifestsClean");
    assert.equal(report.tokensSpent, 0);
    assert.equal(report.bytesReceived, 0);
    assert.deepEqual(check.findings, []);
    const [namespaceOf, image] = ["kube-system", "registry.example/main:1"];
    assert.deepEqual(check.data, {
      nodeName: "cp-1",
      pods: [
        { namespace: namespaceOf, name: "a-cp-1", uid: null, images: [image], file: "a.yaml" },
        { namespace: namespaceOf, name: "b-cp-1", uid: uid.uid, images: ["registry.example/b:2"], file: "b.json" },
      ],
      files: [
        { file: "a.yaml", verdict: "pod", pod: "kube-system/a-cp-1", reason: "" },
        { file: "b.json", verdict: "pod", pod: "kube-system/b-cp-1", reason: "" },
      ],
    });
    assert.deepEqual(
      check.metrics.map(({ name, value }) => `${name}=${value}`).join(" "),
      "problems=0 files=2 pods=2 refused=0 ignored=0 shadowed=0",
    );
  });

  test("every verdict has its code, and -v says each file's", async () => {
    const { check } = await judged({
      "a.yaml": manifestText("a"),
      "a.yaml.bak": manifestText("a"),
      "c.yaml": `# YAML\n${manifestText("c")}\n---\n${manifestText("d")}`,
      "nameless.yaml": "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: b}]}\n",
      "ns.yaml": namespace,
    });
    assert.deepEqual(findingsOf(check), [
      "WARNING ManifestShadowed a.yaml",
      "WARNING ManifestIgnored c.yaml",
      "CRITICAL ManifestRefused nameless.yaml",
      "WARNING ManifestIgnored ns.yaml",
    ]);
    assert.equal(verdict(check), "CRITICAL ManifestRefused");
    assert.equal(metricOf(check, "problems"), 4);
    assert.match(
      check.findings[0]!.message,
      /^kube-system\/a-cp-1: a\.yaml\.bak gives the same pod and is read later$/,
    );
    const lines = check.details.join("\n");
    assert.match(lines, /^manifests: .* \(--manifests\)\nscan period: 20 s \(default\)\n/);
    assert.match(lines, /\na\.yaml: shadowed kube-system\/a-cp-1, a\.yaml\.bak gives /);
    assert.match(lines, /\nns\.yaml: ignored, a Namespace, not a Pod$/);
  });

  test("the documents behind one that is no pod are told of", async () => {
    const { check } = await judged({ "x.yaml": `${namespace}---\n${manifestText("a")}` });
    assert.equal(check.findings[0]?.message, "a Namespace, not a Pod; the documents behind the first one are not read");
  });

  // a03: a patch is of kind Pod too.
  test("a refused file whose pod comes from another one is passed over, not missed", async () => {
    const patch = manifestText("a").replace(',"image":"registry.example/main:1"', "");
    const { check } = await judged({ "a.yaml": manifestText("a"), "patch.yaml": patch });
    assert.deepEqual(findingsOf(check), ["WARNING ManifestIgnored patch.yaml"]);
    assert.match(check.findings[0]!.message, /^kube-system\/a-cp-1 comes from another file, this one is refused: /);
  });

  test("two pods with one uid: one of them is lost", async () => {
    const files = { "a.yaml": manifestText("a", "i", uid), "b.yaml": manifestText("b", "i", uid) };
    const { check } = await judged(files);
    assert.deepEqual(findingsOf(check), ["WARNING ManifestShadowed b.yaml"]);
    assert.match(check.findings[0]!.message, /^kube-system\/b-cp-1: its uid is that of a\.yaml, /);
  });

  test("special files and folders", () =>
    inFolder(async (folder) => {
      symlinkSync("nowhere", join(folder, "link.yaml"));
      writeFiles(folder, { "sub/a.yaml": manifestText("a") });
      mkdirSync(join(folder, "empty"));
      const report = await runWords(["manifests", "--manifests", folder]);
      assert.deepEqual(findingsOf(reportOf(report, "manifests")), [
        "WARNING ManifestIgnored link.yaml",
        "WARNING ManifestIgnored sub",
      ]);
    }));

  test("one file in place of a folder", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { "a.yaml": manifestText("a"), README: "[" });
      const report = await runWords(["manifests", "--manifests", join(folder, "a.yaml")]);
      assert.equal(verdict(report), "OK ManifestsClean");
    }));
});

describe("manifests --ignore", () => {
  const files = {
    "README.md": "hello",
    "ns.yaml": namespace,
    "two.yaml": `# YAML\n${manifestText("a")}\n---\n${namespace}`,
  };
  test("names files to say nothing of; the data has them all the same", async () => {
    const { report, check } = await judged(files, "--ignore", "*.md,ns.yaml", "--ignore", "two.*");
    assert.equal(verdict(report), "OK ManifestsClean");
    assert.equal(metricOf(check, "problems"), 0);
    assert.equal(metricOf(check, "ignored"), 2);
    assert.deepEqual((check.data.files as unknown[]).length, 3);
  });
  test("what it does not name stays", async () => {
    assert.deepEqual(findingsOf((await judged(files, "--ignore", "*.md")).check), [
      "WARNING ManifestIgnored ns.yaml",
      "WARNING ManifestIgnored two.yaml",
    ]);
  });
  test("it hides no refused pod and no shadowed one", async () => {
    const { check } = await judged(
      { "a.yaml": manifestText("a"), "a.yaml.bak": manifestText("a"), "b.yaml": manifestText("b", "") },
      ...["--ignore", "*"],
    );
    assert.deepEqual(findingsOf(check), ["WARNING ManifestShadowed a.yaml", "CRITICAL ManifestRefused b.yaml"]);
  });
});

describe("manifests, how many", () => {
  test("--pods demands a number", async () => {
    const files = { "a.yaml": manifestText("a"), "b.yaml": manifestText("b") };
    assert.equal(verdict((await judged(files, "--pods", "2:2")).report), "OK ManifestsClean");
    const few = await judged(files, "--pods", "3:");
    assert.equal(verdict(few.report), "CRITICAL StaticPodMissing");
    assert.equal(few.report.summary, "the manifests give 2 pods, demanded are 3:");
    assert.equal(verdict((await judged(files, "--pods", "1")).report), "WARNING StaticPodUnexpected");
    const inside = await judged(files, "--pods", "@0:2");
    assert.equal(verdict(inside.report), "CRITICAL StaticPodMissing");
    assert.equal(inside.report.summary, "the manifests give 2 pods, demanded are numbers outside of 0:2");
    assert.equal(verdict((await judged({}, "--pods", "1:")).report), "CRITICAL StaticPodMissing");
  });

  // a15
  test("no folder: OK with a note, CRITICAL where pods are demanded", async () => {
    const of = (...words: string[]) => runWords(["manifests", "--manifests", "/nonexistent/m", ...words]);
    const none = await of();
    assert.equal(verdict(none), "OK ManifestsClean");
    assert.equal(none.summary, "/nonexistent/m does not exist, which is as good as an empty folder to the kubelet");
    assert.equal(verdict(await of("--pods", "1:")), "CRITICAL ManifestsUnreadable");
    assert.equal(verdict(await of("--pods", "0")), "OK ManifestsClean");
  });

  test("-w and -c speak of problems, and decide in place of the codes", async () => {
    const files = { README: "hello", "b.yaml": manifestText("b", "") };
    assert.equal(verdict((await judged(files)).report), "CRITICAL ManifestRefused");
    assert.equal(verdict((await judged(files, "-w", "2", "-c", "5")).report), "OK ManifestsClean");
    assert.match(verdict((await judged(files, "-w", "1", "-c", "5")).report), /^WARNING /);
    assert.match(verdict((await judged(files, "-c", "1")).report), /^CRITICAL /);
  });
});

describe("manifests that cannot be read", () => {
  const isRoot = process.geteuid?.() === 0;
  test("a path through a file is UNKNOWN", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { file: "" });
      const report = await runWords(["manifests", "--manifests", join(folder, "file/m")]);
      assert.equal(verdict(report), "UNKNOWN ManifestsUnreadable");
      assert.match(report.summary, /^Cannot read .*\/file\/m: /);
    }));
  test("one file of another user's is UNKNOWN, not passed over", { skip: isRoot && "not as root" }, () =>
    inFolder(async (folder) => {
      writeFiles(folder, { "a.yaml": manifestText("a"), "b.yaml": manifestText("b") });
      chmodSync(join(folder, "b.yaml"), 0);
      const report = await runWords(["manifests", "--manifests", folder]);
      assert.equal(verdict(report), "UNKNOWN ManifestsUnreadable");
      assert.deepEqual(findingsOf(reportOf(report, "manifests")), ["UNKNOWN ManifestsUnreadable b.yaml"]);
    }),
  );
  test("what it may hold is not said to be short of --pods, nor to be asked for by nothing", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { "a.yaml": manifestText("a") });
      // Whoever opens it reads nothing: there is no memory at address 0.
      symlinkSync("/proc/self/mem", join(folder, "b.yaml"));
      const of = async (...words: string[]) => {
        const { checks } = await runWords(["manifests", "--manifests", folder, ...words]);
        return checks.flatMap(findingsOf);
      };
      assert.deepEqual(await of("--pods", "2:"), ["UNKNOWN ManifestsUnreadable b.yaml"]);
      assert.deepEqual(await of("--pods", "3:"), ["UNKNOWN ManifestsUnreadable b.yaml", "CRITICAL StaticPodMissing"]);
      const context = fakeContext({ pods: [pod("a-node-1"), pod("b-node-1")] });
      const { findings } = await runCheck(staticPods, context, "--manifests", folder);
      assert.deepEqual(
        findings.map(({ code }) => code),
        ["ManifestsUnreadable"],
      );
    }));
});

test("a pod that an earlier check listed is not called dead because its file would be refused", async () => {
  await inFolder(async (folder) => {
    writeFiles(folder, { "a.yaml": manifestText("a", "") });
    const listed = [pod("a-node-1")];
    const context = { ...fakeContext(), listed: () => ({ pods: listed, bytes: 0 }) };
    const { findings } = await runCheck(manifests, context, "--manifests", folder);
    assert.deepEqual(
      findings.map(({ code, status }) => [code, status]),
      [["ManifestRefused", "WARNING"]],
    );
    assert.ok(codes.ManifestRefused.status === "CRITICAL");
  });
});

// No output may show what a manifest holds besides names, images and reasons.
test("nothing of a manifest's environment, arguments, annotations or volumes is printed", async () => {
  const canary = "CANARY-SECRET";
  const container = {
    name: "main",
    image: "registry.example/main:1",
    args: [canary],
    command: [canary],
    env: [{ name: "PASSWORD", value: canary }],
    workingDir: canary,
  };
  const whole = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a", annotations: { x: canary }, labels: { x: canary } },
    spec: { containers: [container], volumes: [{ name: "v", hostPath: { path: `/${canary}` } }] },
  };
  const variants: Record<string, unknown> = {
    "a.yaml": whole,
    "b.yaml": { ...whole, metadata: { ...whole.metadata, name: "b", labels: { [canary]: 5 } } },
    "c.yaml": { ...whole, metadata: { ...whole.metadata, name: "c", labels: { x: `${canary}//` } } },
    "d.yaml": { ...whole, spec: { ...whole.spec, containers: [{ ...container, env: [{ name: `=${canary}` }] }] } },
    "e.yaml": { ...whole, spec: { ...whole.spec, restartPolicy: canary } },
    "f.yaml": { ...whole, spec: { ...whole.spec, containers: [{ ...container, args: canary }] } },
    "g.yaml": { ...whole, kind: canary },
    "h.yaml": { ...whole, apiVersion: canary },
    "i.yaml": { ...whole, spec: { ...whole.spec, volumes: [{ name: "v", secret: { secretName: canary } }] } },
    "j.yaml": { ...whole, metadata: { name: canary } },
    "k.yaml": {
      ...whole,
      spec: { ...whole.spec, containers: [{ ...container, env: [{ name: "x", value: { [canary]: 1 } }] }] },
    },
  };
  const texts = Object.fromEntries(Object.entries(variants).map(([file, value]) => [file, JSON.stringify(value)]));
  const { report } = await judged({
    ...texts,
    "l.yaml": `env: ${canary}: ${canary}\n\t- [`,
    "m.yaml": `{"env": "${canary}" "${canary}"}`,
    "n.yaml": `&${canary} *${canary}x`,
    "o.yaml": `!${canary} %`,
  });
  for (const output of outputs) {
    for (const profile of ["nagios", "npd", "kube"] as const) {
      const text = format(report, output, { profile, exitStatus: 2, verbose: true, origins: [] });
      // A name is what may be shown; that of j.yaml is refused as it stands.
      const rest = text.replaceAll(`default/${canary}-cp-1`, "");
      assert.ok(!rest.includes(canary), `${output} ${profile}: ${rest.slice(Math.max(0, rest.indexOf(canary) - 200))}`);
    }
  }
});
