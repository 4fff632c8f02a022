// The life of a node from the first start of its kubelet on, the built binary asked at every step: its code, its status
// and its exit status in all three profiles.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { accepts, binary, checkOf, metricOf, probe, probeJson } from "../support.ts";
import {
  before37,
  controlPlane,
  createNode,
  expectVerdict,
  type Node,
  nodeName,
  only,
  openWatch,
  podManifest,
  registered,
  since37,
  until,
} from "./node.ts";

const etcd = `kube-system/etcd-${nodeName}`;
const etcdManifest = (tag: string, spec: object = {}) =>
  podManifest("etcd", { namespace: "kube-system", container: { image: `registry.example/etcd:${tag}` }, spec });

/** The manifests of a control plane. */
const four = {
  ...Object.fromEntries(controlPlane.map((name) => [`${name}.yaml`, podManifest(name, { namespace: "kube-system" })])),
  "etcd.yaml": etcdManifest("1"),
};

/** Waits until a listing says so of the pod. */
const untilEtcd = (node: Node, what: string, says: (image: string | undefined) => boolean) =>
  until(what, async () => says((await node.pods()).get(etcd)?.images[0]));

/** The exit statuses of `ready` for each of a container's probes. */
async function askAsContainer(node: Node): Promise<Readonly<Record<string, number | null>>> {
  const statuses: Record<string, number | null> = {};
  for (const purpose of ["startup", "readiness", "liveness"]) {
    const { status } = await probe(["ready", ...node.options, "--profile", "kube", "--for", purpose]);
    statuses[purpose] = status;
  }
  return statuses;
}

describe("the life of a node", { concurrency: 4, ...only }, () => {
  test("before the first start, the start, and four static pods", async (t) => {
    const node = await createNode(t, four);
    for (const check of ["socket", "ready", "rate-limit", "all"]) {
      await expectVerdict(node, [check], "CRITICAL", "SocketMissing");
    }
    await expectVerdict(node, ["static-pods"], "UNKNOWN", "InventoryUnavailable");
    node.launch();
    const { before } = await expectVerdict(node, ["ready"], "OK", "Ready", {
      meanwhile: ["SocketMissing", "Initializing", "RateLimited"],
    });
    t.diagnostic(`before Ready: ${before.join(", ") || "nothing else"}`);
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
      meanwhile: ["StaticPodNotReady", "StaticPodMissing"],
      says: /^4 of 4 /,
    });
    await expectVerdict(node, ["static-pods", "--source", "watch"], "OK", "StaticPodsHealthy");
    await expectVerdict(node, ["socket"], "OK", "SocketSecure");
    await expectVerdict(node, ["rate-limit"], "OK", "RateLimitHeadroom");
    assert.deepEqual(await askAsContainer(node), { startup: 0, readiness: 0, liveness: 0 });
    const { run } = await expectVerdict(node, ["all"], "OK", "SocketSecure");
    for (const [check, code] of [
      ["socket", "SocketSecure"],
      ["ready", "Ready"],
      ["manifests", "ManifestsClean"],
      ["static-pods", "StaticPodsHealthy"],
      ["rate-limit", "RateLimitHeadroom"],
    ] as const) {
      assert.equal(checkOf(run, check).code, code);
    }
  });

  test("ready --wait outlasts a start", async (t) => {
    const node = await createNode(t, four);
    const waiting = probeJson(["ready", "--wait", ...node.options, "--timeout", "60s"]);
    node.launch();
    const { code, ended } = await waiting;
    assert.deepEqual([code, ended.status], ["Ready", 0]);
    await node.stop();
  });

  test("manifests are added, edited and removed", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    node.write("vip.yaml", podManifest("vip", { namespace: "kube-system" }));
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
      meanwhile: ["StaticPodNotReady", "StaticPodMissing", "StaticPodsHealthy"],
      says: /^5 of 5 /,
    });
    node.write("etcd.yaml", etcdManifest("2"));
    await untilEtcd(node, "the edited pod", (image) => image?.endsWith(":2") ?? false);
    await expectVerdict(node, ["static-pods"], "WARNING", "StaticPodNotReady");
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
      meanwhile: ["StaticPodNotReady"],
      says: /^5 of 5 /,
    });
    node.remove("vip.yaml");
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
      meanwhile: ["StaticPodUnexpected", "StaticPodsHealthy"],
      says: /^4 of 4 /,
    });
  });

  test("a manifest is broken: the pod goes, and the probe says why", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    node.write("etcd.yaml", podManifest("etcd", { namespace: "kube-system", container: { image: "" } }));
    await untilEtcd(node, "the pod to go", (image) => image === undefined);
    for (const check of ["static-pods", "manifests", "all"]) {
      await expectVerdict(node, [check], "CRITICAL", "ManifestRefused", { says: /etcd\.yaml.*image/ });
    }
    node.write("etcd.yaml", etcdManifest("1"));
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    // What is no YAML any more names no pod either.
    node.write("etcd.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd\n");
    await untilEtcd(node, "the pod to go", (image) => image === undefined);
    for (const check of ["static-pods", "manifests", "all"]) {
      await expectVerdict(node, [check], "WARNING", "ManifestIgnored", { says: /etcd\.yaml: not YAML/ });
    }
    await expectVerdict(node, ["static-pods", "--expect", etcd], "CRITICAL", "StaticPodMissing", { says: /etcd/ });
    await expectVerdict(node, ["static-pods", "--expect-count", "4:4"], "CRITICAL", "StaticPodMissing");
  });

  test("a manifest is duplicated by a .bak of another version", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    node.write("etcd.yaml.bak", etcdManifest("0"));
    await untilEtcd(node, "the backup to run", (image) => image?.endsWith(":0") ?? false);
    // The manifest that is read is the backup: the pod is what the folder asks for.
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
      meanwhile: ["StaticPodNotReady"],
      says: /^4 of 4 /,
    });
    const { run } = await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    assert.equal(metricOf(run, "static-pods", "present"), 4);
    const shadowed = { says: /etcd\.yaml.*etcd\.yaml\.bak/ };
    for (const check of ["manifests", "all"]) {
      await expectVerdict(node, [check], "WARNING", "ManifestShadowed", shadowed);
    }
    node.remove("etcd.yaml.bak");
    await untilEtcd(node, "the manifest to run", (image) => image?.endsWith(":1") ?? false);
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
  });

  test("containers fail: restarted, in a crash loop, without an image, ended for good", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    assert.equal(await node.runtime(`crash ${etcd} 3`), 1);
    await expectVerdict(node, ["static-pods"], "WARNING", "StaticPodNotReady", {
      says: /etcd-node-k: .*CrashLoopBackOff, last ended with exit code 3/,
    });
    await expectVerdict(node, ["static-pods", "--ready-grace", "1s"], "CRITICAL", "StaticPodNotReady");
    await expectVerdict(node, ["static-pods", "-w", "1", "-c", "2"], "OK", "StaticPodsHealthy");
    await node.runtime("refuse registry.example/none:1");
    node.write("none.yaml", podManifest("none", { container: { image: "registry.example/none:1" } }));
    const none = ["static-pods", "--expect", `default/none-${nodeName}`, "--severity", "StaticPodUnexpected=OK"];
    await expectVerdict(node, none, "WARNING", "StaticPodNotReady", { says: /ErrImagePull|ImagePullBackOff/ });
    node.write("once.yaml", podManifest("once", { spec: { restartPolicy: "Never" } }));
    const once = ["static-pods", "--expect", `default/once-${nodeName}`, "--severity", "StaticPodUnexpected=OK"];
    await expectVerdict(node, once, "OK", "StaticPodsHealthy");
    assert.equal(await node.runtime(`exit default/once-${nodeName} 7`), 1);
    await expectVerdict(node, once, "CRITICAL", "StaticPodFailed", { says: /phase Failed.*exit code 7/ });
    await expectVerdict(node, ["static-pods"], "CRITICAL", "StaticPodFailed");
  });

  test("a pod that ends well is DELETED for a watch, and listed as Succeeded", async (t) => {
    const name = `default/once-${nodeName}`;
    const node = await createNode(t, { "once.yaml": podManifest("once", { spec: { restartPolicy: "Never" } }) });
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    const watch = await openWatch(node);
    await node.runtime(`exit ${name} 0`);
    await until("DELETED", () => watch.events.some(({ type }) => type === "deleted"));
    assert.equal((await node.pods()).get(name)?.phase, "Succeeded");
    await expectVerdict(node, ["static-pods"], "CRITICAL", "StaticPodFailed", { says: /phase Succeeded/ });
  });

  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    test(`the kubelet is ended with ${signal} while a watch is open, and started again`, async (t) => {
      const node = await createNode(t, four);
      await node.start();
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
      const watch = await openWatch(node);
      const first = statSync(node.socket);
      await node.stop(signal);
      const { code, message } = await watch.ended;
      // With SIGTERM the process may be gone before its last words are sent.
      const ends = signal === "SIGTERM" ? ["WatchDropped", "ConnectionLost"] : ["ConnectionLost"];
      assert.ok(ends.includes(code), `${code}: ${message}`);
      t.diagnostic(`the watch ended with ${code}`);
      assert.equal(statSync(node.socket).ino, first.ino, "the file stays");
      for (const check of ["socket", "ready", "rate-limit", "all"]) {
        await expectVerdict(node, [check], "CRITICAL", "SocketDead", { meanwhile: [] });
      }
      await expectVerdict(node, ["static-pods"], "UNKNOWN", "InventoryUnavailable", { meanwhile: [] });
      assert.deepEqual(await askAsContainer(node), { startup: 1, readiness: 1, liveness: 1 });
      node.launch();
      const { before } = await expectVerdict(node, ["ready"], "OK", "Ready", {
        meanwhile: ["SocketDead", "SocketMissing", "Initializing", "RateLimited"],
      });
      t.diagnostic(`before Ready: ${before.join(", ") || "nothing else"}`);
      const second = statSync(node.socket);
      assert.ok(second.mtimeMs > first.mtimeMs, "another birth");
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
        meanwhile: ["StaticPodNotReady", "StaticPodMissing"],
        says: /^4 of 4 /,
      });
    });
  }

  test("the gate is turned off: the file of the last kubelet is dead, and none is made for a new root", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await node.stop("SIGTERM");
    await node.start({ gate: false });
    for (const check of ["socket", "ready", "all"]) await expectVerdict(node, [check], "CRITICAL", "SocketDead");
    await node.stop();
    await node.start({ gate: false, rootDir: join(node.folder, "fresh") });
    assert.equal(existsSync(join(node.root, "pods-api")), false);
    await expectVerdict(node, ["ready"], "CRITICAL", "SocketMissing");
  });

  test("another root folder", async (t) => {
    const node = await createNode(t, four);
    const rootDir = join(node.folder, "elsewhere");
    await node.start({ rootDir });
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    await expectVerdict(node, ["ready", "--kubelet-root", join(node.folder, "root")], "CRITICAL", "SocketMissing");
    const socket = ["--socket", `unix://${node.socket}`];
    await expectVerdict(node, ["ready", ...socket], "OK", "Ready");
  });

  test("a root folder of 82 bytes is served, with one of 86 the kubelet ends: no path of over 105 bytes is served", async (t) => {
    const node = await createNode(t, four);
    const rootOf = (bytes: number) => `${node.folder}/`.padEnd(bytes, "d");
    await node.start({ rootDir: rootOf(82) });
    assert.equal(node.socket.length, 105);
    await expectVerdict(node, ["socket"], "OK", "SocketSecure");
    await expectVerdict(node, ["ready"], "OK", "Ready");
    await node.stop();
    node.launch({ rootDir: rootOf(86) });
    // Its temporary names for this socket are shorter, so there may have been one before the kubelet failed at another.
    await until("the kubelet to end", () => node.ended !== undefined);
    for (const check of ["socket", "ready", "all"]) await expectVerdict(node, [check], "UNKNOWN", "PathTooLong");
  });

  for (const [umask, mode] of [
    ["000", "0777"],
    ["077", "0700"],
  ] as const) {
    test(`a kubelet under umask ${umask}`, async (t) => {
      const node = await createNode(t, four);
      await node.start({ umask });
      // The folder of the node is closed to others at first.
      const closed = await probeJson(["socket", ...node.options]);
      t.diagnostic(`in a closed folder: ${closed.status} ${closed.code} ${closed.summary}`);
      assert.equal(closed.code === "SocketSecure" || closed.status === "WARNING", true, closed.summary);
      for (const path of [node.folder, node.root, dirname(node.socket)]) chmodSync(path, 0o755);
      if (umask === "000") await expectVerdict(node, ["socket"], "CRITICAL", "SocketInsecure", { says: /0777/ });
      else await expectVerdict(node, ["socket"], "OK", "SocketSecure");
      const { run } = await expectVerdict(node, ["ready"], "OK", "Ready");
      assert.equal(run.code, "Ready");
      assert.equal(checkOf(await probeJson(["socket", ...node.options]), "socket").data.mode, mode);
    });
  }

  test("a mounted socket file is stale after a restart, a mounted folder is not", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    const file = join(node.folder, "file.sock");
    const folder = join(node.folder, "mounted-folder");
    writeFileSync(file, "");
    mkdirSync(folder);
    const inside = await node.mounted([node.socket, file], [dirname(node.socket), folder]);
    const ask = async (socket: string) => {
      const args = ["ready", "--socket", socket, "--timeout", "20s", "--output", "json"];
      const { stdout } = await inside(binary, args);
      return JSON.parse(stdout) as { readonly code: string; readonly summary: string; readonly exitStatus: number };
    };
    const folderSocket = join(folder, "pods-api.sock");
    for (const socket of [file, folderSocket]) {
      await until(`${socket} to be ready`, async () => (await ask(socket)).code === "Ready");
    }
    await node.stop("SIGTERM");
    await node.start();
    await expectVerdict(node, ["ready"], "OK", "Ready");
    const stale = await ask(file);
    assert.deepEqual([stale.code, stale.exitStatus], ["SocketDead", 2]);
    assert.match(stale.summary, /mount the directory, not the file/);
    const fresh = await ask(folderSocket);
    assert.deepEqual([fresh.code, fresh.exitStatus], ["Ready", 0]);
  });

  test("restarted with a dead API server: initializing for as long as it lasts, with its age", since37, async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    await node.stop("SIGTERM");
    await node.start({ apiPort: 8080 });
    const initializing = { says: /"Kubelet is initializing", \d+ m?s after its start/ };
    await expectVerdict(node, ["ready"], "WARNING", "Initializing", { ...initializing, meanwhile: [] });
    await expectVerdict(node, ["socket"], "OK", "SocketSecure");
    // A restart of the asking container would not help.
    assert.deepEqual(await askAsContainer(node), { startup: 1, readiness: 1, liveness: 0 });
    const { run } = await expectVerdict(node, ["static-pods"], "UNKNOWN", "InventoryUnavailable");
    assert.equal(checkOf(run, "static-pods").findings[0]?.cause, "Initializing");
    const { run: all } = await expectVerdict(node, ["all"], "WARNING", "Initializing");
    assert.equal(checkOf(all, "static-pods").skipped?.cause, "Initializing");
    assert.equal(checkOf(all, "ready").skipped, undefined);
    await expectVerdict(node, ["ready", "--init-grace", "1s"], "CRITICAL", "Initializing", {
      meanwhile: ["Initializing"],
    });
    node.serveApi(8080, { nodes: registered });
    await expectVerdict(node, ["ready"], "OK", "Ready", { meanwhile: ["Initializing"] });
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", { says: /^4 of 4 / });
  });

  test("restarted with a dead API server: 1.36 lists what it has", before37, async (t) => {
    const node = await createNode(t, four);
    await node.start({ apiPort: 8080 });
    await expectVerdict(node, ["ready"], "OK", "Ready");
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
      meanwhile: ["StaticPodNotReady", "StaticPodMissing"],
      says: /^4 of 4 /,
    });
    assert.ok(await accepts(node.socket));
  });
});
