import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as http2 from "node:http2";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Code as ProbeCode } from "../lib/codes.ts";
import type { Fault } from "../lib/fault.ts";
import { createLimiter } from "../lib/simulator/limiter.ts";
import { canary, type Simulator, type SimulatorOptions, scenarios, startSimulator } from "../lib/simulator.ts";
import { type Pod, PodSchema } from "../proto/gen/pod_pb.js";
import { EventType, Pods } from "../proto/gen/pods_pb.js";

async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = fs.mkdtempSync(join(tmpdir(), "kubelet-probe-"));
  try {
    return await use(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts a simulator, and closes it however the test ends. */
async function withSimulator(
  scenario: string,
  use: (simulator: Simulator) => Promise<void>,
  options: Partial<SimulatorOptions> = {},
): Promise<void> {
  await inFolder(async (folder) => {
    const simulator = await startSimulator({ socket: join(folder, "s.sock"), scenario, ...options });
    try {
      await use(simulator);
    } finally {
      await simulator.close();
    }
  });
}

function connect(path: string): net.Socket {
  const socket = net.connect(path);
  socket.on("error", () => {});
  return socket;
}

/** Connect's client, which shares nothing with the project's own. */
async function withClient(
  path: string,
  use: (client: ReturnType<typeof createClient<typeof Pods>>) => Promise<void>,
): Promise<void> {
  const nodeOptions = { createConnection: () => connect(path) };
  const sessionManager = new Http2SessionManager("http://localhost", {}, nodeOptions);
  const transport = createGrpcTransport({ baseUrl: "http://localhost", sessionManager });
  try {
    await use(createClient(Pods, transport));
  } finally {
    sessionManager.abort();
  }
}

/** The gRPC error that a call ends with. */
async function failure(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof ConnectError, `not a gRPC error: ${error}`);
    return error;
  }
  return assert.fail("the call did not fail");
}

async function listPods(path: string): Promise<Pod[]> {
  let pods: Pod[] = [];
  await withClient(path, async (client) => {
    pods = (await client.listPods({})).pods.map((bytes) => fromBinary(PodSchema, bytes));
  });
  return pods;
}

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function literals(fields: Record<string, string>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** What a client sends for a call, the windows of its connection opened wide. */
function request(method: string): Buffer {
  const fields = {
    ":method": "POST",
    ":scheme": "http",
    ":path": `/v1alpha1.Pods/${method}`,
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
  };
  const window = Buffer.from([0x07, 0xff, 0, 0]);
  return Buffer.concat([
    preface,
    frame(4, 0, 0, Buffer.concat([Buffer.from([0, 4]), window])),
    frame(8, 0, 0, window),
    frame(1, 4, 1, literals(fields)),
    frame(0, 1, 1, Buffer.alloc(5)),
  ]);
}

/** Frames of an answer, until one that `last` accepts, or until the server hangs up. */
function rawCall(
  path: string,
  last: (frame: Frame) => boolean,
  method = "ListPods",
): Promise<{ frames: Frame[]; closed: boolean }> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const frames: Frame[] = [];
    let pending = Buffer.alloc(0);
    socket.on("connect", () => socket.write(request(method)));
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 9) {
        const length = pending.readUIntBE(0, 3);
        if (pending.length < 9 + length) return;
        const read = {
          type: pending.readUInt8(3),
          flags: pending.readUInt8(4),
          stream: pending.readUInt32BE(5),
          payload: pending.subarray(9, 9 + length),
        };
        pending = pending.subarray(9 + length);
        frames.push(read);
        if (last(read)) {
          resolve({ frames, closed: false });
          socket.destroy();
          return;
        }
      }
    });
    socket.on("close", () => resolve({ frames, closed: true }));
  });
}

const endsStream = (read: Frame) => (read.type === 0 || read.type === 1) && (read.flags & 1) !== 0;
const body = (frames: readonly Frame[]) =>
  Buffer.concat(frames.filter((read) => read.type === 0).map((read) => read.payload));

/** What a server says to the first bytes of an HTTP/2 client, until it hangs up or has said `enough` bytes. */
function firstBytes(path: string, enough = Number.POSITIVE_INFINITY): Promise<Buffer> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const chunks: Buffer[] = [];
    socket.on("connect", () => socket.write(request("ListPods")));
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (Buffer.concat(chunks).length >= enough) socket.destroy();
    });
    socket.on("close", () => resolve(Buffer.concat(chunks)));
  });
}

test("each scenario has a name of its own, and each code that a server or a file can cause has a scenario", () => {
  const names = scenarios.map((scenario) => scenario.name);
  assert.equal(new Set(names).size, names.length);
  const codes: readonly ProbeCode[] = [
    "SocketSecure",
    "Ready",
    "StaticPodsHealthy",
    "RateLimitHeadroom",
    "WatchHealthy",
    "SocketMissing",
    "SocketNotASocket",
    "SocketDead",
    "SocketInsecure",
    "PermissionDenied",
    "Timeout",
    "NotGrpc",
    "WrongService",
    "Initializing",
    "RateLimited",
    "WatchDropped",
    "WatchDiverged",
    "AnswerTooLarge",
    "ConnectionLost",
    "Undecodable",
    "ServerError",
    "InventoryUnavailable",
    "StaticPodMissing",
    "StaticPodFailed",
    "StaticPodNotReady",
    "StaticPodUnexpected",
    "StaticPodStale",
  ];
  assert.deepEqual(new Set(scenarios.map((scenario) => scenario.code)), new Set(codes));
});

test("each scenario starts, and leaves nothing at the path when it is closed", async () => {
  await inFolder(async (folder) => {
    const socket = join(folder, "s.sock");
    for (const { name } of scenarios) {
      const simulator = await startSimulator({ socket, scenario: name, pods: 1 });
      assert.equal(fs.existsSync(socket), name !== "missing", name);
      await simulator.close();
      assert.deepEqual(fs.readdirSync(folder), [], name);
      await simulator.close();
    }
  });
});

test("an unknown scenario is bad usage that names the known ones", async () => {
  await inFolder(async (folder) => {
    const start = startSimulator({ socket: join(folder, "s.sock"), scenario: "nope" });
    await assert.rejects(start, (error: Fault) => {
      assert.equal(error.code, "BadUsage");
      assert.match(error.message, /"nope".*healthy.*initializing/);
      return true;
    });
    assert.deepEqual(fs.readdirSync(folder), []);
  });
});

test("the socket stands as the kubelet leaves it: 0755 in a folder of 0750", async () => {
  await inFolder(async (folder) => {
    const socket = join(folder, "kubelet", "pods-api", "pods-api.sock");
    const simulator = await startSimulator({ socket, scenario: "healthy" });
    assert.ok(fs.lstatSync(socket).isSocket());
    assert.equal(fs.lstatSync(socket).mode & 0o777, 0o755);
    assert.equal(fs.lstatSync(dirname(socket)).mode & 0o777, 0o750 & ~process.umask());
    assert.deepEqual(fs.readdirSync(dirname(socket)), ["pods-api.sock"], "the temporary name is gone");
    await simulator.close();
  });
});

test("a folder that is there keeps its mode", async () => {
  await inFolder(async (folder) => {
    fs.chmodSync(folder, 0o711);
    const simulator = await startSimulator({ socket: join(folder, "s.sock"), scenario: "healthy" });
    assert.equal(fs.lstatSync(folder).mode & 0o777, 0o711);
    await simulator.close();
  });
});

test("an old socket is replaced, and the newer simulator's socket is not removed with the older one", async () => {
  await inFolder(async (folder) => {
    const socket = join(folder, "s.sock");
    const older = await startSimulator({ socket, scenario: "initializing" });
    const newer = await startSimulator({ socket, scenario: "healthy" });
    await older.close();
    assert.equal((await listPods(socket)).length, 10);
    await newer.close();
  });
});

test("nothing but a socket is removed from the path", async () => {
  await inFolder(async (folder) => {
    const file = join(folder, "precious");
    fs.writeFileSync(file, "data");
    const link = join(folder, "link");
    fs.symlinkSync(file, link);
    const expected: readonly (readonly [string, RegExp])[] = [
      [file, /a regular file is there/],
      [link, /a symbolic link is there/],
      [folder, /a folder is there/],
      [join(file, "s.sock"), /Cannot serve on .*ENOTDIR/],
      [join(folder, "x".repeat(200)), /at most 107 fit/],
    ];
    for (const [socket, message] of expected) {
      for (const scenario of ["healthy", "missing", "not-a-socket"]) {
        await assert.rejects(startSimulator({ socket, scenario }), (error: Fault) => {
          assert.equal(error.code, "BadUsage");
          assert.match(error.message, message);
          return true;
        });
      }
    }
    assert.equal(fs.readFileSync(file, "utf8"), "data");
    assert.deepEqual(fs.readdirSync(folder).sort(), ["link", "precious"]);
  });
});

test("scenarios of the socket file", async () => {
  const errno = (path: string) =>
    new Promise<string>((resolve) => {
      const socket = net.connect(path);
      socket.on("connect", () => {
        socket.destroy();
        resolve("connected");
      });
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  await withSimulator("missing", async ({ socket }) => assert.equal(await errno(socket), "ENOENT"));
  await withSimulator("dead", async ({ socket }) => {
    assert.ok(fs.lstatSync(socket).isSocket());
    assert.equal(await errno(socket), "ECONNREFUSED");
  });
  await withSimulator("not-a-socket", async ({ socket }) => assert.ok(fs.lstatSync(socket).isFile()));
  await withSimulator("insecure", async ({ socket }) => assert.equal(fs.lstatSync(socket).mode & 0o777, 0o777));
  await withSimulator("private", async ({ socket }) => assert.equal(fs.lstatSync(socket).mode & 0o777, 0o700));
  await withSimulator("permission", async ({ socket }) => assert.equal(fs.lstatSync(socket).mode & 0o777, 0));
  await withSimulator("initializing-old", async ({ socket }) => {
    const old = fs.lstatSync(socket);
    fs.writeFileSync(`${socket}.now`, "");
    const age = fs.lstatSync(`${socket}.now`).mtimeMs - old.mtimeMs;
    assert.ok(age > 14 * 60_000, "set back by a quarter of an hour");
    assert.ok(old.ctimeMs > old.mtimeMs, "only the time of birth is set back");
  });
});

test("a healthy node lists its pods, sorted by UID, the static ones as the kubelet has them", async () => {
  const check = async (simulator: Simulator) => {
    const pods = await listPods(simulator.socket);
    assert.equal(pods.length, 10);
    const uids = pods.map((pod) => pod.metadata!.uid);
    assert.deepEqual(uids, [...uids].sort());
    const local = pods.filter((pod) => pod.metadata!.annotations["kubernetes.io/config.source"] === "file");
    assert.deepEqual(
      local.map((pod) => `${pod.metadata!.namespace}/${pod.metadata!.name}`).sort(),
      [...simulator.expect].sort(),
    );
    assert.deepEqual([...simulator.expect].sort(), [
      "kube-system/etcd-cp-1.example",
      "kube-system/kube-apiserver-cp-1.example",
      "kube-system/kube-controller-manager-cp-1.example",
      "kube-system/kube-scheduler-cp-1.example",
    ]);
    for (const pod of local) {
      assert.equal(pod.metadata!.annotations["kubernetes.io/config.hash"], pod.metadata!.uid);
      assert.match(pod.metadata!.annotations["kubernetes.io/config.seen"]!, /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{9}Z$/);
      assert.equal(pod.metadata!.creationTimestamp, undefined);
      assert.equal(pod.spec!.nodeName, "cp-1.example");
      assert.equal(pod.status!.phase, "Running");
      assert.equal(pod.status!.conditions.find((condition) => condition.type === "Ready")!.status, "True");
      assert.ok(pod.status!.containerStatuses[0]!.state!.running !== undefined);
    }
    assert.deepEqual(Object.keys(simulator.manifests).sort(), [
      "etcd.yaml",
      "kube-apiserver.yaml",
      "kube-controller-manager.yaml",
      "kube-scheduler.yaml",
    ]);
    assert.equal(JSON.parse(simulator.manifests["etcd.yaml"]!).metadata.name, "etcd");
    assert.deepEqual([simulator.calls, simulator.admitted, simulator.rejected], [1, 1, 0]);
    assert.equal(simulator.connections, 1);
  };
  await withSimulator("healthy", check, { node: " CP-1.Example\n" });
});

test("each pod has a secret in its environment, and the size asked for", async () => {
  for (const [podBytes, least, most] of [
    [undefined, 900, 1500],
    [10_000, 10_000, 10_050],
  ] as const) {
    const check = async ({ socket }: Simulator) =>
      withClient(socket, async (client) => {
        for (const bytes of (await client.listPods({})).pods) {
          assert.ok(bytes.length >= least && bytes.length <= most, `${bytes.length} bytes`);
          assert.ok(Buffer.from(bytes).includes(canary));
          assert.ok(!JSON.stringify(fromBinary(PodSchema, bytes).metadata!.annotations).includes(canary));
        }
      });
    await withSimulator("healthy", check, podBytes === undefined ? {} : { podBytes });
  }
});

test("GetPod finds a pod by its UID, and answers as the kubelet for any other", async () => {
  await withSimulator("healthy", async ({ socket }) =>
    withClient(socket, async (client) => {
      const bytes = (await client.listPods({})).pods[0]!;
      const { uid } = fromBinary(PodSchema, bytes).metadata!;
      assert.deepEqual((await client.getPod({ podUID: uid })).pod, bytes);
      for (const podUID of ["", "no|such é%"]) {
        const error = await failure(client.getPod({ podUID }));
        assert.equal(error.code, Code.NotFound);
        assert.equal(error.rawMessage, `pod with UID ${podUID} not found`);
      }
    }),
  );
});

/** How a call ends on the wire: the fields of its first HEADERS frame, and whether the stream ends with it. */
function firstHeaders(path: string, method: string): Promise<{ ends: boolean; fields: http2.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const session = http2.connect("http://localhost", { createConnection: () => connect(path) });
    session.on("error", reject);
    const stream = session.request({ ":method": "POST", ":path": method, "content-type": "application/grpc" });
    stream.on("error", reject);
    stream.on("response", (fields, flags) => {
      resolve({ ends: (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0, fields });
      session.destroy();
    });
    stream.end(Buffer.alloc(5));
  });
}

test("errors arrive as trailers-only, with the kubelet's texts", async () => {
  const expected: readonly (readonly [scenario: string, method: string, status: string, message: string])[] = [
    ["initializing", "/v1alpha1.Pods/ListPods", "9", "Kubelet is initializing"],
    ["initializing", "/v1alpha1.Pods/GetPod", "9", "Kubelet is initializing"],
    ["initializing", "/v1alpha1.Pods/WatchPods", "9", "Kubelet is initializing"],
    ["rate-limited", "/v1alpha1.Pods/ListPods", "8", "rejected by rate limit"],
    ["rate-limited", "/v1alpha1.Pods/GetPod", "8", "rejected by rate limit"],
    ["healthy", "/v1alpha1.Pods/GetPod", "5", "pod with UID  not found"],
    ["healthy", "/v1alpha1.Pods/Nope", "12", "unknown method Nope for service v1alpha1.Pods"],
    ["healthy", "/v1.Pods/ListPods", "12", "unknown service v1.Pods"],
    ["healthy", "/nope", "12", 'malformed method name: "/nope"'],
    ["wrong-service", "/v1alpha1.Pods/ListPods", "12", "unknown service v1alpha1.Pods"],
    ["server-error", "/v1alpha1.Pods/ListPods", "13", "simulated: 100%25 of calls fail%0Awith a second line | %C3%A9"],
  ];
  for (const [scenario, method, status, message] of expected) {
    await withSimulator(scenario, async ({ socket }) => {
      const { ends, fields } = await firstHeaders(socket, method);
      assert.ok(ends, `${scenario} ${method}`);
      assert.equal(fields[":status"], 200);
      assert.equal(fields["content-type"], "application/grpc");
      assert.equal(fields["grpc-status"], status);
      assert.equal(fields["grpc-message"], message);
    });
  }
});

test("a listing comes with a status of its own frame", async () => {
  await withSimulator("healthy", async ({ socket }) => {
    const { ends, fields } = await firstHeaders(socket, "/v1alpha1.Pods/ListPods");
    assert.ok(!ends);
    assert.equal(fields["grpc-status"], undefined);
  });
});

test("the limiter: 10 at once, 100 a second, and a refused call takes nothing", () => {
  let now = 0;
  const allow = createLimiter({ rate: 100, burst: 10 }, () => now);
  const admitted = (calls: number) => Array.from({ length: calls }, allow).filter(Boolean).length;
  assert.equal(admitted(200), 10);
  // Measured on the kubelet's own limiter: 1, 2, 5, 10 tokens are back after 10, 20, 50, 100 ms.
  for (const [milliseconds, tokens] of [
    [10, 1],
    [20, 2],
    [50, 5],
    [100, 10],
    [5000, 10],
  ] as const) {
    now += milliseconds;
    assert.equal(admitted(200), tokens);
  }
  now += 5;
  assert.equal(admitted(1), 0);
  now += 5;
  assert.equal(admitted(2), 1, "half a token and half a token");
});

test("ListPods and GetPod share one bucket, WatchPods takes nothing from it", async () => {
  await withSimulator("healthy", async (simulator) =>
    withClient(simulator.socket, async (client) => {
      const calls = Array.from({ length: 100 }, (_, index) =>
        index % 2 ? client.listPods({}) : client.getPod({ podUID: "x" }),
      );
      const results = await Promise.allSettled(calls);
      const limited = results.filter(
        (result) => result.status === "rejected" && result.reason.code === Code.ResourceExhausted,
      );
      assert.equal(simulator.rejected, limited.length);
      assert.equal(simulator.admitted, 100 - limited.length);
      assert.ok(simulator.admitted >= 10 && limited.length > 0);
      for await (const event of client.watchPods({})) {
        if (event.type === EventType.INITIAL_SYNC_COMPLETE) break;
      }
      assert.equal(simulator.admitted + simulator.rejected, 100);
    }),
  );
});

test("a call to an initializing kubelet takes a token", async () => {
  await withSimulator("initializing", async (simulator) =>
    withClient(simulator.socket, async (client) => {
      const calls = Array.from({ length: 100 }, () => failure(client.listPods({})));
      const codes = (await Promise.all(calls)).map((error) => error.code);
      assert.deepEqual(new Set(codes), new Set([Code.FailedPrecondition, Code.ResourceExhausted]));
      assert.equal(simulator.admitted, codes.filter((code) => code === Code.FailedPrecondition).length);
    }),
  );
});

test("a part of the budget lets a part of a burst through", async () => {
  for (const [scenario, least] of [
    ["rate-limited", 0],
    ["rate-limited-some", 1],
    ["rate-shared", 5],
  ] as const) {
    await withSimulator(scenario, async (simulator) =>
      withClient(simulator.socket, async (client) => {
        await Promise.all(Array.from({ length: 40 }, () => failure(client.getPod({ podUID: "x" }))));
        assert.ok(simulator.admitted >= least);
        assert.ok(simulator.rejected > 0);
        if (least === 0) assert.equal(simulator.admitted, 0);
      }),
    );
  }
});

test("a watch adds each pod, syncs, and is held", async () => {
  await withSimulator("healthy", async ({ socket }) =>
    withClient(socket, async (client) => {
      const types: EventType[] = [];
      const error = await failure(
        (async () => {
          const aborter = new AbortController();
          for await (const event of client.watchPods({}, { signal: aborter.signal })) {
            types.push(event.type);
            // Nothing may follow: a turn of the other side is enough for it to show.
            if (event.type === EventType.INITIAL_SYNC_COMPLETE) {
              await client.getPod({ podUID: "x" }).catch(() => {});
              aborter.abort();
            }
          }
        })(),
      );
      assert.equal(error.code, Code.Canceled);
      assert.deepEqual(types, [...Array<EventType>(10).fill(EventType.ADDED), EventType.INITIAL_SYNC_COMPLETE]);
    }),
  );
});

/** Types of the events of a watch, and the error it ends with. */
async function watch(
  client: ReturnType<typeof createClient<typeof Pods>>,
  enough: (types: readonly EventType[]) => boolean = () => false,
): Promise<{ types: EventType[]; error: ConnectError | undefined }> {
  const types: EventType[] = [];
  try {
    for await (const event of client.watchPods({})) {
      types.push(event.type);
      if (enough(types)) break;
    }
  } catch (error) {
    assert.ok(error instanceof ConnectError);
    return { types, error };
  }
  return { types, error: undefined };
}

test("scenarios of the watch", async () => {
  const { ADDED, MODIFIED, DELETED, INITIAL_SYNC_COMPLETE } = EventType;
  await withSimulator("watch-dropped", async ({ socket }) =>
    withClient(socket, async (client) => {
      for (const _ of [1, 2]) {
        const { types, error } = await watch(client);
        assert.equal(types.at(-1), INITIAL_SYNC_COMPLETE);
        assert.equal(error?.code, Code.ResourceExhausted);
        assert.equal(error?.rawMessage, "watch client channel closed");
      }
    }),
  );
  await withSimulator("watch-shutdown", async ({ socket }) => {
    // Raw, since Deno's client gives a stream up when GOAWAY comes, also one that GOAWAY leaves be.
    const { frames, closed } = await rawCall(socket, () => false, "WatchPods");
    assert.ok(closed);
    const goaway = frames.findIndex((read) => read.type === 7 && read.payload.readUInt32BE(0) === 1);
    assert.ok(goaway >= 0 && goaway < frames.findIndex(endsStream));
    assert.equal(body(frames).at(-1), INITIAL_SYNC_COMPLETE);
  });
  await withSimulator("watch-dropped-early", async ({ socket }) =>
    withClient(socket, async (client) => {
      const { types, error } = await watch(client);
      assert.deepEqual(new Set(types), new Set([ADDED]));
      assert.equal(error?.rawMessage, "watch client channel closed");
    }),
  );
  await withSimulator("watch-dropped-once", async ({ socket }) =>
    withClient(socket, async (client) => {
      assert.equal((await watch(client)).error?.code, Code.ResourceExhausted);
      const aborter = new AbortController();
      const second = client.watchPods({}, { signal: aborter.signal })[Symbol.asyncIterator]();
      while ((await second.next()).value?.type !== INITIAL_SYNC_COMPLETE);
      aborter.abort();
    }),
  );
  await withSimulator("watch-ended", async ({ socket }) =>
    withClient(socket, async (client) => {
      const { types, error } = await watch(client);
      assert.equal(error, undefined);
      assert.equal(types.at(-1), INITIAL_SYNC_COMPLETE);
    }),
  );
  await withSimulator("watch-churn", async ({ socket }) =>
    withClient(socket, async (client) => {
      const { types } = await watch(client, (so) => so.includes(DELETED));
      const after = types.slice(types.indexOf(INITIAL_SYNC_COMPLETE) + 1);
      assert.deepEqual(new Set(after), new Set([ADDED, MODIFIED, DELETED]));
    }),
  );
  await withSimulator("watch-endless", async ({ socket }) =>
    withClient(socket, async (client) => {
      const { types } = await watch(client, (so) => so.length === 25);
      assert.deepEqual(new Set(types), new Set([ADDED]));
    }),
  );
});

test("scenarios of one pod's state", async () => {
  const etcd = async (scenario: string): Promise<Pod | undefined> => {
    let found: Pod | undefined;
    await withSimulator(scenario, async ({ socket, expect }) => {
      assert.ok(expect.includes("kube-system/etcd-node-1"));
      found = (await listPods(socket)).find((pod) => pod.metadata!.name === "etcd-node-1");
    });
    return found;
  };
  assert.equal(await etcd("missing-pod"), undefined);
  assert.equal(await etcd("empty-1.36"), undefined);

  const loop = (await etcd("not-ready"))!.status!;
  assert.equal(loop.phase, "Running");
  assert.equal(loop.conditions.find((condition) => condition.type === "Ready")!.reason, "ContainersNotReady");
  assert.equal(loop.containerStatuses[0]!.state!.waiting!.reason, "CrashLoopBackOff");
  assert.equal(loop.containerStatuses[0]!.restartCount, 7);
  assert.equal(loop.containerStatuses[0]!.lastState!.terminated!.exitCode, 137);

  const pending = (await etcd("pending"))!.status!;
  assert.equal(pending.phase, "Pending");
  assert.equal(pending.containerStatuses[0]!.state!.waiting!.reason, "ImagePullBackOff");

  const failed = (await etcd("failed-pod"))!.status!;
  assert.equal(failed.phase, "Failed");
  assert.equal(failed.reason, "Evicted");
  assert.equal(failed.containerStatuses[0]!.state!.terminated!.exitCode, 137);

  const touched = (await etcd("touched-manifest"))!.metadata!;
  assert.ok(Date.parse(touched.annotations["kubernetes.io/config.seen"]!) < Date.now() - 29 * 24 * 3_600_000);
  assert.match((await etcd("stale-image"))!.spec!.containers[0]!.image, /-old$/);

  const hostile = (await etcd("hostile-text"))!.status!;
  assert.ok(hostile.message.length > 1_000_000);
  for (const part of ["\n", "|", "\u001b[31m", "\u202e", "'", '"', "\u0000"]) assert.ok(hostile.reason.includes(part));

  await withSimulator("unexpected-pod", async ({ socket, expect }) => {
    assert.ok((await listPods(socket)).some((pod) => pod.metadata!.name === "left-over-node-1"));
    assert.equal(expect.length, 4);
  });
});

test("a pod that is not protobuf, and a text that is not UTF-8", async () => {
  for (const scenario of ["undecodable-pod", "invalid-utf8"]) {
    await withSimulator(scenario, async ({ socket }) =>
      withClient(socket, async (client) => {
        const { pods } = await client.listPods({});
        assert.equal(pods.length, 10);
        if (scenario === "invalid-utf8") {
          assert.ok(pods.some((bytes) => Buffer.from(bytes).includes(Buffer.from("device: \xc3", "latin1"))));
        } else {
          assert.throws(() => pods.map((bytes) => fromBinary(PodSchema, bytes)));
        }
      }),
    );
  }
});

test("a listing of 5 MB arrives whole", async () => {
  await withSimulator("large", async ({ socket }) => {
    const pods = await listPods(socket);
    assert.equal(pods.length, 504);
  });
});

test("each gRPC error code, with a message and without", async () => {
  for (let status = 1; status <= 16; status += 1) {
    for (const [scenario, message] of [
      [`grpc-${status}`, /./],
      [`grpc-${status}-bare`, /^$/],
    ] as const) {
      await withSimulator(scenario, async ({ socket }) => {
        const { fields } = await firstHeaders(socket, "/v1alpha1.Pods/ListPods");
        assert.equal(fields["grpc-status"], String(status));
        assert.match(String(fields["grpc-message"]), message);
      });
    }
  }
});

test("answers that are HTTP/2 and not gRPC", async () => {
  for (const [scenario, status, type] of [
    ["wrong-content-type", 200, "text/html"],
    ["http-status", 503, "text/plain"],
    ["http-status-415", 415, "text/plain"],
  ] as const) {
    await withSimulator(scenario, async ({ socket }) => {
      const { fields } = await firstHeaders(socket, "/v1alpha1.Pods/ListPods");
      assert.equal(fields[":status"], status);
      assert.equal(fields["content-type"], type);
      assert.equal(fields["grpc-status"], undefined);
    });
  }
});

test("a server that is strict about the authority serves a plain host name only", async () => {
  await withSimulator("strict-authority", async ({ socket }) => {
    assert.equal((await listPods(socket)).length, 10);
    const session = http2.connect("http://localhost", { createConnection: () => connect(socket) });
    const stream = session.request({ ":method": "POST", ":path": "/", ":authority": "%2Fvar%2Frun%2Fs.sock" });
    const code = await new Promise((resolve) => {
      stream.on("error", () => {});
      stream.on("close", () => resolve(stream.rstCode));
    });
    session.destroy();
    assert.equal(code, http2.constants.NGHTTP2_PROTOCOL_ERROR);
  });
});

test("answers that are no HTTP/2", async () => {
  await withSimulator("http1", async ({ socket }) =>
    assert.match((await firstBytes(socket)).toString(), /^HTTP\/1\.1 400 Bad Request\r\n/),
  );
  await withSimulator("tls", async ({ socket }) =>
    assert.deepEqual([...(await firstBytes(socket))], [21, 3, 3, 0, 2, 2, 70]),
  );
  await withSimulator("garbage", async ({ socket }) =>
    assert.match((await firstBytes(socket, 4096)).toString("latin1"), /^-ERR/),
  );
  await withSimulator("close", async ({ socket }) => assert.equal((await firstBytes(socket)).length, 0));
});

test("servers that say nothing, or not enough", async () => {
  await withSimulator("hang", async (simulator) => {
    const bytes = firstBytes(simulator.socket);
    while (simulator.connections === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal(simulator.openConnections, 1);
    await simulator.close();
    assert.equal((await bytes).length, 0);
  });
  await withSimulator("hang-call", async (simulator) => {
    const call = rawCall(simulator.socket, endsStream);
    while (simulator.calls === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await simulator.close();
    const { frames } = await call;
    assert.ok(frames.length > 0 && frames.every((read) => read.type === 4), "settings and nothing else");
  });
  await withSimulator("hang-body", async ({ socket }) => {
    const { frames } = await rawCall(socket, (read) => read.type === 0);
    const part = body(frames);
    assert.ok(part.length - 5 < part.readUInt32BE(1));
  });
  await withSimulator("no-window", async ({ socket }) => {
    const { frames } = await rawCall(socket, (read) => read.type === 4);
    assert.deepEqual([...frames[0]!.payload], [0, 4, 0, 0, 0, 0]);
  });
  await withSimulator("settings-storm", async ({ socket }) => {
    let seen = 0;
    const { closed } = await rawCall(socket, (read) => read.type === 4 && ++seen === 500);
    assert.ok(!closed);
  });
  await withSimulator(
    "dribble",
    async ({ socket }) => {
      const { frames } = await rawCall(socket, (read) => read.type === 1);
      assert.equal(frames.at(-1)!.type, 1, "the headers come, however slowly");
    },
    { pods: 0, staticPods: 1 },
  );
});

test("connections that break during the call", async () => {
  await withSimulator("lost", async (simulator) => {
    for (const count of [1, 2]) {
      const { frames, closed } = await rawCall(simulator.socket, endsStream);
      assert.ok(closed && frames.every((read) => read.type !== 1));
      assert.equal(simulator.calls, count);
    }
  });
  await withSimulator("lost-once", async (simulator) => {
    assert.ok((await rawCall(simulator.socket, endsStream)).closed);
    assert.equal((await listPods(simulator.socket)).length, 10);
    assert.equal(simulator.connections, 2);
  });
  await withSimulator("goaway", async (simulator) => {
    const { frames, closed } = await rawCall(simulator.socket, endsStream);
    assert.ok(closed);
    assert.equal(frames.find((read) => read.type === 7)!.payload.readUInt32BE(0), 0, "no stream was looked at");
    assert.equal((await listPods(simulator.socket)).length, 10);
  });
  await withSimulator("goaway-always", async ({ socket }) => {
    for (const _ of [1, 2]) {
      const { frames } = await rawCall(socket, endsStream);
      assert.match(frames.find((read) => read.type === 7)!.payload.toString(), /too_many_pings$/);
    }
  });
  for (const [scenario, code] of [["reset", 2], ...Array.from({ length: 14 }, (_, n) => [`reset-${n}`, n])] as const) {
    await withSimulator(String(scenario), async ({ socket }) => {
      const { frames } = await rawCall(socket, (read) => read.type === 3);
      assert.equal(frames.at(-1)!.payload.readUInt32BE(0), code);
    });
  }
});

test("answers that are gRPC and wrong", async () => {
  const answer = async (scenario: string) => {
    let frames: Frame[] = [];
    await withSimulator(scenario, async ({ socket }) => {
      ({ frames } = await rawCall(socket, endsStream));
    });
    return { message: body(frames), last: frames.at(-1)! };
  };
  assert.equal((await answer("compressed")).message[0], 1);
  const truncated = await answer("truncated");
  assert.ok(truncated.message.length - 5 < truncated.message.readUInt32BE(1));
  assert.match(truncated.last.payload.toString(), /grpc-status\x010$/);
  const short = await answer("short-prefix");
  assert.ok(short.message.length - 5 > short.message.readUInt32BE(1));
  assert.equal((await answer("no-message")).message.length, 0);
  const two = (await answer("two-messages")).message;
  assert.equal(two.length, 2 * (5 + two.readUInt32BE(1)));
  assert.deepEqual(two.subarray(0, two.length / 2), two.subarray(two.length / 2));
  const undecodable = (await answer("undecodable")).message;
  assert.equal(undecodable.length - 5, undecodable.readUInt32BE(1));
  assert.equal((await answer("no-status")).last.type, 0, "the stream ends with the body");
  assert.match((await answer("unknown-status")).last.payload.toString(), /grpc-status\x0299/);
});

test("an error message of a megabyte comes in frames of the allowed size", async () => {
  await withSimulator("long-message", async ({ socket }) => {
    const { frames } = await rawCall(socket, (read) => read.type === 9 && (read.flags & 4) !== 0);
    const block = frames.filter((read) => read.type === 1 || read.type === 9);
    assert.ok(block.every((read) => read.payload.length <= 16384));
    assert.ok(block[0]!.flags === 1, "the stream ends with its headers, the headers do not end yet");
    assert.ok(Buffer.concat(block.map((read) => read.payload)).length > 1_000_000);
  });
});

test("an answer over 64 MiB is announced as such and sent whole", async () => {
  await withSimulator("too-large", async ({ socket }) => {
    let bytes = 0;
    let announced = 0;
    const { closed } = await rawCall(socket, (read) => {
      if (read.type === 0) {
        if (bytes === 0) announced = read.payload.readUInt32BE(1);
        bytes += read.payload.length;
      }
      return endsStream(read);
    });
    assert.ok(!closed);
    assert.equal(announced, 64 * 1024 * 1024 + 1);
    assert.equal(bytes, 5 + announced);
  });
});

test("an answer over 64 MiB waits for a window, so it costs no memory", async () => {
  await withSimulator("too-large", async ({ socket }) => {
    const client = connect(socket);
    let bytes = 0;
    // SETTINGS without a window of its own: 65535 bytes is what every connection starts with.
    client.write(
      Buffer.concat([preface, frame(4, 0, 0, Buffer.alloc(0)), frame(1, 5, 1, literals({ ":method": "POST" }))]),
    );
    await new Promise<void>((resolve) => {
      client.on("data", (chunk) => {
        bytes += chunk.length;
        if (bytes >= 65535) client.write(frame(6, 0, 0, Buffer.from("are here")));
        if (chunk.includes("are here")) resolve();
      });
    });
    client.destroy();
    assert.ok(bytes < 66500, `${bytes} bytes came`);
  });
});
