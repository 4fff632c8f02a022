// The same assertions against the simulator and the kubelet's own server, by clients that share nothing with the
// project's own: what is written here of the wire is true of a kubelet, and the simulator cannot drift from it.

import assert from "node:assert/strict";
import { lstatSync } from "node:fs";
import * as http2 from "node:http2";
import { connect } from "node:net";
import { dirname } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Pod, PodSchema } from "../../proto/gen/pod_pb.js";
import { EventType } from "../../proto/gen/pods_pb.js";
import { cleanUp, independentClient, needs, simulate, startKubelet, until } from "../support.ts";

interface Kind {
  readonly name: string;
  readonly skip: string | false;
  /** Serves four static pods and six others on the node `node-1`. */
  healthy(t: TestContext): Promise<string>;
  /** The same before its sources are ready. */
  initializing(t: TestContext): Promise<string>;
}

// Both servers leave the modes of what they make to the umask; this is the one of a kubelet.
process.umask(0o022);

const kinds: readonly Kind[] = [
  {
    name: "simulator",
    skip: false,
    healthy: async (t) => (await simulate(t, "healthy")).socket,
    initializing: async (t) => (await simulate(t, "initializing")).socket,
  },
  {
    name: "kubelet",
    skip: needs.kubelet,
    // With mirror pods, which no answer may hold.
    healthy: async (t) => (await startKubelet(t, ["--static", "4", "--pods", "6", "--mirrors"])).socket,
    initializing: async (t) => (await startKubelet(t, ["--static", "4", "--pods", "6", "--ready=false"])).socket,
  },
];

const anyUid = "6f2c1a52-7d1e-4d2b-9a52-1f2e3d4c5b6a";

for (const kind of kinds) {
  describe(kind.name, { skip: kind.skip }, () => {
    test("ListPods: every pod but mirrors, sorted by UID", async (t) => {
      const pods = await list(t, await kind.healthy(t));
      assert.equal(pods.length, 10);
      const uids = pods.map(({ metadata }) => metadata!.uid);
      assert.deepEqual(uids, [...uids].sort());
      assert.equal(new Set(uids).size, 10);
      const sources = pods.map((pod) => annotation(pod, "kubernetes.io/config.source")).sort();
      assert.deepEqual(sources, [...Array(6).fill("api"), ...Array(4).fill("file")]);
      for (const pod of pods) assert.equal(annotation(pod, "kubernetes.io/config.mirror"), undefined);
    });

    test("static pods carry their hash as UID, the node's name, and no creation time", async (t) => {
      for (const pod of (await list(t, await kind.healthy(t))).filter(isStatic)) {
        assert.match(pod.metadata!.name, /-node-1$/);
        assert.equal(pod.metadata!.namespace, "kube-system");
        assert.match(pod.metadata!.uid, /^[0-9a-f]{32}$/);
        assert.equal(annotation(pod, "kubernetes.io/config.hash"), pod.metadata!.uid);
        const seen = annotation(pod, "kubernetes.io/config.seen");
        assert.match(seen!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d)$/);
        assert.equal(pod.metadata!.creationTimestamp?.seconds ?? 0n, 0n);
        assert.equal(pod.spec!.nodeName, "node-1");
      }
    });

    test("pods of the API server have a creation time and a UUID", async (t) => {
      for (const pod of (await list(t, await kind.healthy(t))).filter((one) => !isStatic(one))) {
        assert.match(pod.metadata!.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
        assert.ok(pod.metadata!.creationTimestamp!.seconds > 0n);
        assert.equal(annotation(pod, "kubernetes.io/config.hash"), undefined);
      }
    });

    test("the status of a healthy static pod, in the fields a probe reads", async (t) => {
      for (const pod of (await list(t, await kind.healthy(t))).filter(isStatic)) {
        const status = pod.status!;
        assert.equal(status.phase, "Running");
        assert.equal(status.reason, "");
        assert.ok(status.startTime!.seconds > 0n);
        const conditions = status.conditions.map(({ type, status: value }) => `${type}=${value}`);
        assert.deepEqual(conditions, [
          "PodReadyToStartContainers=True",
          "Initialized=True",
          "Ready=True",
          "ContainersReady=True",
          "PodScheduled=True",
        ]);
        for (const { lastTransitionTime } of status.conditions) assert.ok(lastTransitionTime!.seconds > 0n);
        assert.deepEqual(
          status.containerStatuses.map(({ name }) => name),
          pod.spec!.containers.map(({ name }) => name),
        );
        for (const [at, container] of status.containerStatuses.entries()) {
          assert.equal(container.ready, true);
          assert.equal(container.restartCount, 0);
          assert.equal(container.image, pod.spec!.containers[at]!.image);
          assert.ok(container.state!.running!.startedAt!.seconds > 0n);
          assert.equal(container.state!.waiting, undefined);
          assert.equal(container.state!.terminated, undefined);
        }
      }
    });

    test("whole pods come, environment and all, whatever field mask the metadata asks for", async (t) => {
      const client = independentClient(t, await kind.healthy(t));
      const { pods } = await client.listPods({}, { headers: { "x-kubernetes-fieldmask": "pods.metadata.name" } });
      for (const bytes of pods) {
        assert.ok(bytes.length > 500, `a pod of ${bytes.length} bytes`);
        assert.ok(Buffer.from(bytes).includes("POD_NAME"));
      }
    });

    test("GetPod gives the bytes that ListPods gives", async (t) => {
      const client = independentClient(t, await kind.healthy(t));
      const { pods } = await client.listPods({});
      // As many calls as the burst of the limiter leaves.
      for (const bytes of pods.slice(0, 8)) {
        const podUID = fromBinary(PodSchema, bytes).metadata!.uid;
        const { pod } = await client.getPod({ podUID });
        assert.deepEqual(Buffer.from(pod), Buffer.from(bytes));
      }
    });

    for (const podUID of [anyUid, "", "kubelet-probe-no-such-pod", "ä%|\n"]) {
      test(`GetPod: no pod has the UID ${JSON.stringify(podUID)}`, async (t) => {
        const client = independentClient(t, await kind.healthy(t));
        assert.deepEqual(await failure(client.getPod({ podUID })), [Code.NotFound, `pod with UID ${podUID} not found`]);
      });
    }

    test("List, Get and Watch before the sources are ready", async (t) => {
      const client = independentClient(t, await kind.initializing(t));
      const initializing = [Code.FailedPrecondition, "Kubelet is initializing"];
      assert.deepEqual(await failure(client.listPods({})), initializing);
      // Before the UID is looked at.
      assert.deepEqual(await failure(client.getPod({ podUID: "" })), initializing);
      assert.deepEqual(await failure(collect(client.watchPods({}), () => false)), initializing);
    });

    test("WatchPods: each pod ADDED, then INITIAL_SYNC_COMPLETE without a pod, and the stream stays open", async (t) => {
      const socket = await kind.healthy(t);
      const client = independentClient(t, socket);
      const events = await collect(client.watchPods({}), ({ type }) => type === EventType.INITIAL_SYNC_COMPLETE);
      const last = events.at(-1)!;
      assert.equal(last.type, EventType.INITIAL_SYNC_COMPLETE);
      assert.equal(last.pod.length, 0);
      const added = events.slice(0, -1);
      assert.ok(added.every(({ type }) => type === EventType.ADDED));
      const names = added.map(({ pod }) => fromBinary(PodSchema, pod).metadata!.uid).sort();
      const listed = (await list(t, socket)).map(({ metadata }) => metadata!.uid).sort();
      assert.deepEqual(names, listed);
    });

    describe("the limiter", () => {
      test("200 parallel GetPod: the burst is admitted, the rest refused with one text", async (t) => {
        const client = independentClient(t, await kind.healthy(t));
        const answers = await Promise.all(
          Array.from({ length: 200 }, () => failure(client.getPod({ podUID: anyUid }))),
        );
        const admitted = answers.filter(([code]) => code === Code.NotFound).length;
        const refused = answers.filter(([code]) => code === Code.ResourceExhausted);
        assert.equal(admitted + refused.length, 200);
        // More than the burst where the calls took long enough for tokens to come back.
        assert.ok(admitted >= 10 && admitted < 200, `${admitted} admitted`);
        for (const [, message] of refused) assert.equal(message, "rejected by rate limit");
        // And tokens do come back.
        await until("a token", async () => (await failure(client.getPod({ podUID: anyUid })))[0] === Code.NotFound);
      });

      test("ListPods takes from the same bucket", async (t) => {
        const client = independentClient(t, await kind.healthy(t));
        const gets = Array.from({ length: 200 }, () => failure(client.getPod({ podUID: anyUid })));
        const lists = Array.from({ length: 50 }, () =>
          client.listPods({}).then(
            () => [0, ""] as const,
            (error) => [ConnectError.from(error).code, ConnectError.from(error).rawMessage] as const,
          ),
        );
        await Promise.all(gets);
        const refused = (await Promise.all(lists)).filter(([code]) => code !== 0);
        assert.ok(refused.length > 0);
        for (const answer of refused) assert.deepEqual(answer, [Code.ResourceExhausted, "rejected by rate limit"]);
      });

      test("it stands before readiness: a kubelet that initializes refuses too", async (t) => {
        const client = independentClient(t, await kind.initializing(t));
        const answers = await Promise.all(
          Array.from({ length: 200 }, () => failure(client.getPod({ podUID: anyUid }))),
        );
        const codes = new Set(answers.map(([code]) => code));
        assert.deepEqual(codes, new Set([Code.FailedPrecondition, Code.ResourceExhausted]));
      });

      test("a watch costs no token", async (t) => {
        const client = independentClient(t, await kind.healthy(t));
        const answers = Array.from({ length: 200 }, () => failure(client.getPod({ podUID: anyUid })));
        const watches = Array.from({ length: 30 }, () =>
          collect(client.watchPods({}), ({ type }) => type === EventType.INITIAL_SYNC_COMPLETE),
        );
        for (const events of await Promise.all(watches)) assert.equal(events.length, 11);
        await Promise.all(answers);
      });
    });

    describe("on the wire", () => {
      test("an answer: one HEADERS frame, the message, trailers", async (t) => {
        const answer = await rawCall(t, await kind.healthy(t), {});
        assert.deepEqual(answer.headers, { ":status": 200, "content-type": "application/grpc" });
        assert.deepEqual(answer.trailers, { "grpc-status": "0", "grpc-message": "" });
        assert.equal(answer.body[0], 0, "not compressed");
        assert.equal(answer.body.readUInt32BE(1), answer.body.length - 5);
      });

      test("an error: grpc-status in the only HEADERS frame, no body, no trailers", async (t) => {
        const answer = await rawCall(t, await kind.initializing(t), {});
        assert.deepEqual(answer, {
          headers: {
            ":status": 200,
            "content-type": "application/grpc",
            "grpc-status": "9",
            "grpc-message": "Kubelet is initializing",
          },
          endedByHeaders: true,
          body: Buffer.alloc(0),
          trailers: undefined,
        });
      });

      test("a message is percent-encoded as gRPC has it", async (t) => {
        const uid = Buffer.from("ä%|\n");
        const body = Buffer.concat([Buffer.from([0, 0, 0, 0, uid.length + 2, 0x0a, uid.length]), uid]);
        const answer = await rawCall(t, await kind.healthy(t), { ":path": "/v1alpha1.Pods/GetPod" }, body);
        assert.equal(answer.headers["grpc-status"], "5");
        assert.equal(answer.headers["grpc-message"], "pod with UID %C3%A4%25|%0A not found");
      });

      for (const [path, message] of [
        ["/v1beta1.Pods/ListPods", "unknown service v1beta1.Pods"],
        ["/v1.Pods/ListPods", "unknown service v1.Pods"],
        ["/v1.PodResourcesLister/List", "unknown service v1.PodResourcesLister"],
        ["/grpc.health.v1.Health/Check", "unknown service grpc.health.v1.Health"],
        ["/v1alpha1.Pods/PatchPods", "unknown method PatchPods for service v1alpha1.Pods"],
      ] as const) {
        test(`${path}: UNIMPLEMENTED`, async (t) => {
          const answer = await rawCall(t, await kind.healthy(t), { ":path": path });
          assert.equal(answer.headers["grpc-status"], "12");
          assert.equal(answer.headers["grpc-message"], message);
          assert.ok(answer.endedByHeaders);
        });
      }

      test("another content type: HTTP status 415 and INVALID_ARGUMENT", async (t) => {
        const answer = await rawCall(t, await kind.healthy(t), { "content-type": "application/json" });
        assert.deepEqual(answer.headers, {
          ":status": 415,
          "content-type": "application/grpc",
          "grpc-status": "3",
          "grpc-message": 'invalid gRPC request content-type "application/json"',
        });
        assert.equal(answer.body.length, 0);
      });

      test("another method: HTTP status 405 and INTERNAL", async (t) => {
        const answer = await rawCall(t, await kind.healthy(t), { ":method": "PUT" });
        assert.deepEqual(answer.headers, {
          ":status": 405,
          "content-type": "application/grpc",
          "grpc-status": "13",
          "grpc-message": 'Received a HEADERS frame with :method "PUT" which should be POST',
        });
      });

      for (const [what, method, body, status, message] of [
        ["no message", "GetPod", [], 2, "EOF"],
        [
          "no message",
          "WatchPods",
          [],
          13,
          "cardinality violation: received no request message from non-client-streaming RPC",
        ],
        ["half a prefix", "GetPod", [0, 0, 0], 2, "EOF"],
        ["half a message", "GetPod", [0, 0, 0, 0, 10, 10, 1, 97], 2, "unexpected EOF"],
        [
          "a compressed message",
          "GetPod",
          [1, 0, 0, 0, 3, 10, 1, 97],
          13,
          "grpc: compressed flag set with identity or empty encoding",
        ],
        [
          "a format of the future",
          "GetPod",
          [2, 0, 0, 0, 3, 10, 1, 97],
          13,
          "grpc: received unexpected payload format 2",
        ],
        [
          "no protobuf",
          "GetPod",
          [0, 0, 0, 0, 3, 10, 9, 97],
          13,
          "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data",
        ],
        [
          "no protobuf",
          "ListPods",
          [0, 0, 0, 0, 3, 10, 9, 97],
          13,
          "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data",
        ],
        [
          "no protobuf",
          "WatchPods",
          [0, 0, 0, 0, 3, 10, 9, 97],
          13,
          "grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data",
        ],
        [
          "too many messages",
          "WatchPods",
          [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
          13,
          "cardinality violation: received multiple request messages for non-client-streaming RPC",
        ],
        [
          "too long a message",
          "GetPod",
          [0, 0, 64, 0, 1],
          8,
          "grpc: received message larger than max (4194305 vs. 4194304)",
        ],
      ] as const) {
        test(`a request with ${what}: ${method} fails`, async (t) => {
          const answer = await rawCall(
            t,
            await kind.healthy(t),
            { ":path": `/v1alpha1.Pods/${method}` },
            Buffer.from(body),
          );
          assert.equal(answer.headers["grpc-status"], String(status));
          // Go's protobuf puts a space or a no-break space into its errors, so that nobody relies on them.
          assert.equal(String(answer.headers["grpc-message"]).replaceAll("%C2%A0", " "), message);
          assert.ok(answer.endedByHeaders);
        });
      }

      test("a method with one answer takes the first message of its request, and a field that it does not know", async (t) => {
        const body = Buffer.from([0, 0, 0, 0, 5, 10, 1, 97, 0x78, 1, 0, 0, 0, 0, 0]);
        const answer = await rawCall(t, await kind.healthy(t), { ":path": "/v1alpha1.Pods/GetPod" }, body);
        assert.equal(answer.headers["grpc-message"], "pod with UID a not found");
      });

      for (const [timeout, message] of [
        ["0m", "context deadline exceeded"],
        ["1n", "context deadline exceeded"],
        ["1", 'malformed grpc-timeout: transport: timeout string is too short: "1"'],
        ["123456789S", 'malformed grpc-timeout: transport: timeout string is too long: "123456789S"'],
        ["10s", 'malformed grpc-timeout: transport: timeout unit is not recognized: "10s"'],
      ] as const) {
        test(`a timeout of ${timeout}: ${message}`, async (t) => {
          const answer = await rawCall(t, await kind.healthy(t), { "grpc-timeout": timeout });
          const status = message.startsWith("malformed") ? ["13", 400] : ["4", 200];
          assert.deepEqual([answer.headers["grpc-status"], answer.headers[":status"]], status);
          assert.equal(answer.headers["grpc-message"], message);
          assert.ok(answer.endedByHeaders);
        });
      }

      test("a watch ends at the timeout that its client gave", async (t) => {
        const fields = { ":path": "/v1alpha1.Pods/WatchPods", "grpc-timeout": "200m" };
        const answer = await rawCall(t, await kind.healthy(t), fields);
        // grpc-go resets the stream, which leaves no trailers, where its timer is faster than the method.
        if (kind.name === "kubelet" && answer.trailers === undefined) return;
        assert.deepEqual(answer.trailers, { "grpc-status": "4", "grpc-message": "context deadline exceeded" });
      });

      // The simulator's HTTP/2 layer, nghttp2, refuses what is no authority; a kubelet does not look at it.
      const authorities = kind.name === "kubelet" ? ["", "/run/pods-api.sock"] : [];
      for (const authority of ["localhost", "%2Frun%2Fpods-api.sock", ...authorities]) {
        test(`the authority ${JSON.stringify(authority)} is as good as any`, async (t) => {
          const answer = await rawCall(t, await kind.healthy(t), { ":authority": authority });
          assert.equal(answer.trailers?.["grpc-status"], "0");
        });
      }
    });

    test("the socket: 0755 in a folder of 0750, born when serving began", async (t) => {
      const before = Date.now();
      const socket = await kind.healthy(t);
      const stats = lstatSync(socket);
      assert.ok(stats.isSocket());
      assert.equal((stats.mode & 0o7777).toString(8), "755");
      assert.equal((lstatSync(dirname(socket)).mode & 0o7777).toString(8), "750");
      // The kernel's file times lag behind its clock by up to a tick.
      assert.ok(stats.mtimeMs > before - 1000 && stats.mtimeMs <= Date.now());
    });
  });
}

async function list(t: TestContext, socket: string): Promise<readonly Pod[]> {
  const { pods } = await independentClient(t, socket).listPods({});
  return pods.map((bytes) => fromBinary(PodSchema, bytes));
}

function annotation(pod: Pod, key: string): string | undefined {
  return pod.metadata!.annotations[key];
}

function isStatic(pod: Pod): boolean {
  return annotation(pod, "kubernetes.io/config.source") === "file";
}

/** Code and message of the gRPC error that a call ends with. */
async function failure(call: Promise<unknown>): Promise<readonly [code: Code, message: string]> {
  try {
    await call;
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return [code, rawMessage];
  }
  return assert.fail("the call did not fail");
}

async function collect<T>(stream: AsyncIterable<T>, isLast: (item: T) => boolean): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) {
    items.push(item);
    if (isLast(item)) break;
  }
  return items;
}

interface RawAnswer {
  readonly headers: Readonly<Record<string, unknown>>;
  /** The HEADERS frame was also the end of the stream. */
  readonly endedByHeaders: boolean;
  readonly body: Buffer;
  readonly trailers: Readonly<Record<string, unknown>> | undefined;
}

/** Without the symbol that Node adds. */
function plainFields(fields: http2.IncomingHttpHeaders): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields));
}

/** One call as it is on the wire; ListPods unless `fields` say otherwise. */
async function rawCall(
  t: TestContext,
  socket: string,
  fields: http2.OutgoingHttpHeaders,
  body: Buffer = Buffer.alloc(5),
): Promise<RawAnswer> {
  const session = http2.connect("http://localhost", { createConnection: () => connect(socket) });
  cleanUp(t, () => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": "/v1alpha1.Pods/ListPods",
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
    ...fields,
  });
  return new Promise((resolve, reject) => {
    let headers: RawAnswer["headers"] = {};
    let trailers: RawAnswer["trailers"];
    let endedByHeaders = false;
    const chunks: Buffer[] = [];
    stream.on("response", (received, flags) => {
      headers = plainFields(received);
      endedByHeaders = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    });
    stream.on("trailers", (received) => {
      trailers = plainFields(received);
    });
    stream.on("data", (chunk) => chunks.push(chunk));
    stream.on("end", () => resolve({ headers, endedByHeaders, body: Buffer.concat(chunks), trailers }));
    stream.on("error", reject);
    session.on("error", reject);
    stream.end(body);
  });
}
