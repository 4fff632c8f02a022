// How the kubelet reads its static pod manifests: one folder with a file for each rule, read by a real kubelet at once.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Pod } from "../../lib/pod.ts";
import { checkOf, independentClient } from "../support.ts";
import {
  createNode,
  expectVerdict,
  type Node,
  nodeName,
  only,
  openWatch,
  podManifest,
  settled,
  until,
} from "./node.ts";
import { fieldsOf } from "./raw.ts";

/** One rule: the files that show it, and which of the pods in them run. */
interface Rule {
  readonly rule: string;
  readonly files?: Readonly<Record<string, string | Uint8Array | object>>;
  /** Files that are no files. */
  make?(folder: string): void;
  readonly run?: readonly string[];
  readonly not?: readonly string[];
}

const yaml = (name: string, metadata = "", spec = "") =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n${metadata}spec:\n${spec}  containers:\n  - name: main\n    image: registry.example/main:1\n`;

const references: readonly (readonly [string, object])[] = [
  ["a service account", { serviceAccountName: "default" }],
  ["a Secret", { volumes: [{ name: "v", secret: { secretName: "s" } }] }],
  ["a ConfigMap", { volumes: [{ name: "v", configMap: { name: "c" } }] }],
  ["a PersistentVolumeClaim", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "p" } }] }],
  ["a CSI volume", { volumes: [{ name: "v", csi: { driver: "d.example" } }] }],
  [
    "a projected token",
    {
      volumes: [
        { name: "v", projected: { sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 3600 } }] } },
      ],
    },
  ],
];

const megabytes10 = 10 * 1024 * 1024;
const padded = (name: string, size: number) => JSON.stringify(podManifest(name)).padEnd(size);

const rules: readonly Rule[] = [
  { rule: "a dotfile is skipped", files: { ".dot.yaml": podManifest("dot") }, not: ["dot"] },
  {
    rule: "any name counts: a backup, a tilde, no extension",
    files: { "b.yaml.bak": podManifest("bak"), "b.yaml~": podManifest("tilde"), bare: podManifest("bare") },
    run: ["bak", "tilde", "bare"],
  },
  {
    rule: "a folder is not looked into",
    make(folder) {
      mkdirSync(join(folder, "inner"));
      writeFileSync(join(folder, "inner", "pod.yaml"), yaml("inner"));
    },
    not: ["inner"],
  },
  {
    rule: "a link to a file is followed, one to nothing is skipped",
    make(folder) {
      writeFileSync(join(folder, ".target"), yaml("linked"));
      symlinkSync(".target", join(folder, "link.yaml"));
      symlinkSync("nowhere", join(folder, "dangling.yaml"));
    },
    run: ["linked"],
  },
  {
    rule: "a FIFO and a socket are skipped, and nothing waits for a writer",
    make: (folder) => void execFileSync("mkfifo", [join(folder, "fifo.yaml")]),
  },
  {
    rule: "a file of 10 MiB is refused, one a byte shorter is not",
    files: { "large.json": padded("large", megabytes10), "fits.json": padded("fits", megabytes10 - 1) },
    run: ["fits"],
    not: ["large"],
  },
  {
    rule: "only the first of several documents counts, the rest is not even parsed",
    files: {
      "two.yaml": `${yaml("first")}---\n${yaml("second")}`,
      "rest.yaml": `${yaml("before-garbage")}---\n{[: not yaml\n`,
    },
    run: ["first", "before-garbage"],
    not: ["second"],
  },
  {
    rule: "an empty first document is refused, a comment before it is none",
    files: {
      "empty-first.yaml": `---\n---\n${yaml("after-empty")}`,
      "comment-first.yaml": `# a comment\n---\n${yaml("after-comment")}`,
    },
    run: ["after-comment"],
    not: ["after-empty"],
  },
  {
    rule: "JSON may be indented with tabs",
    files: { "tabs.json": JSON.stringify(podManifest("tabs"), null, "\t") },
    run: ["tabs"],
  },
  {
    rule: "scalars are those of YAML 1.1: yes, on, 1_000 and 0x1f are no strings, a date is one",
    files: Object.fromEntries(
      [
        ["yes", "yes"],
        ["on", "on"],
        ["grouped", "1_000"],
        ["hex", "0x1f"],
        ["date", "2026-01-01"],
      ].map(([name, value]) => [`scalar-${name}.yaml`, yaml(`scalar-${name}`, `  labels: {value: ${value}}\n`)]),
    ),
    run: ["scalar-date"],
    not: ["scalar-yes", "scalar-on", "scalar-grouped", "scalar-hex"],
  },
  {
    rule: "a PodList, a List and other kinds are refused",
    files: {
      "podlist.yaml": { apiVersion: "v1", kind: "PodList", items: [podManifest("of-podlist")] },
      "list.yaml": { apiVersion: "v1", kind: "List", items: [podManifest("of-list")] },
      "configmap.yaml": { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "of-kind" } },
    },
    not: ["of-podlist", "of-list", "of-kind"],
  },
  {
    rule: "no apiVersion is refused",
    files: { "no-version.yaml": yaml("no-version").replace("apiVersion: v1\n", "") },
    not: ["no-version"],
  },
  {
    rule: "no name, an empty one, a generated one and one that is no string are refused",
    files: {
      "unnamed.yaml": yaml('""', "  labels: {a: b}\n"),
      "generated.yaml": { ...podManifest(""), metadata: { generateName: "generated-" } },
      "number.yaml": yaml("1234"),
    },
    not: ["", "1234"],
  },
  {
    rule: "a name that is no RFC 1123 subdomain once the suffix is on is refused",
    files: { "under_score.yaml": yaml("under_score"), "long.yaml": yaml("l".repeat(250)) },
    not: ["under_score", "l".repeat(250)],
  },
  {
    rule: "no containers and no image are refused",
    files: {
      "no-containers.yaml": { ...podManifest("no-containers"), spec: {} },
      "no-image.yaml": podManifest("no-image", { container: { image: "" } }),
    },
    not: ["no-containers", "no-image"],
  },
  {
    rule: "unknown fields are dropped",
    files: { "unknown.yaml": podManifest("unknown-field", { spec: { noSuchField: 1 } }) },
    run: ["unknown-field"],
  },
  {
    rule: "a manifest with the annotation of a mirror pod is dropped",
    files: {
      "mirror.yaml": podManifest("mirror", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }),
    },
    not: ["mirror"],
  },
  {
    rule: "a byte order mark, UTF-16 and CRLF are taken",
    files: {
      "bom.yaml": `\ufeff${yaml("bom")}`,
      "utf16.yaml": Buffer.from(`\ufeff${yaml("utf16")}`, "utf16le"),
      "crlf.yaml": yaml("crlf").replaceAll("\n", "\r\n"),
    },
    run: ["bom", "utf16", "crlf"],
  },
  {
    rule: "anchors and merge keys are taken, of duplicate keys the last, and keys in capitals",
    files: {
      "anchors.yaml": yaml("anchors", "  labels: &l {a: b}\n  annotations: {<<: *l}\n"),
      "twice.yaml": yaml("overridden", "  name: last-name\n"),
      "capitals.yaml": yaml("capitals").replace("kind:", "Kind:"),
    },
    run: ["anchors", "last-name", "capitals"],
    not: ["overridden"],
  },
  {
    rule: "of two files with one pod the last in the order of names wins",
    files: {
      "same-1.yaml": podManifest("same", { container: { image: "registry.example/main:first" } }),
      "same-2.yaml": podManifest("same", { container: { image: "registry.example/main:last" } }),
    },
    run: ["same"],
  },
  {
    rule: "the order of names is that of their bytes: capitals come first",
    files: {
      "order-B.yaml": podManifest("order", { container: { image: "registry.example/main:first" } }),
      "order-a.yaml": podManifest("order", { container: { image: "registry.example/main:last" } }),
    },
    run: ["order"],
  },
  {
    rule: "of two pods with one metadata.uid one is lost",
    files: {
      "twin-1.yaml": podManifest("twin-1", { metadata: { uid: "5".repeat(32) } }),
      "twin-2.yaml": podManifest("twin-2", { metadata: { uid: "5".repeat(32) } }),
    },
  },
  {
    rule: "a node name and annotations of its own are overwritten",
    files: {
      "own.yaml": podManifest("own", {
        metadata: { annotations: { "kubernetes.io/config.source": "api", "kubernetes.io/config.seen": "never" } },
        spec: { nodeName: "elsewhere" },
      }),
    },
    run: ["own"],
  },
];

describe("facts of static pod manifests", { concurrency: 3, ...only }, () => {
  test("a folder with a file for each rule", async (t) => {
    const node = await createNode(t, { "zz-last.yaml": podManifest("last") });
    for (const { files, make } of rules) {
      for (const [file, content] of Object.entries(files ?? {})) {
        const plain = typeof content === "string" || content instanceof Uint8Array;
        writeFileSync(join(node.manifests, file), plain ? content : JSON.stringify(content));
      }
      make?.(node.manifests);
    }
    references.forEach(([, spec], i) => {
      node.write(`reference-${i}.json`, podManifest(`reference-${i}`, { spec }));
    });
    const socket = createServer().listen(join(node.manifests, "socket.yaml"));
    t.after(() => socket.close());
    // One scan is enough, and two files of it are large.
    await node.start({ config: { fileCheckFrequency: "1h" } });
    // The scan puts every pod of the folder into the listing at once in 1.37, one after the other in 1.36. Should one not
    // come at all, its own test is to say so.
    const wanted = rules.flatMap(({ run = [] }) => run).concat("last");
    const twins = ["twin-1", "twin-2"];
    let pods: ReadonlyMap<string, Pod> = new Map();
    const runs = (name: string) => pods.has(`default/${name}-${nodeName}`);
    await until("every pod", async () => {
      pods = await node.pods();
      return wanted.every(runs) && twins.some(runs);
    }).catch(() => {});

    for (const { rule, run = [], not = [] } of rules) {
      await t.test(rule, () => {
        assert.deepEqual(
          run.filter((name) => !runs(name)),
          [],
          "do not run",
        );
        assert.deepEqual(not.filter(runs), [], "run");
        for (const name of ["same", "order"].filter((one) => run.includes(one))) {
          assert.deepEqual(pods.get(`default/${name}-${nodeName}`)!.images, ["registry.example/main:last"]);
        }
        if (run.includes("own")) {
          const own = pods.get(`default/own-${nodeName}`)!;
          assert.deepEqual([own.nodeName, own.source], [nodeName, "file"]);
          assert.notEqual(own.seenMs, null);
        }
        if (rule.includes("one is lost")) assert.equal(twins.filter(runs).length, 1);
      });
    }
    for (const [i, [what]] of references.entries()) {
      await t.test(`a manifest that refers to ${what} is refused`, () => {
        assert.equal(runs(`reference-${i}`), false);
      });
    }

    await t.test("the check manifests gives the pods that the kubelet does", async () => {
      const { run } = await expectVerdict(node, ["manifests"], "CRITICAL", "ManifestRefused");
      const read = checkOf(run, "manifests").data.pods as readonly { readonly name: string; readonly images: object }[];
      const lost = twins.map((twin) => `${twin}-${nodeName}`).find((name) => !pods.has(`default/${name}`));
      const ofCheck = read.filter(({ name }) => name !== lost).map(({ name, images }) => [name, images]);
      const ofKubelet = [...pods.values()].map(({ name, images }) => [name, images]);
      assert.deepEqual(ofCheck.sort(), ofKubelet.sort());
    });

    await t.test("a new file is found without a scan, by inotify", async () => {
      node.write("late.yaml", podManifest("late"));
      await until("the late pod", async () => (await node.pods()).has(`default/late-${nodeName}`));
    });
  });

  test("changes of the folder", async (t) => {
    const other = `default/other-${nodeName}`;
    const name = `default/edited-${nodeName}`;
    const version = (tag: string) => yaml("edited").replace("main:1", `main:${tag}`);
    const node = await createNode(t, { "edited.yaml": version("1"), "other.yaml": podManifest("other") });
    await node.start();
    const edited = async () => (await node.pods()).get(name);
    const runs = (tag: string) =>
      until(`${name} to run ${tag}`, async () => {
        const pod = await edited();
        return pod?.images[0]?.endsWith(`:${tag}`) && pod.ready ? pod : undefined;
      });
    const first = await runs("1");
    const file = join(node.manifests, "edited.yaml");

    await t.test("a touch and an edited comment change neither the UID nor config.seen", async () => {
      const now = new Date();
      utimesSync(file, now, now);
      node.write("edited.yaml", `# a comment\n${version("1")}`);
      // Taken up after the edit: by then the edit has been seen as well.
      node.write("edited-later.yaml", podManifest("edited-later"));
      await until("the later manifest", async () => (await node.pods()).has(`default/edited-later-${nodeName}`));
      await fullScan(node);
      const pod = (await edited())!;
      assert.deepEqual([pod.uid, pod.seenMs, pod.readySinceMs], [first.uid, first.seenMs, first.readySinceMs]);
      assert.ok(statSync(file).mtimeMs > pod.seenMs!);
    });

    await t.test("the pod of an edited manifest is another one, listed Pending before its ADDED", async () => {
      const watch = await openWatch(node);
      node.write("edited.yaml", version("2"));
      const replacement = await until("the replacement", async () => {
        const pod = await edited();
        return pod !== undefined && pod.uid !== first.uid ? pod : undefined;
      });
      const isAdded = () => watch.events.some((event) => event.type === "added" && event.pod.uid === replacement.uid);
      // Without a status of its own yet, and so without any condition.
      const { phase, ready, readyReason, containers } = replacement;
      assert.deepEqual([phase, ready, readyReason, containers.length, isAdded()], ["Pending", false, "", 0, false]);
      await until("its ADDED", isAdded);
      await runs("2");
    });

    await t.test("an event DELETED has a name, a namespace and a UID only", async () => {
      const deleted = (async () => {
        for await (const event of independentClient(t, node.socket).watchPods({})) {
          if (event.type === 3) return event.pod;
        }
        throw new Error("no event DELETED");
      })();
      node.remove("edited-later.yaml");
      const parts = fieldsOf(await deleted);
      const metadata = [...fieldsOf(parts.get(1)![0]!)].filter(([, values]) =>
        values.some((value) => value.length > 0),
      );
      assert.deepEqual(
        metadata.map(([field]) => field),
        [1, 3, 5],
      );
      assert.equal(Buffer.concat(fieldsOf(parts.get(2)![0]!).get(2) ?? []).length, 0, "no containers");
    });

    await t.test("the .bak of a manifest, sorted after it, wins at the next full scan", async () => {
      node.write("edited.yaml.bak", version("2-bak"));
      await until("the backup to win", async () => (await edited())?.images[0]?.endsWith(":2-bak"));
      node.remove("edited.yaml.bak");
      await until("the manifest to win", async () => (await edited())?.images[0]?.endsWith(":2"));
    });

    await t.test("a malformed edit removes the running pod at the next full scan", async () => {
      node.write("edited.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: edited\n");
      await until("the pod to be gone", async () => (await edited()) === undefined);
      assert.ok((await node.pods()).has(other), "the pods of other files stay");
    });

    await t.test("when the folder cannot be read the static pods stay", async () => {
      renameSync(node.manifests, `${node.manifests}.away`);
      // It is not missing, but nobody gets there.
      symlinkSync("manifests", node.manifests);
      const scans = () => node.log().split("too many levels of symbolic links").length;
      const before = scans();
      await until("two scans of it", () => scans() > before + 1);
      assert.ok((await node.pods()).has(other));
      await expectVerdict(node, ["manifests"], "UNKNOWN", "ManifestsUnreadable");
    });

    await t.test("when the folder is gone all static pods are removed", async () => {
      rmSync(node.manifests);
      await until("no pod", async () => (await node.pods()).size === 0);
      await expectVerdict(node, ["manifests"], "OK", "ManifestsClean", { says: /does not exist/ });
      await expectVerdict(node, ["manifests", "--pods", "1:"], "CRITICAL", "ManifestsUnreadable");
      renameSync(`${node.manifests}.away`, node.manifests);
      await until("the pod again", async () => (await node.pods()).has(other));
    });
  });

  test("once no manifest is left, the next one brings the last pods back until the full scan after it", async (t) => {
    const node = await createNode(t, { "removed.yaml": podManifest("removed") });
    const names = { removed: `default/removed-${nodeName}`, next: `default/next-${nodeName}` };
    // With the pauses of a node: the scan after the next manifest is to come some time after it.
    await node.start({ config: { fileCheckFrequency: "5s" } });
    // An empty scan empties the kubelet's set but not the store that inotify adds to. Should a full scan come at once,
    // nothing is brought back: then once more.
    await until("the removed pod to be back", async () => {
      node.write("removed.yaml", podManifest("removed"));
      await settled(node, [names.removed]);
      node.write("removed.yaml", "kind: Broken");
      await until("no pod", async () => (await node.pods()).size === 0);
      node.write("next.yaml", podManifest("next"));
      const pods = await until("the next pod", async () => {
        const found = await node.pods();
        return found.has(names.next) ? found : undefined;
      });
      if (pods.has(names.removed)) return true;
      node.remove("next.yaml");
      return false;
    });
    await settled(node, [names.next]);
  });

  test("staticPodPath may be a single file", async (t) => {
    const node = await createNode(t, { "one.yaml": podManifest("one"), "two.yaml": podManifest("two") });
    await node.start({ config: { staticPodPath: join(node.manifests, "one.yaml") } });
    for (const [check, code] of [
      ["static-pods", "StaticPodsHealthy"],
      ["manifests", "ManifestsClean"],
    ] as const) {
      await expectVerdict(node, [check], "OK", code);
    }
    assert.deepEqual([...(await node.pods()).keys()], [`default/one-${nodeName}`]);
  });

  test("a node's name is lower-cased in its pods' names, dots kept", async (t) => {
    const node = await createNode(t, { "a.yaml": podManifest("a", { namespace: "kube-system" }) });
    await node.start({ hostname: "Node-K.Example" });
    const pods = await until("the pod", async () => {
      const found = await node.pods();
      return found.size > 0 ? found : undefined;
    });
    assert.deepEqual([...pods.keys()], ["kube-system/a-node-k.example"]);
    const named = ["--node-name", "Node-K.Example"];
    await expectVerdict(node, ["static-pods", ...named], "OK", "StaticPodsHealthy");
    const { run } = await expectVerdict(node, ["manifests", ...named], "OK", "ManifestsClean");
    assert.match(JSON.stringify(checkOf(run, "manifests").data.pods), /"a-node-k\.example"/);
  });
});

/** Waits for a full scan: only that finds a file whose coming inotify does not tell, behind a link to a folder's file. */
async function fullScan(node: Node): Promise<void> {
  const target = join(node.folder, "staging", "target.yaml");
  const name = `default/scanned-${nodeName}`;
  symlinkSync(target, join(node.manifests, "scanned.yaml"));
  writeFileSync(target, yaml("scanned"));
  await until("a full scan", async () => (await node.pods()).has(name));
  node.remove("scanned.yaml");
  await until("the end of the scanned pod", async () => !(await node.pods()).has(name));
}
