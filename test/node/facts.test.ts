// What docs/pods-api.md says of the kubelet, one test a fact: a kubelet release that changes one fails one.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { type DescMessage, fromBinary, toJson } from "@bufbuild/protobuf";
import type { PodsClient } from "../../lib/client.ts";
import { Fault } from "../../lib/fault.ts";
import { PodSchema } from "../../proto/gen/pod_pb.js";
import { accepts, asOtherUser, binary, binaryForAll, execute, independentClient } from "../support.ts";
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
  settled,
  since37,
  until,
} from "./node.ts";
import { fieldsOf, openRaw, rawCall } from "./raw.ts";

const list = "/v1alpha1.Pods/ListPods";
const get = "/v1alpha1.Pods/GetPod";
const watch = "/v1alpha1.Pods/WatchPods";
const ownUid = "11111111-2222-3333-4444-555555555555";

function uidRequest(uid: string): Uint8Array {
  const text = Buffer.from(uid);
  return uid === "" ? new Uint8Array(0) : Buffer.concat([Buffer.from([10, text.length]), text]);
}

/** Every pod of a listing, as its bytes. */
async function listRaw(node: Node, metadata: Readonly<Record<string, string>> = {}): Promise<readonly Buffer[]> {
  const { status, messages } = await until("a listing", async () => {
    const answer = await rawCall(node.socket, list, new Uint8Array(0), metadata);
    return answer.status === 8 || answer.status === 9 ? undefined : answer;
  });
  assert.equal(status, 0);
  return fieldsOf(messages[0]!).get(1) ?? [];
}

/** How a call of the limiter's ended: let through or not. */
async function isAdmitted(client: PodsClient): Promise<boolean> {
  try {
    await client.get("no-such-pod");
    return true;
  } catch (error) {
    if (error instanceof Fault && error.code === "RateLimited") return false;
    if (error instanceof Fault && error.code === "Initializing") return true;
    throw error;
  }
}

describe("facts of the Pods API", { concurrency: 3, ...only }, () => {
  test("a kubelet with four static pods", async (t) => {
    const names = [...controlPlane.map((name) => `kube-system/${name}-${nodeName}`), `default/plain-${nodeName}`];
    const node = await createNode(t, {
      ...Object.fromEntries(
        controlPlane.map((name) => [`${name}.yaml`, podManifest(name, { namespace: "kube-system" })]),
      ),
      "plain.yaml": podManifest("plain", {
        metadata: { uid: ownUid },
        container: { env: [{ name: "SECRET", value: "the-value-of-an-environment" }] },
      }),
    });
    const startedMs = Date.now();
    await node.start();
    const servedMs = Date.now();
    await settled(node, names);

    await t.test("v1alpha1.Pods is served, v1beta1.Pods and v1.Pods are not", async () => {
      for (const service of ["v1beta1.Pods", "v1.Pods"]) {
        const { status, message } = await rawCall(node.socket, `/${service}/ListPods`);
        assert.deepEqual([status, message], [12, `unknown service ${service}`]);
      }
      assert.equal((await listRaw(node)).length, names.length);
    });

    await t.test("neither reflection nor health is served", async () => {
      for (const method of [
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      ]) {
        assert.equal((await rawCall(node.socket, method)).status, 12, method);
      }
    });

    await t.test("an error without a body is trailers-only", async () => {
      const answer = await until("an answer", async () => {
        const found = await rawCall(node.socket, get, uidRequest("nobody"));
        return found.status === 8 ? undefined : found;
      });
      assert.deepEqual([answer.status, answer.trailersOnly], [5, true]);
    });

    await t.test("a pod is a bare core/v1 Pod, without the k8s prefix and without type", async () => {
      for (const bytes of await listRaw(node)) {
        assert.equal(bytes[0], 10, "metadata comes first");
        assert.deepEqual([...fieldsOf(bytes).keys()], [1, 2, 3]);
        assert.notEqual(fromBinary(PodSchema, bytes).metadata?.name, "");
      }
    });

    await t.test("GetPod gives the bytes that ListPods gives", async () => {
      for (const bytes of await listRaw(node)) {
        const { uid } = fromBinary(PodSchema, bytes).metadata!;
        const { messages } = await until("an answer", async () => {
          const answer = await rawCall(node.socket, get, uidRequest(uid));
          return answer.status === 8 ? undefined : answer;
        });
        assert.deepEqual(fieldsOf(messages[0]!).get(1), [bytes]);
      }
    });

    await t.test("unknown metadata is ignored", async () => {
      assert.equal((await listRaw(node, { "x-no-such-metadata": "1" })).length, names.length);
    });

    await t.test("a field mask is ignored: an answer holds whole pods with environment values", async () => {
      const masked = await listRaw(node, { "x-kubernetes-fieldmask": "metadata.name" });
      assert.ok(Buffer.concat(masked).includes("the-value-of-an-environment"));
    });

    await t.test("the socket is 0755 root:root in a folder 0750 root:root under umask 022", () => {
      assert.deepEqual(modes(node), { socket: "755 0:0", folder: "750 0:0" });
    });

    await t.test("/proc/net/unix shows a temporary name in place of the socket's", () => {
      const table = readFileSync(`/proc/${node.pid}/net/unix`, "utf8");
      assert.doesNotMatch(table, /pods-api\.sock/);
      assert.match(table, new RegExp(`${join(node.root, "pods-api")}/\\d+$`, "m"));
    });

    await t.test("the socket's mtime is the moment serving began, and a chmod does not move it", () => {
      const { mtimeMs } = statSync(node.socket);
      // The file system's clock ticks in steps of up to 10 ms.
      assert.ok(mtimeMs >= startedMs - 10 && mtimeMs <= servedMs, `${startedMs} ${mtimeMs} ${servedMs}`);
      chmodSync(node.socket, 0o700);
      chmodSync(node.socket, 0o755);
      assert.equal(statSync(node.socket).mtimeMs, mtimeMs);
    });

    await t.test("connecting needs the permission to write: another user has none, root does", async () => {
      for (const path of [node.folder, node.root, join(node.root, "pods-api")]) chmodSync(path, 0o755);
      const command = [...asOtherUser, binaryForAll(t)];
      await expectVerdict(node, ["ready"], "UNKNOWN", "PermissionDenied", { command, meanwhile: [] });
      chmodSync(node.socket, 0o757);
      await expectVerdict(node, ["ready"], "OK", "Ready", { command, meanwhile: ["RateLimited"] });
      chmodSync(node.socket, 0o755);
    });

    await t.test("another service of the kubelet does not know v1alpha1.Pods, and says so", async () => {
      const other = join(node.root, "pod-resources", "kubelet.sock");
      const { status, message } = await rawCall(other, list);
      assert.deepEqual([status, message], [12, "unknown service v1alpha1.Pods"]);
      await expectVerdict(node, ["ready", "--socket", other], "UNKNOWN", "WrongService", { meanwhile: [] });
    });

    await t.test("the documentation's older path is not served", () => {
      assert.equal(existsSync(join(node.root, "pods", "kubelet.sock")), false);
    });

    await t.test("pods are sorted by UID", async () => {
      const uids = (await listRaw(node)).map((bytes) => fromBinary(PodSchema, bytes).metadata!.uid);
      assert.deepEqual(uids, [...uids].sort());
    });

    await t.test("a static pod has source file, its hash for UID, and a time of taking up", async () => {
      for (const bytes of await listRaw(node)) {
        const { annotations, uid, name } = fromBinary(PodSchema, bytes).metadata!;
        assert.equal(annotations["kubernetes.io/config.source"], "file");
        assert.equal(annotations["kubernetes.io/config.hash"], uid);
        assert.ok(Date.parse(annotations["kubernetes.io/config.seen"]!) >= startedMs - 10);
        assert.equal(uid === ownUid, name === `plain-${nodeName}`, "the manifest's own metadata.uid is used");
      }
    });

    await t.test("a static pod has no owner, time of creation or resource version", async () => {
      for (const bytes of await listRaw(node)) {
        const metadata = fieldsOf(fieldsOf(bytes).get(1)![0]!);
        assert.equal(metadata.get(13), undefined, "ownerReferences");
        assert.deepEqual((metadata.get(6) ?? []).map(String).join(""), "", "resourceVersion");
        assert.equal(Buffer.concat(metadata.get(8) ?? []).length, 0, "creationTimestamp");
      }
    });

    await t.test("an unknown and an empty UID are NOT_FOUND", async () => {
      for (const uid of ["no-such-pod", ""]) {
        const answer = await until("an answer", async () => {
          const found = await rawCall(node.socket, get, uidRequest(uid));
          return found.status === 8 ? undefined : found;
        });
        assert.deepEqual([answer.status, answer.message], [5, `pod with UID ${uid} not found`]);
      }
    });

    await t.test("a watch brings ADDED for each pod, then INITIAL_SYNC_COMPLETE", async () => {
      const { events } = await openWatch(node);
      const initial = events.slice(
        0,
        events.findIndex(({ type }) => type === "synced"),
      );
      assert.deepEqual(
        initial
          .map((event) => (event.type === "added" ? `${event.pod.namespace}/${event.pod.name}` : event.type))
          .sort(),
        [...names].sort(),
      );
    });

    await t.test("INITIAL_SYNC_COMPLETE has no pod, and MODIFIED a whole one", async () => {
      const events = independentClient(t, node.socket).watchPods({})[Symbol.asyncIterator]();
      const next = async (type: number) => {
        for (;;) {
          const { value } = await events.next();
          if (value.type === type) return value.pod;
        }
      };
      assert.equal((await next(4)).length, 0);
      assert.equal(await node.runtime(`exit default/plain-${nodeName} 0`), 1);
      assert.deepEqual([...fieldsOf(await next(2)).keys()], [1, 2, 3]);
    });

    await t.test("the limit is 100 tokens a second with a burst of 10, one for each ListPods and GetPod", async () => {
      for (const call of [isAdmitted, isListed]) {
        const client = node.client();
        await client.connect();
        const measured = await until("a measurement without a gap", async () => {
          await until("a full bucket", async () => {
            const answers = await Promise.all(Array.from({ length: 10 }, () => call(client)));
            await new Promise((resolve) => setTimeout(resolve, 150));
            return answers.every(Boolean);
          });
          return measureLimit(() => call(client));
        });
        const { admitted, least, most } = measured;
        assert.ok(admitted >= least && admitted <= most, `${least} <= ${admitted} <= ${most}`);
      }
    });

    await t.test("a refused call is RESOURCE_EXHAUSTED, rejected by rate limit", async () => {
      const answers = await Promise.all(Array.from({ length: 60 }, () => rawOnOne(node)));
      const refused = answers.filter(({ status }) => status === 8);
      assert.ok(refused.length > 0);
      for (const { message } of refused) assert.match(message, /rejected by rate limit/);
    });

    await t.test("a watch takes no token", async () => {
      const client = node.client();
      // Far more than the bucket can hold, and none refused.
      const watches = Array.from({ length: 100 }, async () => {
        for await (const event of client.watch()) if (event.type === "synced") return;
      });
      await Promise.all(watches);
    });

    await t.test("admitted calls are counted by version and status, refused ones in no metric", since37, async () => {
      const client = node.client();
      const before = await node.metrics();
      const answers = await Promise.all(Array.from({ length: 100 }, () => isAdmitted(client)));
      const admitted = answers.filter(Boolean).length;
      assert.ok(admitted < answers.length);
      const after = await node.metrics();
      const grown: Record<string, number> = {};
      for (const [name, value] of after) {
        const more = value - (before.get(name) ?? 0);
        if (more > 0) grown[name] = more;
      }
      const labels = '{server_api_version="v1alpha1",status_code="NotFound"}';
      assert.deepEqual(grown, {
        [`kubelet_pod_requests_total${labels}`]: admitted,
        [`kubelet_pod_requests_get_total${labels}`]: admitted,
      });
    });

    await t.test(
      "the metrics are kubelet_pod_requests_*_total and kubelet_pod_watch_events_dropped_total",
      since37,
      async () => {
        const found = await until("every metric", async () => {
          const bare = new Set([...(await node.metrics()).keys()].map((name) => name.replace(/\{.*/, "")));
          return bare.size >= 5 ? bare : undefined;
        });
        assert.deepEqual(
          [...found].sort(),
          ["get_total", "list_total", "total", "watch_total"]
            .map((name) => `kubelet_pod_requests_${name}`)
            .concat("kubelet_pod_watch_events_dropped_total"),
        );
      },
    );

    await t.test("1.36 has no metric of calls", before37, async () => {
      assert.deepEqual([...(await node.metrics()).keys()], ["kubelet_pod_watch_events_dropped_total"]);
    });

    await t.test("each call writes a line to the kubelet's log", async () => {
      const lines = () => node.log().split("ListPods called").length;
      const before = lines();
      await listRaw(node);
      await until("the line", () => lines() > before);
    });

    await t.test("four quick pings are answered with GOAWAY too_many_pings", async () => {
      const session = openRaw(node.socket);
      const said = await new Promise<string>((resolve, reject) => {
        session.once("goaway", (_code, _last, data) => resolve(String(data)));
        session.once("close", () => reject(new Error("closed without GOAWAY")));
        session.once("remoteSettings", () => {
          for (let i = 0; i < 4; i++) session.ping(() => {});
        });
      });
      session.destroy();
      assert.equal(said, "too_many_pings");
    });
  });

  for (const [umask, socket, folder] of [
    ["000", "777 0:0", "750 0:0"],
    ["077", "700 0:0", "700 0:0"],
  ] as const) {
    test(`the kubelet sets no mode of its own: under umask ${umask} the socket is 0${socket.slice(0, 3)}`, async (t) => {
      const node = await createNode(t);
      await node.start({ umask });
      assert.deepEqual(modes(node), { socket, folder });
    });
  }

  test("pods in every state: what is read of them is what the kubelet's /pods says", async (t) => {
    const nameOf = (name: string) => `default/${name}-${nodeName}`;
    const node = await createNode(t, {
      "crashes.yaml": podManifest("crashes", { metadata: { labels: { app: "x" } } }),
      "none.yaml": podManifest("none", { container: { image: "registry.example/none:1" } }),
      "once.yaml": podManifest("once", { spec: { restartPolicy: "Never" } }),
      "staged.yaml": podManifest("staged", {
        spec: { initContainers: [{ name: "init", image: "registry.example/init:1" }] },
      }),
    });
    await node.runtime("refuse registry.example/none:1");
    await node.start();
    const stateOf = async (name: string) => (await node.pods()).get(nameOf(name));
    for (const name of ["crashes", "once"]) await until(name, async () => (await stateOf(name))?.ready);
    assert.equal(await node.runtime(`crash ${nameOf("crashes")} 3`), 1);
    assert.equal(await node.runtime(`exit ${nameOf("once")} 7`), 1);
    await until("the init container", async () => (await node.runtime(`exit ${nameOf("staged")} 0`)) === 1);
    await until("the main container", async () => (await stateOf("staged"))?.ready);
    await until("the end of one", async () => (await stateOf("once"))?.phase === "Failed");
    await until("a crash loop", async () => {
      const [main] = (await stateOf("crashes"))!.containers;
      return main?.state.reason === "CrashLoopBackOff" && main.lastState.kind === "terminated";
    });

    // Two readings at two moments: what changes in between is read again.
    const byUid = (pods: readonly unknown[]) => new Map(pods.map((pod) => [(pod as Listed).metadata.uid, viewOf(pod)]));
    let said = new Map<string, unknown>();
    let read = new Map<string, unknown>();
    await until("the same of both", async () => {
      said = byUid(JSON.parse(await node.fetch("/pods")).items);
      read = byUid((await listRaw(node)).map((bytes) => toJson(PodSchema, fromBinary(PodSchema, bytes))));
      return isDeepStrictEqual(read, said);
    }).catch(() => assert.deepEqual(read, said));
    assert.equal(read.size, 4);
    const text = JSON.stringify([...said.values()]);
    for (const each of ["CrashLoopBackOff", "ImagePull", '"exitCode":7', '"init"', "startedAt", "ContainersNotReady"]) {
      assert.ok(text.includes(each), `${each} in ${text}`);
    }

    await t.test("a pod whose containers have not started is Pending, not ready for ContainersNotReady", async () => {
      const { phase, ready, readyReason } = (await stateOf("none"))!;
      assert.deepEqual([phase, ready, readyReason], ["Pending", false, "ContainersNotReady"]);
    });
  });

  test("without a root folder the socket is in /var/lib/kubelet/pods-api", async (t) => {
    const node = await createNode(t);
    await node.start({ rootDir: "default" });
    const command = ["nsenter", "--target", String(node.pid), "--mount", binary];
    const { stdout } = await until("the answer", async () => {
      const ended = await execute(command[0]!, [...command.slice(1), "ready", "--output", "json", "--timeout", "20s"]);
      return ended.status === 0 && ended;
    });
    assert.equal(JSON.parse(stdout).socket, "/var/lib/kubelet/pods-api/pods-api.sock");
  });

  test("a file of another kind in the socket's place is removed", async (t) => {
    const node = await createNode(t);
    mkdirSync(join(node.root, "pods-api"));
    writeFileSync(node.socket, "not a socket");
    await expectVerdict(node, ["socket"], "CRITICAL", "SocketNotASocket", { meanwhile: [] });
    await node.start();
    await expectVerdict(node, ["socket"], "OK", "SocketSecure");
  });

  test("files and URLs are read every 20 s by default", async (t) => {
    const node = await createNode(t);
    await node.start({ config: { fileCheckFrequency: undefined, httpCheckFrequency: undefined } });
    const { kubeletconfig } = JSON.parse(await node.fetch("/configz"));
    assert.deepEqual([kubeletconfig.fileCheckFrequency, kubeletconfig.httpCheckFrequency], ["20s", "20s"]);
  });

  test("the gate is on by default", since37, async (t) => {
    const node = await createNode(t);
    await node.start({ gate: "default" });
    assert.ok(await accepts(node.socket));
  });

  test("the gate is off by default in 1.36", before37, async (t) => {
    const node = await createNode(t);
    node.launch({ gate: "default" });
    await until("the kubelet to run", () => node.log().includes("Started kubelet"));
    assert.equal(existsSync(join(node.root, "pods-api")), false);
  });

  test(
    "not ready: List, Get and Watch answer FAILED_PRECONDITION, each call but Watch for a token",
    since37,
    async (t) => {
      const node = await createNode(t, { "a.yaml": podManifest("a") });
      await node.start({ apiPort: 1 });
      for (const [method, body] of [
        [list, new Uint8Array(0)],
        [get, uidRequest("nobody")],
        [get, uidRequest("")],
        [watch, new Uint8Array(0)],
      ] as const) {
        const { status, message } = await rawCall(node.socket, method, body);
        assert.deepEqual([status, message], [9, "Kubelet is initializing"], method);
      }
      const answers = await Promise.all(Array.from({ length: 100 }, () => isAdmitted(node.client())));
      assert.ok(answers.includes(false), "a not-ready kubelet can also answer code 8");
    },
  );

  test("1.36 has no readiness check: it lists what it has so far", before37, async (t) => {
    const node = await createNode(t, { "a.yaml": podManifest("a") });
    await node.start({ apiPort: 1 });
    await settled(node, [`default/a-${nodeName}`]);
  });
});

/**
 * Calls until the bucket, full at first, has been empty for long. Then what was let through is the burst and what ran in
 * since, whatever the machine's load; unless there was a gap in which the bucket could run over.
 */
async function measureLimit(call: () => Promise<boolean>) {
  const startMs = performance.now();
  let firstAnswerMs: number | undefined;
  let admitted = 0;
  for (;;) {
    const sentMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 30 }, () =>
        call().then((through) => {
          firstAnswerMs ??= performance.now();
          return through;
        }),
      ),
    );
    const answeredMs = performance.now();
    admitted += answers.filter(Boolean).length;
    if (answers.every(Boolean) || answeredMs - sentMs > 45) return undefined;
    if (answeredMs - startMs < 250) continue;
    const most = 10 + (answeredMs - startMs) / 10 + 1;
    const least = 10 + (sentMs - firstAnswerMs!) / 10 - 1;
    return { admitted, least, most };
  }
}

interface Listed {
  readonly metadata: { readonly uid: string };
}

type Message = Readonly<Record<string, unknown>>;

/** What the messages of the schema have of a pod's JSON: the fields that are read, without those that have no value. */
function viewOf(pod: unknown, schema: DescMessage = PodSchema): unknown {
  // The kubelet's JSON has a time as text, that of the schema as a message, empty for a time that is not set.
  if (schema.typeName === "core.v1.Time") {
    return Math.floor(typeof pod === "string" ? Date.parse(pod) / 1000 : Number((pod as Message).seconds ?? 0));
  }
  const fields = schema.fields.map(({ name, message }): [string, unknown] => {
    const value = (pod as Message)[name];
    if (value === undefined || value === null || message === undefined) return [name, value];
    return [name, Array.isArray(value) ? value.map((one) => viewOf(one, message)) : viewOf(value, message)];
  });
  return Object.fromEntries(
    fields.filter(
      ([, value]) => value !== undefined && value !== null && value !== "" && value !== 0 && value !== false,
    ),
  );
}

function modes(node: Node): { readonly socket: string; readonly folder: string } {
  const of = (path: string) => {
    const { mode, uid, gid } = statSync(path);
    return `${(mode & 0o7777).toString(8)} ${uid}:${gid}`;
  };
  return { socket: of(node.socket), folder: of(join(node.root, "pods-api")) };
}

async function isListed(client: PodsClient): Promise<boolean> {
  try {
    await client.list();
    return true;
  } catch (error) {
    if (error instanceof Fault && error.code === "RateLimited") return false;
    throw error;
  }
}

function rawOnOne(node: Node) {
  return rawCall(node.socket, get, uidRequest("nobody"));
}
