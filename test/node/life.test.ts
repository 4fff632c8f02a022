// The life of a node from the first start of its kubelet on, the built binary asked at every step: its code, its status
// and its exit status in all three profiles.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { execProbes } from "../agent.ts";
import { binary, checkOf, metricOf, probeJson } from "../support.ts";
import {
  assertVerdict,
  before37,
  controlPlane,
  createNode,
  expectVerdict,
  type Node,
  nodeName,
  only,
  openWatch,
  podManifest,
  profiles,
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

/** Runs the check `watch` in every profile at once, does something while each holds its watch, and gives how they ended. */
async function whileWatching(node: Node, hold: readonly string[], work: () => Promise<void>) {
  const callsOf = (method: string) => node.log().split(`"${method} called"`).length - 1;
  const before = { watches: callsOf("WatchPods"), lists: callsOf("ListPods") };
  const runs = profiles.map((profile) => probeJson(["watch", ...node.options, ...hold, "--profile", profile]));
  await until("each watch and its listing", () => {
    return callsOf("WatchPods") === before.watches + runs.length && callsOf("ListPods") === before.lists + runs.length;
  });
  // Whoever asked before has its answer by the time of this one.
  await node.pods();
  await work();
  return Promise.all(runs);
}

/** Does something while the check `watch` runs again and again, and gives the codes it said. */
async function codesOfWatch(node: Node, work: () => Promise<void>): Promise<readonly string[]> {
  let isOver = false;
  const codes = new Set<string>();
  const asking = (async () => {
    do codes.add((await probeJson(["watch", ...node.options, "--hold", "500ms"])).code);
    while (!isOver);
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await asking;
  }
  return [...codes];
}

describe("the life of a node", { concurrency: 4, ...only }, () => {
  test("before the first start, the start, and four static pods", async (t) => {
    const node = await createNode(t, four);
    for (const check of ["socket", "ready", "rate-limit", "watch", "all"]) {
      await expectVerdict(node, [check], "CRITICAL", "SocketMissing");
    }
    await expectVerdict(node, ["static-pods"], "UNKNOWN", "InventoryUnavailable");
    // It needs no kubelet.
    await expectVerdict(node, ["manifests"], "OK", "ManifestsClean", { says: /4 pods of as many files/ });
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
    await expectVerdict(node, ["rate-limit", "--samples", "3"], "OK", "RateLimitHeadroom");
    await expectVerdict(node, ["manifests"], "OK", "ManifestsClean");
    await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy", { says: /watch of 4 pods synced/ });
    await expectVerdict(node, ["watch", "--hold", "500ms", "--slow"], "OK", "WatchHealthy", { says: /not dropped/ });
    assert.deepEqual(await execProbes(node.socket), { startup: 0, readiness: 0, liveness: 0 });
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

  test("manifests are added, edited and removed, and a watch never diverges from a listing", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    const codes = await codesOfWatch(node, async () => {
      node.write("vip.yaml", podManifest("vip", { namespace: "kube-system" }));
      await expectVerdict(node, ["manifests"], "OK", "ManifestsClean", { says: /5 pods of as many/ });
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
        meanwhile: ["StaticPodNotReady", "StaticPodMissing", "StaticPodsHealthy"],
        says: /^5 of 5 /,
      });
      node.write("etcd.yaml", etcdManifest("2"));
      const { run } = await expectVerdict(node, ["manifests", "--pods", "5:5"], "OK", "ManifestsClean");
      assert.match(JSON.stringify(checkOf(run, "manifests").data.pods), /etcd:2/);
      await untilEtcd(node, "the edited pod", (image) => image?.endsWith(":2") ?? false);
      await expectVerdict(node, ["static-pods"], "WARNING", "StaticPodNotReady");
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
        meanwhile: ["StaticPodNotReady"],
        says: /^5 of 5 /,
      });
      node.remove("vip.yaml");
      await expectVerdict(node, ["manifests"], "OK", "ManifestsClean", { says: /4 pods of as many/ });
      await expectVerdict(node, ["manifests", "--pods", "5:5"], "CRITICAL", "StaticPodMissing");
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
        meanwhile: ["StaticPodUnexpected", "StaticPodsHealthy"],
        says: /^4 of 4 /,
      });
    });
    assert.deepEqual(codes, ["WatchHealthy"]);
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
    await expectVerdict(node, ["manifests"], "OK", "ManifestsClean");
    // What is no YAML any more names no pod either.
    node.write("etcd.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd\n");
    await untilEtcd(node, "the pod to go", (image) => image === undefined);
    for (const check of ["static-pods", "manifests", "all"]) {
      await expectVerdict(node, [check], "WARNING", "ManifestIgnored", { says: /etcd\.yaml: not YAML/ });
    }
    await expectVerdict(node, ["static-pods", "--expect", etcd], "CRITICAL", "StaticPodMissing", { says: /etcd/ });
    await expectVerdict(node, ["static-pods", "--expect-count", "4:4"], "CRITICAL", "StaticPodMissing");
    await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy", { says: /watch of 3 pods/ });
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
    // The backup still supplies the pod.
    node.write("etcd.yaml", podManifest("etcd", { namespace: "kube-system", container: { image: "" } }));
    for (const check of ["manifests", "all"]) {
      await expectVerdict(node, [check], "WARNING", "ManifestIgnored", { says: /comes from another file/ });
    }
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    node.write("etcd.yaml", etcdManifest("1"));
    await expectVerdict(node, ["manifests"], "WARNING", "ManifestShadowed", shadowed);
    node.remove("etcd.yaml.bak");
    await expectVerdict(node, ["manifests"], "OK", "ManifestsClean");
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
    await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
    await expectVerdict(node, ["static-pods"], "CRITICAL", "StaticPodFailed", { says: /phase Succeeded/ });
  });

  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    test(`the kubelet is ended with ${signal} while a watch is open, and started again`, async (t) => {
      const node = await createNode(t, four);
      await node.start();
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
      const watch = await openWatch(node);
      const first = statSync(node.socket);
      const hold = ["--timeout", "100s", "--hold", "80s"];
      const watched = await whileWatching(node, hold, () => node.stop(signal));
      // The check opens its watch once more, and there is nobody any more.
      for (const [i, profile] of profiles.entries()) assertVerdict(watched[i]!, profile, "CRITICAL", "SocketDead");
      const { code, message } = await watch.ended;
      // With SIGTERM the process may be gone before its last words are sent.
      const ends = signal === "SIGTERM" ? ["WatchDropped", "ConnectionLost"] : ["ConnectionLost"];
      assert.ok(ends.includes(code), `${code}: ${message}`);
      t.diagnostic(`the watch ended with ${code}`);
      assert.equal(statSync(node.socket).ino, first.ino, "the file stays");
      for (const check of ["socket", "ready", "rate-limit", "watch", "all"]) {
        await expectVerdict(node, [check], "CRITICAL", "SocketDead", { meanwhile: [] });
      }
      await expectVerdict(node, ["manifests"], "OK", "ManifestsClean", { meanwhile: [] });
      await expectVerdict(node, ["static-pods"], "UNKNOWN", "InventoryUnavailable", { meanwhile: [] });
      assert.deepEqual(await execProbes(node.socket), { startup: 1, readiness: 1, liveness: 1 });
      node.launch();
      const { before } = await expectVerdict(node, ["ready"], "OK", "Ready", {
        meanwhile: ["SocketDead", "SocketMissing", "Initializing", "RateLimited"],
      });
      t.diagnostic(`before Ready: ${before.join(", ") || "nothing else"}`);
      const second = statSync(node.socket);
      assert.ok(second.mtimeMs > first.mtimeMs, "another birth");
      await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
      await expectVerdict(node, ["rate-limit"], "OK", "RateLimitHeadroom");
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
        meanwhile: ["StaticPodNotReady", "StaticPodMissing"],
        says: /^4 of 4 /,
      });
    });
  }

  test("a watch is opened again at a kubelet that has taken the place of the one that ends", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy");
    const aside = `${node.socket}.aside`;
    renameSync(node.socket, aside);
    const next = await createNode(t);
    await next.start({ rootDir: node.root, config: { staticPodPath: node.manifests } });
    await until("the pods of the next kubelet", async () => {
      const pods = [...(await next.pods()).values()];
      return pods.length === 4 && pods.every(({ ready }) => ready);
    });
    const place = `${next.socket}.next`;
    renameSync(next.socket, place);
    renameSync(aside, node.socket);
    const watched = await whileWatching(node, ["--hold", "8s"], async () => {
      renameSync(place, next.socket);
      await node.stop("SIGKILL");
    });
    for (const [i, profile] of profiles.entries()) {
      assertVerdict(watched[i]!, profile, "OK", "WatchHealthy");
      assert.equal(checkOf(watched[i]!, "watch").data.reconnects, 1);
    }
  });

  test("the gate is turned off: the file of the last kubelet is dead, and none is made for a new root", async (t) => {
    const node = await createNode(t, four);
    await node.start();
    await node.stop("SIGTERM");
    await node.start({ gate: false });
    for (const check of ["socket", "ready", "watch", "rate-limit", "all"]) {
      await expectVerdict(node, [check], "CRITICAL", "SocketDead");
    }
    await expectVerdict(node, ["manifests"], "OK", "ManifestsClean");
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
    await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
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
    const among = { command: [...inside, binary] };
    const stale = ["--socket", file];
    const fresh = ["--socket", join(folder, "pods-api.sock")];
    for (const socket of [stale, fresh]) await expectVerdict(node, ["ready", ...socket], "OK", "Ready", among);
    await node.stop("SIGTERM");
    await node.start();
    await expectVerdict(node, ["ready"], "OK", "Ready");
    const why = { ...among, meanwhile: [], says: /mount the directory, not the file/ };
    for (const check of ["socket", "ready", "watch", "rate-limit"]) {
      await expectVerdict(node, [check, ...stale], "CRITICAL", "SocketDead", why);
    }
    await expectVerdict(node, ["ready", ...fresh], "OK", "Ready", { ...among, meanwhile: [] });
    await expectVerdict(node, ["watch", "--hold", "500ms", ...fresh], "OK", "WatchHealthy", among);
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
    await expectVerdict(node, ["watch"], "WARNING", "Initializing", { meanwhile: [] });
    // What it refuses it has let through first.
    await expectVerdict(node, ["rate-limit"], "OK", "RateLimitHeadroom");
    await expectVerdict(node, ["manifests"], "OK", "ManifestsClean");
    // A restart of the asking container would not help.
    assert.deepEqual(await execProbes(node.socket), { startup: 1, readiness: 1, liveness: 0 });
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
    await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
  });

  test("restarted with a dead API server: 1.36 lists what it has", before37, async (t) => {
    const node = await createNode(t, four);
    await node.start({ apiPort: 8080 });
    await expectVerdict(node, ["ready"], "OK", "Ready");
    await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", {
      meanwhile: ["StaticPodNotReady", "StaticPodMissing"],
      says: /^4 of 4 /,
    });
    await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
    await expectVerdict(node, ["rate-limit"], "OK", "RateLimitHeadroom");
  });
});
