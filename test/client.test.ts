import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { createServer as createHttp2Server } from "node:http2";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { ConnectError, type ConnectRouter, Code as Status } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  createPodsClient,
  defaultMaxBytes,
  type PodsClient,
  type PodsClientOptions,
  statusFault,
} from "../lib/client.ts";
import type { Code } from "../lib/codes.ts";
import type { WatchEvent } from "../lib/watch_event.ts";
import { PodSchema } from "../proto/gen/pod_pb.js";
import {
  EventType,
  GetPodResponseSchema,
  ListPodsResponseSchema,
  Pods,
  WatchPodsEventSchema,
} from "../proto/gen/pods_pb.js";
import {
  endStream,
  faultOf,
  frame,
  frameType,
  grpcAnswer,
  grpcError,
  grpcHeaders,
  grpcMessage,
  headersFrame,
  inFolder,
  listen,
  type Peer,
  type RawServer,
  type Script,
  startRawServer,
  uint32,
  until,
  withRawServer,
} from "./http2_frames.ts";

const settings = frame(frameType.settings, 0, 0);
const path = ":path";
const longMs = 600_000;

// Bun ends a test after 5 s unless told otherwise, and a machine that is busy may need them.
const slow = { timeout: 60_000 };

function pod(name: string, padding = 0): Uint8Array {
  const labels: Record<string, string> = padding > 0 ? { padding: "x".repeat(padding) } : {};
  return toBinary(
    PodSchema,
    create(PodSchema, { metadata: { name, namespace: "default", uid: `uid-${name}`, labels } }),
  );
}

function list(...names: readonly string[]): Uint8Array {
  return toBinary(
    ListPodsResponseSchema,
    create(ListPodsResponseSchema, { pods: names.map((name) => Uint8Array.from(pod(name))) }),
  );
}

function event(type: EventType, name?: string): Uint8Array {
  const found = name === undefined ? new Uint8Array(0) : Uint8Array.from(pod(name));
  return toBinary(WatchPodsEventSchema, create(WatchPodsEventSchema, { type, pod: found }));
}

/** Uses a client of a server of a script. */
async function withClient(
  script: Script,
  use: (client: PodsClient, server: RawServer) => Promise<void>,
  options: Partial<PodsClientOptions> = {},
): Promise<void> {
  await withRawServer(script, async (server) => {
    const client = createPodsClient({ socket: server.path, timeoutMs: longMs, ...options });
    try {
      await use(client, server);
    } finally {
      client.close();
    }
  });
}

/** A server that answers each request by what it asks for. */
function answering(answer: (id: number, method: string, peer: Peer) => Buffer | undefined): Script {
  return {
    onConnection: ({ send }) => send(settings),
    onRequest: (id, headers, peer) => {
      const bytes = answer(id, headers[path]!.split("/").at(-1)!, peer);
      if (bytes !== undefined) peer.send(bytes);
    },
  };
}

/** Connect's server with the Pods service, which shares nothing with the client. */
async function withConnect(
  routes: (router: ConnectRouter) => void,
  use: (client: PodsClient, socket: string) => Promise<void>,
): Promise<void> {
  await inFolder(async (folder) => {
    const server = createHttp2Server(connectNodeAdapter({ routes }));
    const sessions: { destroy(): void }[] = [];
    server.on("session", (session) => {
      session.on("error", () => {});
      sessions.push(session);
    });
    const socket = join(folder, "s.sock");
    await listen(server, socket);
    const client = createPodsClient({ socket, timeoutMs: longMs });
    try {
      await use(client, socket);
    } finally {
      client.close();
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

describe("against Connect's server", () => {
  test("c01: 260 pods of 18.5 KB, more than the usual limit of 4 MiB, are all listed", slow, () =>
    withConnect(
      (router) =>
        router.service(Pods, {
          listPods: () => ({
            pods: Array.from({ length: 260 }, (_, index) => Uint8Array.from(pod(`pod-${index}`, 18_400))),
          }),
        }),
      async (client, socket) => {
        const { pods, bytes } = await client.list();
        assert.deepEqual(
          pods.map(({ name }) => name),
          Array.from({ length: 260 }, (_, index) => `pod-${index}`),
        );
        assert.ok(bytes > 4_700_000);
        assert.equal(client.tokensSpent, 1);
        assert.ok(client.bytesReceived > bytes);
        const narrow = createPodsClient({ socket, maxBytes: 4 << 20 });
        const { message } = await faultOf(narrow.list(), "AnswerTooLarge");
        assert.match(message, /over the limit of 4194304 bytes/);
        narrow.close();
      },
    ),
  );

  test("a pod is found by its UID, or is none", () =>
    withConnect(
      (router) =>
        router.service(Pods, {
          getPod: ({ podUID }) => {
            if (podUID === "uid-a") return { pod: Uint8Array.from(pod("a")) };
            throw new ConnectError(`pod with UID ${podUID} not found`, Status.NotFound);
          },
        }),
      async (client) => {
        assert.equal((await client.get("uid-a"))?.name, "a");
        assert.equal(await client.get("uid-b"), null);
        assert.equal(await client.get(""), null);
        assert.equal(await client.get("x".repeat(127)), null);
        assert.equal(client.tokensSpent, 4, "GetPod for an unknown UID costs a token");
        await assert.rejects(client.get("x".repeat(128)), RangeError);
      },
    ));

  test("calls at once share the connection", () =>
    withConnect(
      (router) => router.service(Pods, { listPods: () => ({ pods: [Uint8Array.from(pod("a"))] }) }),
      async (client) => {
        await client.connect();
        assert.equal(client.tokensSpent, 0);
        const listings = await Promise.all(Array.from({ length: 10 }, () => client.list()));
        assert.ok(listings.every(({ pods }) => pods[0]?.name === "a"));
        assert.equal(client.tokensSpent, 10);
      },
    ));

  test("a watch is synced, goes on, and ends with what the kubelet tells a slow watcher", () =>
    withConnect(
      (router) =>
        router.service(Pods, {
          async *watchPods() {
            yield { type: EventType.ADDED, pod: Uint8Array.from(pod("a")) };
            yield { type: EventType.INITIAL_SYNC_COMPLETE };
            yield { type: EventType.MODIFIED, pod: Uint8Array.from(pod("a")) };
            yield { type: EventType.DELETED, pod: Uint8Array.from(pod("a")) };
            throw new ConnectError("watch client channel closed", Status.ResourceExhausted);
          },
        }),
      async (client) => {
        const types: string[] = [];
        const fault = await faultOf(
          (async () => {
            for await (const found of client.watch()) types.push(found.type);
          })(),
          "WatchDropped",
        );
        assert.deepEqual(types, ["added", "synced", "modified", "deleted"]);
        assert.equal(fault.details.grpcMessage, "watch client channel closed");
        assert.equal(client.tokensSpent, 0);
      },
    ));
});

describe("tokens: what a call has cost, at the most", () => {
  const rows: readonly (readonly [string, Script, Code | null, number])[] = [
    ["an answer", answering((id) => grpcAnswer(id, list("a"))), null, 1],
    ["c07: not ready costs one", answering((id) => grpcError(id, 9, "Kubelet is initializing")), "Initializing", 1],
    ["the limiter takes none", answering((id) => grpcError(id, 8, "rejected by rate limit")), "RateLimited", 0],
    [
      "c09: another service has no limiter",
      answering((id) => grpcError(id, 12, "unknown service v1alpha1.Pods")),
      "WrongService",
      0,
    ],
    ["an error behind the limiter", answering((id) => grpcError(id, 13, "no")), "ServerError", 1],
    ["an answer that cannot be decoded", answering((id) => grpcAnswer(id, Uint8Array.of(10, 99))), "Undecodable", 1],
    [
      "an answer without a message",
      answering((id) => headersFrame(id, { ...grpcHeaders, "grpc-status": "0" }, endStream)),
      "Undecodable",
      1,
    ],
    [
      "a call that is lost twice may have cost two",
      answering((id) => frame(frameType.reset, 0, id, uint32(7))),
      "ConnectionLost",
      2,
    ],
    [
      "a server of another protocol",
      { onConnection: ({ send }) => send(Buffer.from("HTTP/1.1 400 Bad\r\n\r\n")) },
      "NotGrpc",
      0,
    ],
  ];
  for (const [name, script, code, tokens] of rows) {
    test(`${name}: ${code ?? "OK"}, ${tokens}`, () =>
      withClient(script, async (client) => {
        if (code === null) await client.list();
        else await faultOf(client.list(), code);
        assert.equal(client.tokensSpent, tokens);
      }));
  }

  test("no connection costs none, a server that hangs may serve the call yet", async () => {
    const nowhere = createPodsClient({ socket: "/nowhere/s.sock" });
    await faultOf(nowhere.list(), "SocketMissing");
    assert.equal(nowhere.tokensSpent, 0);
    await withClient({}, async (client) => {
      await faultOf(client.list({ timeoutMs: 30 }), "Timeout");
      assert.equal(client.tokensSpent, 1);
      await faultOf(client.connect({ timeoutMs: 30 }), "Timeout");
      assert.equal(client.tokensSpent, 1);
    });
  });
});

describe("a connection that is lost", () => {
  test("c07: EOF during the call, as of a kubelet that restarts, is tried once more", () =>
    withClient(
      answering((id, _, { socket, number }) => {
        if (number > 1) return grpcAnswer(id, list("a"));
        socket.destroy();
        return undefined;
      }),
      async (client, { peers }) => {
        assert.equal((await client.list()).pods.length, 1);
        assert.equal(peers.length, 2);
        assert.equal(client.tokensSpent, 2);
      },
    ));

  test("half of an answer is not counted with the second one", () =>
    withClient(
      answering((id, _, { socket, number, send }) => {
        if (number > 1) return grpcAnswer(id, list("b"));
        send(headersFrame(id, grpcHeaders), frame(frameType.data, 0, id, grpcMessage(list("a", "b")).subarray(0, -1)));
        setTimeout(() => socket.destroy(), 10);
        return undefined;
      }),
      async (client) => {
        const { pods } = await client.list();
        assert.deepEqual(
          pods.map(({ name }) => name),
          ["b"],
        );
      },
    ));

  test("more than once is a fault", () =>
    withClient({ onConnection: ({ socket }) => socket.destroy() }, async (client, { peers }) => {
      await faultOf(client.list(), "ConnectionLost");
      assert.equal(peers.length, 2);
      await faultOf(client.connect(), "ConnectionLost");
      assert.equal(peers.length, 4);
    }));

  test("a kubelet that restarted between two calls is found again", () =>
    inFolder(async (folder) => {
      const socket = join(folder, "s.sock");
      const client = createPodsClient({ socket, timeoutMs: longMs });
      const script = answering((id) => grpcAnswer(id, list("a")));
      for (let restart = 0; restart < 3; restart++) {
        rmSync(socket, { force: true });
        const server = await startRawServer(socket, script);
        assert.equal((await client.list()).pods.length, 1);
        await server.close();
      }
      rmSync(socket, { force: true });
      await faultOf(client.list(), "SocketMissing");
      client.close();
    }));

  test("after close() nothing is tried again", () =>
    withClient(
      answering(() => undefined),
      async (client, { peers }) => {
        const call = client.list();
        await until(() => (peers[0]?.frames.length ?? 0) > 3);
        client.close();
        await faultOf(call, "ConnectionLost");
        await faultOf(client.list(), "ConnectionLost");
        assert.equal(peers.length, 1);
      },
    ));
});

test("c03: a strict server that resets calls unless :authority is a host is content", () =>
  withClient(
    {
      onConnection: ({ send }) => send(settings),
      onRequest: (id, headers, { send }) => {
        const isHost = /^[a-z0-9.-]+(:[0-9]+)?$/.test(headers[":authority"] ?? "") && headers.host === undefined;
        send(isHost ? grpcAnswer(id, list("a")) : frame(frameType.reset, 0, id, uint32(1)));
      },
    },
    async (client) => {
      assert.equal((await client.list()).pods.length, 1);
    },
  ));

describe("c04: every connection goes to the unix socket", () => {
  for (const prefix of ["", "unix:", "unix://"]) {
    test(`${prefix}/a, also the one after a GOAWAY`, async () => {
      let calls = 0;
      const decoy = createServer((socket) => {
        calls++;
        socket.destroy();
      });
      // Port 80, which a client of http://localhost would dial, where this user may have it.
      const port = await new Promise<number>((resolve) => {
        decoy.once("error", () => decoy.listen(0, "127.0.0.1", () => resolve(0)));
        decoy.listen(80, "127.0.0.1", () => resolve(80));
      });
      assert.ok(port === 80 || port === 0);
      const goaway = frame(frameType.goaway, 0, 0, uint32(0, 0));
      await withRawServer(
        answering((id, _, { number, socket }) => {
          if (number > 1) return grpcAnswer(id, list("a"));
          socket.end(goaway);
          return undefined;
        }),
        async ({ path: socketFile, peers }) => {
          const client = createPodsClient({ socket: `${prefix}${socketFile}` });
          assert.equal((await client.list()).pods.length, 1);
          assert.equal(peers.length, 2);
          client.close();
        },
      );
      await new Promise((resolve) => decoy.close(resolve));
      assert.equal(calls, 0);
    });
  }
});

describe("answers that are too large, or no answers", () => {
  test("64 MiB, the limit, is decoded as it comes", slow, async () => {
    const name = Buffer.from("pod");
    // Each pod with its tag and length fills a frame; its padding is a field that nobody reads.
    const padding = 16384 - 4 - (2 + 2 + name.length) - 4;
    const one = Buffer.concat([
      Buffer.from([10, 2 + name.length, 10, name.length]),
      name,
      Buffer.from([0x9a, 0x06, (padding & 127) | 128, padding >> 7]),
      Buffer.alloc(padding),
    ]);
    const piece = Buffer.concat([Buffer.from([10, (one.length & 127) | 128, one.length >> 7]), one]);
    const count = Math.floor(defaultMaxBytes / piece.length);
    await withClient(
      {
        onConnection: ({ send }) => send(settings),
        onRequest: (id, _, { socket, send }) => {
          send(headersFrame(id, grpcHeaders));
          send(frame(frameType.data, 0, id, Buffer.concat([Buffer.from([0]), uint32(count * piece.length)])));
          const dataFrame = frame(frameType.data, 0, id, piece);
          let sent = 0;
          const sendMore = () => {
            for (let batch = 0; batch < 32 && sent < count; batch++, sent++) {
              if (batch < 31 && sent + 1 < count) socket.write(dataFrame);
              else socket.write(dataFrame, sendMore);
            }
            if (sent === count) send(headersFrame(id, { "grpc-status": "0" }, endStream));
          };
          sendMore();
        },
      },
      async (client) => {
        const { pods, bytes } = await client.list();
        assert.equal(pods.length, count);
        assert.ok(pods.every((found) => found.name === "pod"));
        assert.ok(bytes > defaultMaxBytes - 16384);
      },
    );
  });

  test("one byte more is not taken, and the call is cancelled", () =>
    withClient(
      answering((id) =>
        Buffer.concat([
          headersFrame(id, grpcHeaders),
          frame(frameType.data, 0, id, Buffer.concat([Buffer.from([0]), uint32(defaultMaxBytes + 1)])),
        ]),
      ),
      async (client, { peers }) => {
        await faultOf(client.list(), "AnswerTooLarge");
        await until(() => peers[0]!.frames.some(({ type }) => type === frameType.reset));
      },
    ));

  test("a million empty pods, which would take far more memory than their bytes", slow, () =>
    withClient(
      answering((id) => {
        const pods = new Uint8Array(2_000_000);
        for (let at = 0; at < pods.length; at += 2) pods[at] = 10;
        return grpcAnswer(id, pods);
      }),
      async (client) => {
        assert.match((await faultOf(client.list(), "AnswerTooLarge")).message, /over 200000 pods/);
      },
    ),
  );

  test("an answer to GetPod without a pod, or with two", () =>
    withClient(
      answering((id, _, { frames }) => {
        const asked = frames.filter(({ type }) => type === frameType.headers).length;
        return grpcAnswer(id, asked === 1 ? new Uint8Array(0) : list("a", "b"));
      }),
      async (client) => {
        await faultOf(client.get("a"), "Undecodable");
        await faultOf(client.get("a"), "Undecodable");
      },
    ));

  test("GetPod's answer is read as its schema has it", () =>
    withClient(
      answering((id) =>
        grpcAnswer(
          id,
          toBinary(GetPodResponseSchema, create(GetPodResponseSchema, { pod: Uint8Array.from(pod("a")) })),
        ),
      ),
      async (client) => {
        assert.equal((await client.get("uid-a"))?.uid, "uid-a");
      },
    ));
});

describe("limits and signals", () => {
  test("one byte at a time past the deadline", () =>
    withClient(
      {
        onConnection: ({ send }) => send(settings),
        onRequest: (id, _, { socket }) => {
          const bytes = grpcAnswer(id, list(...Array.from({ length: 1000 }, (_, index) => `pod-${index}`)));
          let at = 0;
          const dribble = setInterval(() => {
            if (socket.destroyed) clearInterval(dribble);
            else socket.write(bytes.subarray(at, ++at));
          }, 1);
          socket.once("close", () => clearInterval(dribble));
        },
      },
      async (client) => {
        const fault = await faultOf(client.list({ timeoutMs: 60 }), "Timeout");
        assert.equal(fault.details.phase, "call");
      },
    ));

  test("hold for both attempts together", () =>
    withClient(
      answering((_, __, { number, socket }) => {
        if (number === 1) setTimeout(() => socket.destroy(), 20);
        return undefined;
      }),
      async (client) => {
        await faultOf(client.list({ timeoutMs: 80 }), "Timeout");
      },
    ));

  test("the server is told the limit of a call, and none of a watch", async () => {
    const timeouts: (string | undefined)[] = [];
    await withClient(
      {
        onConnection: ({ send }) => send(settings),
        onRequest: (id, headers, { send }) => {
          timeouts.push(headers["grpc-timeout"]);
          send(grpcError(id, 4, "context deadline exceeded"));
        },
      },
      async (client) => {
        await faultOf(client.list({ timeoutMs: 1500 }), "Timeout");
        await faultOf(client.watch({ timeoutMs: 1500 }).next(), "Timeout");
      },
    );
    assert.match(timeouts[0]!, /^1[0-9]{3}m$/);
    assert.equal(timeouts[1], undefined);
  });

  test("a signal's reason is what a call fails with", () =>
    withClient(
      answering(() => undefined),
      async (client) => {
        const reason = new Error("enough");
        const aborter = new AbortController();
        const calls = [client.list({ signal: aborter.signal }), client.watch({ signal: aborter.signal }).next()];
        setTimeout(() => aborter.abort(reason), 20);
        for (const call of calls) await assert.rejects(call, (error) => error === reason);
      },
    ));
});

/** Sends the events of a watch as far as the client's window allows, as a server that keeps to the protocol does. */
function watching(events: (index: number) => Uint8Array | undefined, other?: (id: number) => Buffer) {
  const state = { sent: 0, isBlocked: false, isReset: false };
  let window = 65535;
  let watchId = 0;
  const sendMore = ({ socket, send }: Peer) => {
    state.isBlocked = false;
    while (!socket.destroyed && !state.isReset) {
      const message = events(state.sent);
      if (message === undefined) return;
      const body = grpcMessage(message);
      state.isBlocked = body.length > window;
      if (state.isBlocked) return;
      window -= body.length;
      state.sent++;
      send(frame(frameType.data, 0, watchId, body));
    }
  };
  const script: Script = {
    onConnection: ({ send }) => send(settings),
    onRequest: (id, headers, peer) => {
      if (!headers[path]!.endsWith("WatchPods")) return peer.send(other!(id));
      watchId = id;
      peer.send(headersFrame(id, grpcHeaders));
      sendMore(peer);
    },
    onFrame: ({ type, id, payload }, peer) => {
      if (id !== watchId || watchId === 0) return;
      if (type === frameType.reset) state.isReset = true;
      if (type !== frameType.window) return;
      window += payload.readUInt32BE();
      sendMore(peer);
    },
  };
  return { script, state };
}

function nameOf(found: WatchEvent): string {
  return found.type === "synced" ? "synced" : found.pod.name;
}

describe("watch", () => {
  test("who does not iterate stops the server, not other calls, and misses nothing", slow, () => {
    const total = 8_000;
    const { script, state } = watching(
      (index) => (index < total ? event(EventType.ADDED, `pod-${index}`) : undefined),
      (id) => grpcAnswer(id, list("a")),
    );
    return withClient(script, async (client) => {
      const watch = client.watch();
      assert.equal(nameOf((await watch.next()).value), "pod-0");
      await until(() => state.isBlocked);
      assert.equal((await client.list()).pods.length, 1);
      for (let before = -1; state.sent !== before; ) {
        before = state.sent;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      assert.ok(state.isBlocked && state.sent < total, `${state.sent} events sent`);
      for (let index = 1; index < total; index++) {
        const { value } = await watch.next();
        if (nameOf(value) !== `pod-${index}`) assert.fail(`${nameOf(value)} for pod-${index}`);
      }
      await watch.return(undefined as never);
      await until(() => state.isReset);
    });
  });

  test("that is not synced in time ends, however many events there are", () => {
    const { script } = watching(() => event(EventType.ADDED, "a"));
    return withClient(script, async (client) => {
      await client.connect(); // or the handshake might be what takes the time
      const iterate = async () => {
        for await (const found of client.watch({ timeoutMs: 60 })) assert.equal(found.type, "added");
      };
      const fault = await faultOf(iterate(), "Timeout");
      assert.match(fault.message, /^The watch is not synced within 60 ms$/);
    });
  });

  test("the same, however slowly they are taken", () => {
    const { script } = watching(() => event(EventType.ADDED, "a"));
    return withClient(script, async (client) => {
      const iterate = async () => {
        for await (const _ of client.watch({ timeoutMs: 60 })) await new Promise((resolve) => setTimeout(resolve, 1));
      };
      await faultOf(iterate(), "Timeout");
    });
  });

  test("that is never synced is no larger than a listing may be, in bytes and in pods", slow, async () => {
    for (const maxBytes of [1 << 20, 1 << 30]) {
      const { script } = watching(() => event(EventType.ADDED, "a"));
      await withClient(
        script,
        async (client) => {
          const iterate = async () => {
            for await (const found of client.watch({ timeoutMs: longMs })) assert.equal(found.type, "added");
          };
          await faultOf(iterate(), "AnswerTooLarge");
        },
        { maxBytes },
      );
    }
  });

  test("a server that answers with nothing is not waited for longer", () =>
    withClient(
      answering(() => undefined),
      async (client) => {
        await faultOf(client.watch({ timeoutMs: 30 }).next(), "Timeout");
      },
    ));

  test("is held for as long as it may once it is synced, also by one who comes late to see it", () => {
    const { script, state } = watching((index) => (index === 0 ? event(EventType.INITIAL_SYNC_COMPLETE) : undefined));
    return withClient(script, async (client, { peers }) => {
      const watch = client.watch({ timeoutMs: 200 });
      const first = watch.next();
      await until(() => state.sent === 1);
      assert.equal(nameOf((await first).value), "synced");
      await new Promise((resolve) => setTimeout(resolve, 300));
      peers[0]!.send(frame(frameType.data, 0, 1, grpcMessage(event(EventType.MODIFIED, "late"))));
      assert.equal(nameOf((await watch.next()).value), "late");
      await watch.return(undefined as never);
    });
  });

  test("an abort leaves out the events that wait", () => {
    const { script, state } = watching((index) => (index < 10 ? event(EventType.ADDED, `pod-${index}`) : undefined));
    return withClient(script, async (client) => {
      const aborter = new AbortController();
      const watch = client.watch({ signal: aborter.signal });
      await watch.next();
      await until(() => state.sent === 10);
      aborter.abort(new Error("enough"));
      await assert.rejects(watch.next(), /enough/);
      await until(() => state.isReset);
    });
  });

  test("what the server has sent before it ends the stream is not lost", () =>
    withClient(
      answering((id) =>
        Buffer.concat([
          headersFrame(id, grpcHeaders),
          frame(frameType.data, 0, id, grpcMessage(event(EventType.ADDED, "a"))),
          frame(frameType.data, 0, id, grpcMessage(event(EventType.ADDED, "b"))),
          headersFrame(id, { "grpc-status": "0" }, endStream),
        ]),
      ),
      async (client) => {
        const watch = client.watch();
        assert.equal(nameOf((await watch.next()).value), "a");
        assert.equal(nameOf((await watch.next()).value), "b");
        assert.match((await faultOf(watch.next(), "WatchDropped")).message, /without an error/);
      },
    ));

  const ends: Readonly<Record<string, readonly [(id: number) => Buffer, Code]>> = {
    "not ready": [(id) => grpcError(id, 9, "Kubelet is initializing"), "Initializing"],
    "another service (c09)": [(id) => grpcError(id, 12, "unknown service v1alpha1.Pods"), "WrongService"],
    "a reset": [(id) => frame(frameType.reset, 0, id, uint32(2)), "ConnectionLost"],
    "an event that is not protobuf": [
      (id) =>
        Buffer.concat([
          headersFrame(id, grpcHeaders),
          frame(frameType.data, 0, id, grpcMessage(Uint8Array.of(10, 99))),
        ]),
      "Undecodable",
    ],
  };
  for (const [name, [answer, code]] of Object.entries(ends)) {
    test(`ends with ${code} on ${name}`, () =>
      withClient(answering(answer), async (client) => {
        await faultOf(client.watch().next(), code);
        assert.equal(client.tokensSpent, 0);
      }));
  }

  test("ends with the connection, and with close()", () =>
    withClient(
      answering((id) => headersFrame(id, grpcHeaders)),
      async (client, { peers }) => {
        const lost = client.watch().next();
        await until(() => (peers[0]?.frames.length ?? 0) > 3);
        peers[0]!.socket.destroy();
        await faultOf(lost, "ConnectionLost");
        const closed = client.watch().next();
        await until(() => (peers[1]?.frames.length ?? 0) > 3);
        client.close();
        await faultOf(closed, "ConnectionLost");
      },
    ));
});

describe("statusFault", () => {
  const rows: readonly (readonly [number, string, Code])[] = [
    [1, "", "ServerError"],
    [2, "x", "ServerError"],
    [4, "", "Timeout"],
    [5, "pod with UID X not found", "ServerError"],
    [7, "", "ServerError"],
    [8, "rejected by rate limit", "RateLimited"],
    [8, "watch client channel closed", "WatchDropped"],
    [8, "grpc: trying to send message larger than max (5000000 vs. 4194304)", "AnswerTooLarge"],
    [8, "something else", "ServerError"],
    [9, "Kubelet is initializing", "Initializing"],
    [12, "unknown service v1alpha1.Pods", "WrongService"],
    [14, "", "ServerError"],
    [16, "", "ServerError"],
    [99, "", "ServerError"],
  ];
  for (const [code, message, wanted] of rows) {
    test(`code ${code} ${JSON.stringify(message)} is ${wanted}`, () => {
      const fault = statusFault({ code, message });
      assert.equal(fault.code, wanted);
      assert.deepEqual(fault.details, { phase: "call", grpcStatus: code, grpcMessage: message });
      assert.ok(message === "" || fault.message.includes(message));
    });
  }
});

describe("chosen fields", () => {
  const names = ["namespace", "name"] as const;
  const mask = "metadata.namespace,metadata.name";

  /** A server that notes the mask of each call, and refuses one if it is told to. */
  function masking(seen: (string | undefined)[], refuses: boolean): Script {
    return {
      onConnection: ({ send }) => send(settings),
      onRequest: (id, headers, { send }) => {
        const given = headers["x-kubernetes-fieldmask"];
        seen.push(given);
        if (refuses && given !== undefined) return send(grpcError(id, 3, "invalid field mask: no such path"));
        if (headers[path]!.endsWith("WatchPods")) {
          const added = grpcMessage(event(EventType.ADDED, "a"));
          const synced = grpcMessage(event(EventType.INITIAL_SYNC_COMPLETE));
          return send(headersFrame(id, grpcHeaders), frame(frameType.data, 0, id, Buffer.concat([added, synced])));
        }
        send(grpcAnswer(id, list("a")));
      },
    };
  }

  test("a server is told of them, and nothing else is handed on", async () => {
    const seen: (string | undefined)[] = [];
    await withClient(masking(seen, false), async (client) => {
      assert.deepEqual((await client.list({ fields: names })).pods, [{ namespace: "default", name: "a" }]);
      assert.deepEqual(await client.get("x", { fields: ["uid"] }), { uid: "uid-a" });
      const watch = client.watch({ fields: ["name"] });
      assert.deepEqual((await watch.next()).value, { type: "added", pod: { name: "a" } });
      assert.deepEqual((await watch.next()).value, { type: "synced" });
      await watch.return(undefined as never);
      await client.list();
      assert.deepEqual(seen, [mask, "metadata.uid", "metadata.name", undefined]);
    });
  });

  // The revisions of the API that read the mask answered so to one that they could not read.
  test("one that refuses masks is asked once more without, and then never with one", async () => {
    const seen: (string | undefined)[] = [];
    await withClient(masking(seen, true), async (client) => {
      assert.deepEqual((await client.list({ fields: names })).pods, [{ namespace: "default", name: "a" }]);
      assert.equal(client.tokensSpent, 2);
      assert.deepEqual(await client.get("x", { fields: ["name"] }), { name: "a" });
      assert.deepEqual(seen, [mask, undefined, undefined]);
    });
    seen.length = 0;
    await withClient(masking(seen, true), async (client) => {
      const watch = client.watch({ fields: ["name"] });
      assert.deepEqual((await watch.next()).value, { type: "added", pod: { name: "a" } });
      await watch.return(undefined as never);
      assert.deepEqual(seen, ["metadata.name", undefined]);
    });
  });

  test("INVALID_ARGUMENT to a call without a mask is the server's error", async () => {
    const script = answering((id) => grpcError(id, 3, "no"));
    await withClient(script, async (client, { peers }) => {
      await faultOf(client.list(), "ServerError");
      assert.equal(client.tokensSpent, 1);
      await faultOf(client.list({ fields: names }), "ServerError");
      assert.equal(peers.length, 1);
      assert.equal(client.tokensSpent, 3);
    });
  });

  test("one that a pod does not have is refused before anything is sent", async () => {
    await withClient({}, async (client, { peers }) => {
      await assert.rejects(client.list({ fields: ["env" as "name"] }), RangeError);
      await assert.rejects(client.watch({ fields: [] }).next(), RangeError);
      assert.equal(peers.length, 0);
    });
  });
});

describe("versions of the API", () => {
  /** A server that has one version, and notes what it is asked for. */
  function having(version: string, seen: string[]): Script {
    return {
      onConnection: ({ send }) => send(settings),
      onRequest: (id, headers, { send }) => {
        const [, service = "", method] = headers[path]!.split("/");
        seen.push(`${service} ${method}`);
        if (service !== `${version}.Pods`) return send(grpcError(id, 12, `unknown service ${service}`));
        if (method !== "WatchPods") return send(grpcAnswer(id, list("a")));
        const synced = grpcMessage(event(EventType.INITIAL_SYNC_COMPLETE));
        send(headersFrame(id, grpcHeaders), frame(frameType.data, 0, id, synced));
      },
    };
  }

  test("what the kubelet has today is asked for first, and nothing else", async () => {
    const seen: string[] = [];
    await withClient(having("v1alpha1", seen), async (client) => {
      assert.equal(client.apiVersion, undefined);
      await client.list();
      assert.equal(client.apiVersion, "v1alpha1");
      assert.deepEqual(seen, ["v1alpha1.Pods ListPods"]);
    });
  });

  test("a server that has only a later one is found, at no token more, and then asked in that", async () => {
    for (const [version, before] of [
      ["v1beta1", ["v1alpha1"]],
      ["v1", ["v1alpha1", "v1beta1"]],
    ] as const) {
      const seen: string[] = [];
      await withClient(having(version, seen), async (client) => {
        assert.equal((await client.list()).pods.length, 1);
        assert.deepEqual([client.apiVersion, client.tokensSpent], [version, 1]);
        const watch = client.watch();
        assert.deepEqual((await watch.next()).value, { type: "synced" });
        await watch.return(undefined as never);
        const all = [...before.map((each) => `${each}.Pods ListPods`), `${version}.Pods ListPods`];
        assert.deepEqual(seen, [...all, `${version}.Pods WatchPods`]);
      });
      const watched: string[] = [];
      await withClient(having(version, watched), async (client) => {
        const watch = client.watch();
        assert.deepEqual((await watch.next()).value, { type: "synced" });
        await watch.return(undefined as never);
        assert.equal(client.apiVersion, version);
        assert.equal(watched.length, before.length + 1);
      });
    }
  });

  test("a server without any: WrongService in the words for the first, and no token", async () => {
    const seen: string[] = [];
    await withClient(having("v9", seen), async (client) => {
      assert.match((await faultOf(client.list(), "WrongService")).message, /unknown service v1alpha1\.Pods/);
      assert.match((await faultOf(client.watch().next(), "WrongService")).message, /unknown service v1alpha1\.Pods/);
      assert.deepEqual([client.apiVersion, client.tokensSpent, seen.length], [undefined, 0, 6]);
    });
  });

  test("one that is named is the only one tried", async () => {
    const seen: string[] = [];
    const script = having("v1alpha1", seen);
    await withClient(script, async (client) => void (await faultOf(client.list(), "WrongService")), {
      apiVersion: "v1",
    });
    assert.deepEqual(seen, ["v1.Pods ListPods"]);
  });

  test("calls at once each find it", async () => {
    await withClient(having("v1beta1", []), async (client) => {
      const pods = await Promise.all([1, 2, 3].map((n) => client.get(`uid-${n}`)));
      assert.deepEqual(
        pods.map((each) => each?.name),
        ["a", "a", "a"],
      );
      assert.equal(client.tokensSpent, 3);
    });
  });
});

describe("a budget", () => {
  test("refuses what would go over it in time, and the server is not asked", async () => {
    let calls = 0;
    const script = answering((id) => {
      calls++;
      return grpcAnswer(id, list("a"));
    });
    await withClient(
      script,
      async (client) => {
        await client.list();
        await client.get("x");
        const fault = await faultOf(client.list({ timeoutMs: 50 }), "RateLimited");
        assert.equal(fault.details.own, true);
        // A watch costs no token, connecting neither.
        await client.connect();
        assert.deepEqual([calls, client.tokensSpent], [2, 2]);
      },
      { budget: { perSecond: 0.001, burst: 2 } },
    );
  });
});

test("a watch that nobody reads stops the server at its buffer, and goes on from there", async () => {
  const events = 400;
  const padding = 2000;
  const added = Buffer.concat(
    Array.from({ length: events }, (_, index) => {
      const bytes = toBinary(
        WatchPodsEventSchema,
        create(WatchPodsEventSchema, { type: EventType.MODIFIED, pod: Uint8Array.from(pod(`p-${index}`, padding)) }),
      );
      return grpcMessage(bytes);
    }),
  );
  let sent = 0;
  let window = 65535;
  const sendMore = (id: number, { send }: Peer) => {
    while (sent < added.length && window > 0) {
      const size = Math.min(16384, window, added.length - sent);
      send(frame(frameType.data, 0, id, added.subarray(sent, sent + size)));
      sent += size;
      window -= size;
    }
  };
  const script: Script = {
    onConnection: ({ send }) => send(settings),
    onRequest: (id, _, peer) => {
      const synced = grpcMessage(event(EventType.INITIAL_SYNC_COMPLETE));
      peer.send(headersFrame(id, grpcHeaders), frame(frameType.data, 0, id, synced));
      window -= synced.length;
      sendMore(id, peer);
    },
    onFrame: ({ type, id, payload }, peer) => {
      if (type !== frameType.window || id === 0) return;
      window += payload.readUInt32BE(0);
      sendMore(id, peer);
    },
  };
  await withClient(script, async (client) => {
    const watch = client.watch({ buffer: 1, fields: ["name"] });
    await watch.next();
    await until(() => window === 0);
    assert.ok(sent < 70_000, `${sent} bytes sent to who does not read`);
    for (let index = 0; index < events; index++) {
      assert.deepEqual((await watch.next()).value, { type: "modified", pod: { name: `p-${index}` } });
    }
    await watch.return(undefined as never);
  });
});
