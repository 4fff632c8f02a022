import assert from "node:assert/strict";
import { createServer } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Fault } from "../lib/fault.ts";
import { type GrpcRequest, grpcCodeNames, type MessageSink, startCall } from "../lib/grpc.ts";
import { type Http2Connection, openHttp2, type StreamHandlers } from "../lib/http2.ts";
import { EventType, Pods } from "../proto/gen/pods_pb.js";
import { faultOf, grpcHeaders, grpcMessage, inFolder, listen } from "./http2_frames.ts";

const request: GrpcRequest = {
  path: "/v1alpha1.Pods/ListPods",
  body: Uint8Array.of(1, 2, 3),
  maxBytes: 1000,
  userAgent: "kubelet-probe/test",
};

/** A sink that keeps the messages. */
function keep(): MessageSink & { readonly messages: string[] } {
  const messages: string[] = [];
  let chunks: Buffer[] = [];
  let wanted = 0;
  return {
    messages,
    start(length) {
      wanted = length;
      chunks = [];
    },
    chunk: (bytes) => void chunks.push(Buffer.from(bytes)),
    end() {
      const message = Buffer.concat(chunks);
      assert.equal(message.length, wanted);
      messages.push(message.toString());
    },
  };
}

/** A call whose HTTP/2 side is the test's to play. */
function call(options: Partial<GrpcRequest> = {}, sink: MessageSink = keep()) {
  let handlers: StreamHandlers | undefined;
  const sent = { headers: {} as Readonly<Record<string, string>>, body: new Uint8Array(0), window: 0, cancels: 0 };
  const connection = {
    request(headers: Readonly<Record<string, string>>, body: Uint8Array, given: StreamHandlers, window: number) {
      handlers = given;
      Object.assign(sent, { headers, body, window });
      return { cancel: () => void sent.cancels++, setPaused() {} };
    },
  } as unknown as Http2Connection;
  const { status, cancel } = startCall(connection, { ...request, ...options }, sink);
  status.catch(() => {});
  return { status, cancel, sent, ...handlers! };
}

describe("the request", () => {
  test("has gRPC's headers, one plain authority and the prefix", () => {
    const { sent } = call();
    assert.deepEqual(sent.headers, {
      ":method": "POST",
      ":scheme": "http",
      ":path": "/v1alpha1.Pods/ListPods",
      ":authority": "localhost",
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": "kubelet-probe/test",
    });
    assert.deepEqual([...sent.body], [0, 0, 0, 0, 3, 1, 2, 3]);
    assert.equal(sent.window, 2 ** 31 - 1);
  });
  test("tells its timeout in whole ms of at most eight digits", () => {
    for (const [timeoutMs, text] of [
      [1, "1m"],
      [0.2, "1m"],
      [-5, "1m"],
      [1500.2, "1501m"],
      [1e12, "99999999m"],
      [Number.POSITIVE_INFINITY, "99999999m"],
    ] as const) {
      assert.equal(call({ timeoutMs }).sent.headers["grpc-timeout"], text);
    }
  });
  test("carries metadata and a narrow window where they are given", () => {
    const { sent } = call({ metadata: { "x-kubernetes-fieldmask": "metadata" }, window: 65535 });
    assert.equal(sent.headers["x-kubernetes-fieldmask"], "metadata");
    assert.equal(sent.window, 65535);
  });
});

describe("messages", () => {
  test("several, one of them empty, split at every byte", async () => {
    const body = Buffer.concat(["first", "", "third"].map((text) => grpcMessage(Buffer.from(text))));
    for (let at = 0; at <= body.length; at++) {
      const sink = keep();
      const { status, headers, data, end } = call({}, sink);
      headers(grpcHeaders, false);
      data(body.subarray(0, at));
      data(body.subarray(at));
      end({ "grpc-status": "0" });
      assert.deepEqual(await status, { code: 0, message: "" });
      assert.deepEqual(sink.messages, ["first", "", "third"]);
    }
  });

  const refusals: Readonly<Record<string, readonly [Buffer, "Undecodable" | "AnswerTooLarge", RegExp]>> = {
    "a compressed one": [grpcMessage(Buffer.alloc(3), 1), "Undecodable", /compressed/],
    "a flag that does not exist": [grpcMessage(Buffer.alloc(3), 7), "Undecodable", /not a gRPC message/],
    "one over the limit, before any of it is taken (c01)": [
      Buffer.from([0, 0xff, 0xff, 0xff, 0xff]),
      "AnswerTooLarge",
      /4294967295 bytes is over the limit of 1000 bytes/,
    ],
  };
  for (const [name, [bytes, code, pattern]] of Object.entries(refusals)) {
    test(`${name} gives the call up`, async () => {
      const { status, sent, headers, data } = call();
      headers(grpcHeaders, false);
      data(bytes);
      assert.match((await faultOf(status, code)).message, pattern);
      assert.equal(sent.cancels, 1);
    });
  }

  test("an answer that ends within one is not taken for whole, unless it says that it failed", async () => {
    for (const length of [1, 5, 6]) {
      for (const [grpcStatus, isFault] of [
        ["0", true],
        ["9", false],
      ] as const) {
        const { status, headers, data, end } = call();
        headers(grpcHeaders, false);
        data(grpcMessage(Buffer.alloc(3)).subarray(0, length));
        end({ "grpc-status": grpcStatus });
        if (isFault) await faultOf(status, "Undecodable");
        else assert.equal((await status).code, 9);
      }
    }
  });

  test("what a sink cannot take is the fault of its call", async () => {
    for (const [thrown, code] of [
      [new Fault("Undecodable", "no"), "Undecodable"],
      [new TypeError("a bug"), "InternalError"],
    ] as const) {
      const sink = { ...keep(), start: () => assert.fail(thrown) };
      const { status, sent, headers, data } = call({}, sink);
      headers(grpcHeaders, false);
      data(grpcMessage(Buffer.alloc(3)));
      await faultOf(status, code);
      assert.equal(sent.cancels, 1);
    }
  });
});

describe("the status", () => {
  test("is in the trailers, or in the headers of an answer without a body", async () => {
    const inTrailers = call();
    inTrailers.headers(grpcHeaders, false);
    inTrailers.end({ "grpc-status": "8", "grpc-message": "rejected by rate limit" });
    assert.deepEqual(await inTrailers.status, { code: 8, message: "rejected by rate limit" });
    const alone = call();
    alone.headers({ ...grpcHeaders, "grpc-status": "9", "grpc-message": "Kubelet is initializing" }, true);
    alone.end(undefined);
    assert.deepEqual(await alone.status, { code: 9, message: "Kubelet is initializing" });
  });

  const messages: readonly (readonly [string, string])[] = [
    ["pod%20with%20%22x%22", 'pod with "x"'],
    ["%E2%98%83%e2%98%83", "☃☃"],
    ["100%", "100%"],
    ["%4", "%4"],
    ["%zz%41", "%zzA"],
    ["%ff", "\ufffd"],
    ["\xe2\x98\x83", "☃"], // bytes that were not encoded
    ["", ""],
  ];
  for (const [encoded, message] of messages) {
    test(`its message ${JSON.stringify(encoded)} is decoded`, async () => {
      const { status, headers, end } = call();
      headers({ ...grpcHeaders, "grpc-status": "13", "grpc-message": encoded }, true);
      end(undefined);
      assert.deepEqual(await status, { code: 13, message });
    });
  }
  test("a message of a megabyte is cut", async () => {
    const { status, headers, end } = call();
    headers({ ...grpcHeaders, "grpc-status": "13", "grpc-message": "x".repeat(1 << 20) }, true);
    end(undefined);
    assert.equal((await status).message.length, 1 << 16);
  });
  test("one that is no number is UNKNOWN, one of the future is kept", async () => {
    for (const [text, code] of [
      ["abc", 2],
      ["-1", 2],
      ["", 2],
      ["99999", 2],
      ["17", 17],
    ] as const) {
      const { status, headers, end } = call();
      headers({ ...grpcHeaders, "grpc-status": text }, true);
      end(undefined);
      assert.equal((await status).code, code);
    }
  });
  test("has a name for each code", () => {
    assert.equal(grpcCodeNames.length, 17);
    assert.equal(grpcCodeNames[8], "RESOURCE_EXHAUSTED");
    assert.equal(grpcCodeNames[16], "UNAUTHENTICATED");
  });
});

describe("an answer that is not gRPC", () => {
  const answers: readonly (readonly [Record<string, string>, RegExp])[] = [
    [{ ":status": "404", "content-type": "text/plain" }, /HTTP status 404/],
    [{ ":status": "503" }, /HTTP status 503/],
    [{}, /HTTP status none/],
    [{ ":status": "200" }, /content type "none"/],
    [{ ":status": "200", "content-type": "text/html; charset=utf-8" }, /content type "text\/html/],
    [{ ":status": "200", "content-type": "application/grpc-web+proto" }, /content type "application\/grpc-web/],
    [{ ":status": "200", "content-type": `x${"y".repeat(9999)}` }, /content type "xy{79}"/],
  ];
  for (const [fields, pattern] of answers) {
    test(`${JSON.stringify(fields).slice(0, 90)} is NotGrpc, with a body and without`, async () => {
      const withBody = call();
      withBody.headers(fields, false);
      assert.match((await faultOf(withBody.status, "NotGrpc")).message, pattern);
      assert.equal(withBody.sent.cancels, 1);
      const alone = call();
      alone.headers(fields, true);
      alone.end(undefined);
      assert.match((await faultOf(alone.status, "NotGrpc")).message, pattern);
    });
  }
  test("a body without a status at its end", async () => {
    const { status, headers, end } = call();
    headers(grpcHeaders, false);
    end(undefined);
    assert.match((await faultOf(status, "NotGrpc")).message, /without a gRPC status/);
  });
  test("a gRPC status is believed whatever stands beside it: grpc-go's 415 for a wrong content type", async () => {
    const { status, headers, end } = call();
    headers({ ":status": "415", "grpc-status": "3", "grpc-message": "no" }, true);
    end(undefined);
    assert.equal((await status).code, 3);
  });
  test("content types with a format or parameters are gRPC's", async () => {
    for (const type of ["application/grpc+proto", "application/grpc;charset=utf-8"]) {
      const { status, headers, end } = call();
      headers({ ":status": "200", "content-type": type }, false);
      end({ "grpc-status": "0" });
      assert.equal((await status).code, 0);
    }
  });
});

test("a connection that fails fails the call", async () => {
  const { status, fail } = call();
  fail(new Fault("ConnectionLost", "gone"));
  await faultOf(status, "ConnectionLost");
});

test("a call that is given up is cancelled on the connection", () => {
  const { cancel, sent } = call();
  cancel();
  assert.equal(sent.cancels, 1);
});

/** Connect's server, which shares nothing with the client. */
async function withConnect(
  routes: (router: ConnectRouter) => void,
  use: (connection: Http2Connection) => Promise<void>,
): Promise<void> {
  await inFolder(async (folder) => {
    const server = createServer(connectNodeAdapter({ routes }));
    const sessions: { destroy(): void }[] = [];
    server.on("session", (session) => {
      session.on("error", () => {});
      sessions.push(session);
    });
    const path = join(folder, "s.sock");
    await listen(server, path);
    const socket = connect(path);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    try {
      await use(openHttp2(socket, (error) => new Fault("SocketDead", error.message)));
    } finally {
      socket.destroy();
      await closed;
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

describe("Connect's server", () => {
  test("reads the request and its metadata, and its answer is read", async () => {
    let seen: HandlerContext | undefined;
    await withConnect(
      (router) =>
        router.service(Pods, {
          getPod: ({ podUID }, context) => {
            seen = context;
            return { pod: Buffer.from(`pod ${podUID}`) };
          },
        }),
      async (connection) => {
        const sink = keep();
        const body = Buffer.concat([Buffer.from([10, 5]), Buffer.from("uid-1")]);
        const metadata = { "x-probe": "1" };
        const timed = { ...request, path: "/v1alpha1.Pods/GetPod", body, metadata, timeoutMs: 60_000 };
        assert.deepEqual(await startCall(connection, timed, sink).status, { code: 0, message: "" });
        assert.deepEqual(sink.messages, ["\n\tpod uid-1"]);
      },
    );
    assert.equal(seen?.requestHeader.get("x-probe"), "1");
    assert.ok((seen?.timeoutMs() ?? 0) > 0);
  });

  test("its stream is read message by message", () =>
    withConnect(
      (router) =>
        router.service(Pods, {
          async *watchPods() {
            for (let count = 0; count < 50; count++) yield { type: EventType.ADDED, pod: Buffer.from(`${count}`) };
            yield { type: EventType.INITIAL_SYNC_COMPLETE };
          },
        }),
      async (connection) => {
        const sink = keep();
        const watch = { ...request, path: "/v1alpha1.Pods/WatchPods", body: new Uint8Array(0) };
        assert.equal((await startCall(connection, watch, sink).status).code, 0);
        assert.equal(sink.messages.length, 51);
        assert.equal(sink.messages[49], "\b\u0001\u0012\u000249");
        assert.equal(sink.messages[50], "\b\u0004");
      },
    ));

  test("each of its codes arrives with its message", () =>
    withConnect(
      (router) =>
        router.service(Pods, {
          getPod: ({ podUID }) => {
            throw new ConnectError(`no ☃ "${podUID}" 100%`, Number(podUID) as Code);
          },
        }),
      async (connection) => {
        for (let code = Code.Canceled; code <= Code.Unauthenticated; code++) {
          const body = Buffer.concat([Buffer.from([10, `${code}`.length]), Buffer.from(`${code}`)]);
          const failing = { ...request, path: "/v1alpha1.Pods/GetPod", body };
          const { status } = startCall(connection, failing, keep());
          assert.deepEqual(await status, { code, message: `no ☃ "${code}" 100%` });
        }
      },
    ));

  test("a service that it lacks is UNIMPLEMENTED, or no gRPC (c09)", () =>
    withConnect(
      (router) => router.service(Pods, {}),
      async (connection) => {
        assert.equal((await startCall(connection, { ...request, body: new Uint8Array(0) }, keep()).status).code, 12);
        await faultOf(startCall(connection, { ...request, path: "/v1.Pods/ListPods" }, keep()).status, "NotGrpc");
      },
    ));
});
