import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Code } from "../lib/codes.ts";
import { Fault } from "../lib/fault.ts";
import { type Http2Connection, type Http2Stream, openHttp2 } from "../lib/http2.ts";
import {
  ack,
  endHeaders,
  endStream,
  type Frame,
  faultOf,
  frame,
  frameType,
  headerBlock,
  headersFrame,
  inFolder,
  listen,
  padded,
  uint32,
  until,
  withRawServer,
} from "./http2_frames.ts";

// Bun ends a test after 5 s unless told otherwise, and a machine that is busy may need them.
const slow = { timeout: 60_000 };

const wide = 2 ** 31 - 1;
const requestHeaders = { ":method": "POST", ":scheme": "http", ":path": "/x", ":authority": "localhost" };

interface Answer {
  headers: Record<string, string>;
  body: Buffer;
  trailers: Record<string, string> | undefined;
}

interface Asked {
  readonly stream: Http2Stream;
  readonly answer: Promise<Answer>;
  readonly received: Buffer[];
}

function ask(connection: Http2Connection, body: Uint8Array = new Uint8Array(0), window = wide): Asked {
  const received: Buffer[] = [];
  let stream: Http2Stream | undefined;
  const answer = new Promise<Answer>((resolve, reject) => {
    let headers = {};
    stream = connection.request(
      requestHeaders,
      body,
      {
        headers: (found) => {
          headers = { ...found };
        },
        data: (chunk) => received.push(Buffer.from(chunk)),
        end: (trailers) => resolve({ headers, body: Buffer.concat(received), trailers: trailers && { ...trailers } }),
        fail: reject,
      },
      window,
    );
  });
  answer.catch(() => {});
  return { stream: stream!, answer, received };
}

const refused = (error: Error) => new Fault("SocketDead", error.message);

/** A socket without a server: what arrives, and in which pieces, is the test's to say. */
interface FakeSocket extends EventEmitter {
  writableLength: number;
  destroyed: boolean;
  isPaused: boolean;
  pauses: number;
  readonly sent: Buffer[];
}

function fakeSocket(): FakeSocket {
  const socket = Object.assign(new EventEmitter(), {
    writableLength: 0,
    destroyed: false,
    isPaused: false,
    pauses: 0,
    sent: [] as Buffer[],
    write(bytes: Buffer) {
      socket.sent.push(bytes);
      return true;
    },
    destroy() {
      if (socket.destroyed) return;
      socket.destroyed = true;
      queueMicrotask(() => socket.emit("close"));
    },
    pause() {
      socket.isPaused = true;
      socket.pauses++;
    },
    resume() {
      socket.isPaused = false;
    },
  });
  return socket;
}

/** The frames a client has sent, without its preface. */
async function sentFrames({ sent }: FakeSocket): Promise<Frame[]> {
  await Promise.resolve(); // what one turn writes is sent at its end
  const frames: Frame[] = [];
  let rest = Buffer.concat(sent);
  assert.equal(rest.toString("latin1", 0, 24), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  rest = rest.subarray(24);
  while (rest.length > 0) {
    const end = 9 + rest.readUIntBE(0, 3);
    frames.push({ type: rest[3]!, flags: rest[4]!, id: rest.readUInt32BE(5), payload: rest.subarray(9, end) });
    rest = rest.subarray(end);
  }
  return frames;
}

const settings = frame(frameType.settings, 0, 0);
const okHeaders = headersFrame(1, { ":status": "200" });
const okTrailers = headersFrame(1, { "grpc-status": "0" }, endStream);

function data(id: number, payload: Uint8Array | readonly number[], flags = 0): Buffer {
  return frame(frameType.data, flags, id, payload);
}

/** Opens a connection on a fake socket and makes one request. */
function asked(body?: Uint8Array, window?: number) {
  const socket = fakeSocket();
  const connection = openHttp2(socket as unknown as Socket, refused);
  socket.emit("connect");
  return {
    socket,
    connection,
    ...ask(connection, body, window),
    feed: (...parts: readonly Uint8Array[]) => void socket.emit("data", Buffer.concat(parts)),
  };
}

describe("an answer, in whatever pieces it comes", () => {
  const text = Buffer.from("what a server may say");
  const padding = (length: number) => Buffer.concat([Buffer.from([length]), text, Buffer.alloc(length)]);
  const block = headerBlock([
    [":status", "200"],
    ["content-type", "application/grpc"],
  ]);
  const plain: Answer = { headers: { ":status": "200" }, body: text, trailers: { "grpc-status": "0" } };
  const typed: Answer = { ...plain, headers: { ":status": "200", "content-type": "application/grpc" } };
  const answers: Readonly<Record<string, readonly [Buffer, Answer]>> = {
    "headers, data and trailers": [Buffer.concat([okHeaders, data(1, text), okTrailers]), plain],
    "trailers-only, as the kubelet answers an error": [
      headersFrame(1, { ":status": "200", "grpc-status": "9" }, endStream),
      { headers: { ":status": "200", "grpc-status": "9" }, body: Buffer.alloc(0), trailers: undefined },
    ],
    "data that ends the stream": [
      Buffer.concat([okHeaders, data(1, text, endStream)]),
      { ...plain, trailers: undefined },
    ],
    "an empty frame that ends the stream": [
      Buffer.concat([okHeaders, data(1, text), data(1, [], endStream)]),
      { ...plain, trailers: undefined },
    ],
    "data with 5 bytes of padding": [Buffer.concat([okHeaders, data(1, padding(5), padded), okTrailers]), plain],
    "data with padding of length 0": [Buffer.concat([okHeaders, data(1, padding(0), padded), okTrailers]), plain],
    "nothing but padding": [
      Buffer.concat([okHeaders, data(1, [3, 0, 0, 0], padded), data(1, [0], padded), data(1, text), okTrailers]),
      plain,
    ],
    "headers with padding and a priority": [
      Buffer.concat([
        frame(
          frameType.headers,
          endHeaders | padded | 32,
          1,
          Buffer.concat([Buffer.from([4, 0, 0, 0, 0, 9]), block, Buffer.alloc(4)]),
        ),
        data(1, text),
        okTrailers,
      ]),
      typed,
    ],
    "headers in CONTINUATION frames, one of them empty": [
      Buffer.concat([
        frame(frameType.headers, 0, 1, block.subarray(0, 3)),
        frame(frameType.continuation, 0, 1),
        frame(frameType.continuation, 0, 1, block.subarray(3, 20)),
        frame(frameType.continuation, endHeaders, 1, block.subarray(20)),
        data(1, text),
        okTrailers,
      ]),
      typed,
    ],
    "interim answers first": [
      Buffer.concat([
        headersFrame(1, { ":status": "100" }),
        headersFrame(1, { ":status": "103" }),
        okHeaders,
        data(1, text),
        okTrailers,
      ]),
      plain,
    ],
    "frames of extensions and priorities between": [
      Buffer.concat([
        frame(frameType.priority, 0, 1, [0, 0, 0, 0, 9]),
        frame(99, 255, 77, text),
        okHeaders,
        frame(0x0a, 0, 0, text),
        data(1, text),
        okTrailers,
      ]),
      plain,
    ],
  };
  for (const [name, [bytes, expected]] of Object.entries(answers)) {
    test(`${name}: split at every byte, and byte by byte`, slow, async () => {
      const whole = Buffer.concat([settings, bytes]);
      for (let at = 0; at <= whole.length; at++) {
        const { answer, feed } = asked();
        feed(whole.subarray(0, at));
        feed(whole.subarray(at));
        assert.deepEqual(await answer, expected);
      }
      const { answer, feed } = asked();
      for (const byte of whole) feed(Uint8Array.of(byte));
      assert.deepEqual(await answer, expected);
    });
  }

  test("a frame of the largest size, and not one byte more", async () => {
    const { answer, feed } = asked();
    feed(settings, okHeaders, data(1, Buffer.alloc(16384)), okTrailers);
    assert.equal((await answer).body.length, 16384);
    const second = asked();
    second.feed(settings, okHeaders, data(1, Buffer.alloc(16385)));
    await faultOf(second.answer, "NotGrpc");
  });
});

describe("what the client says", () => {
  test("preface, settings without push, the widest window, and the request, all at once", async () => {
    const { socket } = asked(Buffer.from("body"));
    const [first, window, headers, streamWindow, body, ...more] = await sentFrames(socket);
    assert.equal(socket.sent.length, 1, "one write");
    assert.deepEqual([first!.type, [...first!.payload]], [frameType.settings, [0, 2, 0, 0, 0, 0]]);
    assert.deepEqual([window!.type, window!.id, window!.payload], [frameType.window, 0, uint32(wide - 65535)]);
    assert.deepEqual([headers!.type, headers!.flags, headers!.id], [frameType.headers, endHeaders, 1]);
    assert.deepEqual([streamWindow!.type, streamWindow!.payload], [frameType.window, uint32(wide - 65535)]);
    assert.deepEqual([body!.type, body!.flags, body!.payload.toString()], [frameType.data, endStream, "body"]);
    assert.deepEqual(more, []);
  });

  test("settings are acknowledged, a PING is answered with its bytes, acknowledgements are not", async () => {
    const { socket, feed } = asked();
    const before = (await sentFrames(socket)).length;
    feed(
      settings,
      frame(frameType.ping, 0, 0, Buffer.from("12345678")),
      frame(frameType.ping, ack, 0, Buffer.alloc(8)),
    );
    feed(frame(frameType.settings, ack, 0));
    const [settingsAck, pong, ...more] = (await sentFrames(socket)).slice(before);
    assert.deepEqual([settingsAck!.type, settingsAck!.flags], [frameType.settings, ack]);
    assert.deepEqual([pong!.type, pong!.flags, pong!.payload.toString()], [frameType.ping, ack, "12345678"]);
    assert.deepEqual(more, []);
  });

  test("a call that is given up is reset with CANCEL, and what still comes for it is dropped", async () => {
    const { socket, stream, received, connection, feed } = asked();
    feed(settings, okHeaders);
    stream.cancel();
    stream.cancel();
    const resets = (await sentFrames(socket)).filter(({ type }) => type === frameType.reset);
    assert.deepEqual(
      resets.map(({ id, payload }) => [id, payload]),
      [[1, uint32(8)]],
    );
    feed(data(1, [1, 2, 3]), okTrailers);
    assert.deepEqual(received, []);
    assert.equal(connection.usable, true);
  });

  test("headers that cannot be sent leave nothing behind", async () => {
    const { connection, answer, feed } = asked();
    assert.throws(() => connection.request({ a: "x".repeat(5000) }, Buffer.alloc(0), {} as never, wide), RangeError);
    const second = ask(connection);
    feed(settings, okHeaders, okTrailers, headersFrame(3, { ":status": "200" }, endStream));
    assert.equal((await answer).headers[":status"], "200");
    assert.equal((await second.answer).headers[":status"], "200");
  });
});

describe("flow control", () => {
  const initialWindow = (size: number) =>
    frame(frameType.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(size)]));
  const bodies = async (socket: FakeSocket) =>
    (await sentFrames(socket))
      .filter(({ type }) => type === frameType.data)
      .map(({ id, payload }) => [id, payload.length]);

  test("a server's window of 0 holds the body back until it opens", async () => {
    const { socket, connection, feed } = asked();
    feed(initialWindow(0));
    ask(connection, Buffer.alloc(10));
    assert.deepEqual(await bodies(socket), [[1, 0]]);
    feed(frame(frameType.window, 0, 3, uint32(9)));
    assert.deepEqual(await bodies(socket), [[1, 0]]);
    feed(frame(frameType.window, 0, 3, uint32(1)));
    assert.deepEqual(await bodies(socket), [
      [1, 0],
      [3, 10],
    ]);
    ask(connection, Buffer.alloc(10));
    feed(initialWindow(10));
    assert.deepEqual((await bodies(socket)).at(-1), [5, 10]);
  });

  test("so does the connection's window", async () => {
    const { socket, connection, feed } = asked(Buffer.alloc(40_000));
    feed(settings);
    ask(connection, Buffer.alloc(40_000));
    assert.deepEqual(await bodies(socket), [[1, 40_000]]);
    feed(frame(frameType.window, 0, 0, uint32(40_000)));
    assert.deepEqual(await bodies(socket), [
      [1, 40_000],
      [3, 40_000],
    ]);
  });

  const grants = async (socket: FakeSocket) =>
    (await sentFrames(socket))
      .filter(({ type, id }) => type === frameType.window && id === 1)
      .map(({ payload }) => payload.readUInt32BE());

  test("a narrow window is granted anew as it is used, padding included", async () => {
    const { socket, feed } = asked(undefined, 65535);
    feed(settings, okHeaders, data(1, Buffer.alloc(16384)), data(1, Buffer.alloc(16384)));
    assert.deepEqual(await grants(socket), [32768]);
    for (let sent = 0; sent < 200; sent++)
      feed(data(1, Buffer.concat([Buffer.from([254, 1]), Buffer.alloc(254)]), padded));
    assert.deepEqual(await grants(socket), [32768, 32768]);
  });

  test("while paused nothing is granted, and what is owed is once it goes on", async () => {
    const { socket, stream, received, feed } = asked(undefined, 65535);
    stream.setPaused(true);
    feed(settings, okHeaders, ...Array.from({ length: 3 }, () => data(1, Buffer.alloc(16384))));
    assert.equal(received.length, 3, "what was granted is still taken");
    assert.deepEqual(await grants(socket), []);
    stream.setPaused(false);
    assert.deepEqual(await grants(socket), [3 * 16384]);
    stream.cancel();
    stream.setPaused(true);
    stream.setPaused(false);
    assert.deepEqual(await grants(socket), [3 * 16384]);
  });

  test("a server that sends more than it was granted is cut off", async () => {
    const { socket, stream, answer, feed } = asked(undefined, 65535);
    stream.setPaused(true);
    feed(settings, okHeaders, ...Array.from({ length: 5 }, () => data(1, Buffer.alloc(16384))));
    assert.match((await faultOf(answer, "NotGrpc")).message, /window of 65535 bytes/);
    assert.equal(socket.destroyed, true);
  });
});

describe("GOAWAY", () => {
  const goaway = (last: number, code: number, note = "") =>
    frame(frameType.goaway, 0, 0, Buffer.concat([uint32(last, code), Buffer.from(note)]));

  test("calls that were begun are answered, later ones fail, then the connection is closed", async () => {
    const { socket, connection, answer, feed } = asked();
    const second = ask(connection);
    feed(settings, goaway(1, 0, "graceful_stop"));
    const fault = await faultOf(second.answer, "ConnectionLost");
    assert.match(fault.message, /GOAWAY NO_ERROR, graceful_stop/);
    assert.equal(connection.usable, false);
    await faultOf(ask(connection).answer, "ConnectionLost");
    assert.equal(socket.destroyed, false);
    feed(okHeaders, data(1, [7]), okTrailers);
    assert.deepEqual([...(await answer).body], [7]);
    assert.equal(socket.destroyed, true, "nothing is left to wait for");
  });

  test("the kubelet's too_many_pings ends every call", async () => {
    const { socket, answer, feed } = asked();
    feed(settings, goaway(1, 11, "too_many_pings"));
    assert.match((await faultOf(answer, "ConnectionLost")).message, /ENHANCE_YOUR_CALM, too_many_pings/);
    assert.equal(socket.destroyed, true);
  });

  test("an idle connection is closed, and a call that is given up leaves it idle", async () => {
    const { socket, stream, feed } = asked();
    feed(settings, goaway(1, 0));
    assert.equal(socket.destroyed, false);
    stream.cancel();
    assert.equal(socket.destroyed, true);
  });

  test("before any settings it is a lost connection, not a wrong protocol", async () => {
    const { connection, answer, feed } = asked();
    feed(goaway(0, 0));
    await faultOf(answer, "ConnectionLost");
    await faultOf(connection.ready, "ConnectionLost");
  });

  test("its note cannot bring control characters or a megabyte of text", async () => {
    const { answer, feed } = asked();
    feed(settings, goaway(0, 2, `\x1b[31m${"x".repeat(16000)}`));
    const { message } = await faultOf(answer, "ConnectionLost");
    assert.ok(!message.includes("\x1b") && message.length < 300);
  });
});

describe("RST_STREAM", () => {
  for (const code of [0, 1, 2, 5, 7, 8, 11, 13, 14, 0xffffffff]) {
    test(`code ${code} ends its call and no other`, async () => {
      const { connection, answer, feed } = asked();
      const second = ask(connection);
      feed(settings, frame(frameType.reset, 0, 1, uint32(code)));
      const fault = await faultOf(answer, "ConnectionLost");
      assert.equal(fault.details.phase, "call");
      feed(headersFrame(3, { ":status": "200" }, endStream));
      assert.equal((await second.answer).headers[":status"], "200");
    });
  }
});

describe("what breaks RFC 9113 ends the connection as NotGrpc", () => {
  const window = (...values: number[]) => uint32(...values);
  const breaks: Readonly<Record<string, readonly [readonly Buffer[], RegExp]>> = {
    "data before headers": [[data(1, [1])], /data before headers/],
    "data of no stream": [[data(0, [1])], /frame of type 0 on stream 0/],
    "headers of no stream": [[headersFrame(0, {})], /frame of type 1 on stream 0/],
    "a stream of the server": [[headersFrame(2, { ":status": "200" })], /nobody opened/],
    "a stream not opened yet": [[data(3, [1])], /nobody opened/],
    "a window of a stream not opened yet": [[frame(frameType.window, 0, 3, window(1))], /nobody opened/],
    "a push": [[frame(frameType.push, endHeaders, 1, window(2))], /push/],
    "padding over the frame": [[okHeaders, data(1, [5, 1, 2], padded)], /padding/],
    "padding as long as its frame, of which its length takes a byte": [[okHeaders, data(1, [2, 0], padded)], /padding/],
    "padding without its length": [[okHeaders, data(1, [], padded)], /padding/],
    "padding over the headers": [[frame(frameType.headers, endHeaders | padded, 1, [9, 0])], /padding/],
    "padded headers without a length": [[frame(frameType.headers, endHeaders | padded, 1)], /padding/],
    "a priority cut short": [[frame(frameType.headers, endHeaders | 32, 1, [0, 0])], /padding/],
    "an interrupted header block": [[frame(frameType.headers, 0, 1), data(1, [1])], /interrupted/],
    "a header block continued on another stream": [
      [frame(frameType.headers, 0, 1), frame(frameType.continuation, endHeaders, 3)],
      /interrupted/,
    ],
    "a CONTINUATION of nothing": [[frame(frameType.continuation, endHeaders, 1)], /CONTINUATION of nothing/],
    "trailers that go on": [[okHeaders, headersFrame(1, { a: "b" })], /do not end/],
    "a header block that is no HPACK": [[frame(frameType.headers, endHeaders, 1, [0xff, 0xff])], /ends early/],
    "a PING of 7 bytes": [[frame(frameType.ping, 0, 0, Buffer.alloc(7))], /PING/],
    "a PING of a stream": [[frame(frameType.ping, 0, 1, Buffer.alloc(8))], /type 6 on stream 1/],
    "a RST_STREAM of 5 bytes": [[frame(frameType.reset, 0, 1, Buffer.alloc(5))], /RST_STREAM/],
    "a WINDOW_UPDATE of 3 bytes": [[frame(frameType.window, 0, 0, Buffer.alloc(3))], /WINDOW_UPDATE/],
    "a WINDOW_UPDATE of 0": [[frame(frameType.window, 0, 0, window(0))], /WINDOW_UPDATE of nothing/],
    "a window over 2^31-1": [[frame(frameType.window, 0, 0, window(wide))], /window over/],
    "a stream's window over 2^31-1": [[frame(frameType.window, 0, 1, window(wide))], /window over/],
    "settings with a window over 2^31-1": [[frame(frameType.settings, 0, 0, [0, 4, 255, 0, 0, 0])], /window over/],
    "settings of 5 bytes": [[frame(frameType.settings, 0, 0, Buffer.alloc(5))], /settings frame/],
    "settings of a stream": [[frame(frameType.settings, 0, 1)], /type 4 on stream 1/],
    "an acknowledgement with settings": [[frame(frameType.settings, ack, 0, Buffer.alloc(6))], /not empty/],
    "a GOAWAY of 7 bytes": [[frame(frameType.goaway, 0, 0, Buffer.alloc(7))], /GOAWAY/],
    "a frame of 16 MiB": [[Buffer.from([255, 255, 255, 0, 0, 0, 0, 0, 1])], /16777215 bytes/],
  };
  for (const [name, [frames, pattern]] of Object.entries(breaks)) {
    test(name, async () => {
      const { socket, connection, answer, feed } = asked();
      feed(settings, ...frames);
      assert.match((await faultOf(answer, "NotGrpc")).message, pattern);
      assert.equal(socket.destroyed, true);
      assert.equal(connection.usable, false);
    });
  }
});

describe("what is not HTTP/2", () => {
  const others: Readonly<Record<string, readonly [string, RegExp]>> = {
    "HTTP/1.1, which made Deno's own client spin": ["HTTP/1.1 400 Bad Request\r\n\r\n", /answers in HTTP\/1\.1/],
    "HTTP/1.0, byte by byte": ["HTTP/1.0 200 OK\r\n\r\n", /answers in HTTP\/1\.0/],
    "a TLS alert": ["\x15\x03\x01\x00\x02\x02\x46", /speaks TLS/],
    "a TLS hello": ["\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", /speaks TLS/],
    "an SSH banner": ["SSH-2.0-OpenSSH_9.9\r\n", /not HTTP\/2/],
    "five bytes, then silence": ["-ERR\n", /not HTTP\/2/],
    zeros: ["\0".repeat(64), /not HTTP\/2/],
    "an HTTP/2 frame that is no settings": ["\0\0\x08\x06\0\0\0\0\0ABCDEFGH", /not HTTP\/2/],
    "an acknowledgement of settings first": ["\0\0\0\x04\x01\0\0\0\0", /not HTTP\/2/],
    "settings of 6 MB": ["\x5b\x8d\x80\x04\0\0\0\0\0", /not HTTP\/2/],
  };
  for (const [name, [bytes, pattern]] of Object.entries(others)) {
    test(name, async () => {
      for (const size of [1, 1000]) {
        const { socket, connection, answer, feed } = asked();
        for (let at = 0; at < bytes.length; at += size) feed(Buffer.from(bytes.slice(at, at + size), "latin1"));
        assert.match((await faultOf(answer, "NotGrpc")).message, pattern);
        await faultOf(connection.ready, "NotGrpc");
        assert.equal(socket.destroyed, true);
      }
    });
  }
  test("less than a frame of it, then the end", async () => {
    for (const bytes of ["HTTP/", "no"]) {
      const { socket, answer, feed } = asked();
      feed(Buffer.from(bytes));
      socket.emit("end");
      await faultOf(answer, "NotGrpc");
    }
  });
});

describe("a hostile server", () => {
  const many = (part: Buffer, count: number) => Buffer.concat(Array<Buffer>(count).fill(part));

  for (const [name, part] of [
    ["PING", frame(frameType.ping, 0, 0, Buffer.alloc(8))],
    ["SETTINGS", settings],
  ] as const) {
    test(`${name} frames whose answers it never reads fill no memory`, async () => {
      const { socket, answer, feed } = asked();
      feed(settings);
      const storm = many(part, 1000);
      // As a socket whose other end does not read: what is written stays.
      let fed = 0;
      while (!socket.destroyed) {
        feed(storm);
        await Promise.resolve();
        socket.writableLength = socket.sent.reduce((sum, bytes) => sum + bytes.length, 0);
        assert.ok(++fed < 1000, "it takes them all");
      }
      assert.match((await faultOf(answer, "NotGrpc")).message, /floods/);
    });
  }

  test("a CONTINUATION flood of empty frames is cut off", async () => {
    const { answer, feed } = asked();
    feed(settings, frame(frameType.headers, 0, 1), many(frame(frameType.continuation, 0, 1), 2000));
    assert.match((await faultOf(answer, "NotGrpc")).message, /1024 frames/);
  });

  test("a header block without end is cut off", async () => {
    const { answer, feed } = asked();
    feed(settings, frame(frameType.headers, 0, 1));
    feed(many(frame(frameType.continuation, 0, 1, Buffer.alloc(16384)), 300));
    assert.match((await faultOf(answer, "NotGrpc")).message, /4194304 bytes/);
  });

  test("interim answers without end are cut off", async () => {
    const { answer, feed } = asked();
    feed(settings, many(headersFrame(1, { ":status": "100" }), 200));
    assert.match((await faultOf(answer, "NotGrpc")).message, /interim/);
  });

  test("nothing is read any more once the connection has failed", async () => {
    const { connection, answer, feed } = asked();
    feed(Buffer.from("HTTP/1.1 200 OK\r\n"));
    await faultOf(answer, "NotGrpc");
    const before = connection.bytesReceived;
    feed(settings, okHeaders);
    assert.equal(connection.bytesReceived, before);
  });

  test("input without a gap lets timers run between: reading stops for a turn", async () => {
    const { socket, feed } = asked();
    feed(settings);
    while (socket.pauses === 0) feed(frame(99, 0, 0));
    assert.equal(socket.isPaused, true);
    await until(() => !socket.isPaused);
    while (socket.pauses === 1) feed(frame(99, 0, 0));
    socket.emit("close"); // and no timer is left behind
  });

  test("mutated frames are answered, or refused with a fault", slow, async () => {
    const valid = Buffer.concat([settings, okHeaders, data(1, Buffer.alloc(20)), okTrailers]);
    for (let at = 0; at < valid.length; at++) {
      for (const change of [1, 4, 8, 32, 128, 255]) {
        const bytes = Buffer.from(valid);
        bytes[at]! ^= change;
        const { socket, answer, feed } = asked();
        feed(bytes);
        socket.emit("end");
        await answer.then(
          () => {},
          (error: Fault) => {
            const wanted: readonly Code[] = ["NotGrpc", "ConnectionLost"];
            assert.ok(wanted.includes(error.code), `${at} ^ ${change}: ${error}`);
          },
        );
      }
    }
  });
});

describe("the end of a connection", () => {
  test("each phase has its own words", async () => {
    for (const [bytes, pattern, phase] of [
      [[], /before it said anything/, "handshake"],
      [[settings.subarray(0, 4)], /before its HTTP\/2 settings/, "handshake"],
      [[settings], /during the call/, "call"],
    ] as const) {
      const { socket, connection, answer, feed } = asked();
      for (const part of bytes) feed(part);
      socket.emit("end"); // the server has closed its side, and reads nothing of ours
      const fault = await faultOf(answer, "ConnectionLost");
      assert.match(fault.message, pattern);
      assert.equal(fault.details.phase, phase);
      assert.equal(socket.destroyed, true);
      await faultOf(ask(connection).answer, "ConnectionLost");
    }
  });

  test("a connection that never came about fails with what the refusal is taken for", async () => {
    const socket = fakeSocket();
    const connection = openHttp2(socket as unknown as Socket, refused);
    const { answer } = ask(connection);
    socket.emit("error", new Error("nobody there"));
    socket.emit("close");
    assert.equal(connection.usable, false);
    assert.equal((await faultOf(answer, "SocketDead")).message, "nobody there");
    await faultOf(connection.ready, "SocketDead");
  });

  test("an error of the socket is named, and a second one ends nothing", async () => {
    const { socket, answer } = asked();
    socket.emit("error", Object.assign(new Error("reset"), { code: "ECONNRESET" }));
    socket.emit("error", new Error("again"));
    assert.equal((await faultOf(answer, "ConnectionLost")).details.errno, "ECONNRESET");
  });

  test("a handler that throws is our own fault, not the server's", async () => {
    const socket = fakeSocket();
    const connection = openHttp2(socket as unknown as Socket, refused);
    const failed = new Promise((_, reject) => {
      const handlers = {
        headers: () => assert.fail("a bug"),
        data: () => {},
        end: () => {},
        fail: reject,
      };
      connection.request(requestHeaders, Buffer.alloc(0), handlers, wide);
    });
    socket.emit("data", Buffer.concat([settings, okHeaders]));
    await faultOf(failed, "InternalError");
  });
});

/** The runtime's own HTTP/2 server, which shares nothing with the client. */
async function withServer(
  serve: (stream: ServerHttp2Stream, server: Http2Server) => void,
  use: (connection: Http2Connection) => Promise<void>,
): Promise<void> {
  await inFolder(async (folder) => {
    const server = createServer();
    const sessions: { destroy(): void }[] = [];
    server.on("session", (session) => {
      session.on("error", () => {});
      sessions.push(session);
    });
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      serve(stream, server);
    });
    const path = join(folder, "s.sock");
    await listen(server, path);
    const socket = connect(path);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const connection = openHttp2(socket, refused);
    try {
      await use(connection);
    } finally {
      socket.destroy();
      await closed;
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

describe("the runtime's own HTTP/2 server", () => {
  test("takes the request's body and sends a body and trailers", () =>
    withServer(
      (stream) => {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          stream.respond({ ":status": 200, "content-type": "text/plain" }, { waitForTrailers: true });
          stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
          stream.end(Buffer.concat(chunks));
        });
      },
      async (connection) => {
        await connection.ready;
        for (const size of [0, 5, 10_000]) {
          const { headers, body, trailers } = await ask(connection, Buffer.alloc(size, 97)).answer;
          assert.equal(headers[":status"], "200");
          assert.equal(headers["content-type"], "text/plain");
          assert.equal(body.toString(), "a".repeat(size));
          assert.equal(trailers?.["grpc-status"], "0");
        }
      },
    ));

  for (const window of [wide, 65535]) {
    test(`sends 4 MB through a window of ${window} bytes`, () =>
      withServer(
        (stream) => {
          stream.respond({ ":status": 200 });
          stream.end(Buffer.alloc(4_000_000, 98));
        },
        async (connection) => {
          const { body } = await ask(connection, undefined, window).answer;
          assert.ok(body.equals(Buffer.alloc(4_000_000, 98)));
          assert.ok(connection.bytesReceived > 4_000_000);
        },
      ));
  }

  test("answers many calls on one connection, in the order it likes", () =>
    withServer(
      (stream) => {
        stream.respond({ ":status": 200 });
        setTimeout(() => stream.end(String(stream.id)), stream.id! % 7);
      },
      async (connection) => {
        const answers = await Promise.all(Array.from({ length: 30 }, () => ask(connection).answer));
        assert.deepEqual(
          answers.map(({ body }) => body.toString()),
          answers.map((_, index) => String(index * 2 + 1)),
        );
      },
    ));
});

describe("a server of raw frames on a socket", () => {
  test("an answer that dribbles in byte by byte is read", () =>
    withRawServer(
      {
        onRequest: (id, _, { socket }) => {
          const bytes = Buffer.concat([
            settings,
            headersFrame(id, { ":status": "200" }),
            data(id, [1, 2, 3], endStream),
          ]);
          const dribble = (at: number): void => {
            if (at < bytes.length) socket.write(bytes.subarray(at, at + 1), () => setImmediate(dribble, at + 1));
          };
          dribble(0);
        },
      },
      async ({ path }) => {
        const socket = connect(path);
        const connection = openHttp2(socket, refused);
        assert.deepEqual([...(await ask(connection).answer).body], [1, 2, 3]);
        const closed = new Promise((resolve) => socket.once("close", resolve));
        socket.destroy();
        await closed;
      },
    ));

  test("a server that closes its side and reads on ends the call", () =>
    withRawServer({ onConnection: ({ socket }) => socket.end(settings) }, async ({ path }) => {
      const socket = connect(path);
      const closed = new Promise((resolve) => socket.once("close", resolve));
      await faultOf(ask(openHttp2(socket, refused)).answer, "ConnectionLost");
      await closed;
    }));
});
