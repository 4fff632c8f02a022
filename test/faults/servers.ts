// Faults that the simulator's scenarios lack: each is a server that does one thing wrong on every connection.

import { renameSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import {
  answerStatus,
  answerWith,
  type ConnectionFault,
  largeAnswer,
  onRequest,
  reset,
  say,
} from "../../lib/simulator/faults.ts";
import {
  data,
  errorCode,
  frame,
  frameType,
  goaway,
  headers,
  initialWindowSize,
  message,
  readFrames,
  settings,
  write,
} from "../../lib/simulator/frames.ts";

const grpcHeaders = { ":status": "200", "content-type": "application/grpc" };
const ok = { "grpc-status": "0" };
const mebibyte = 1 << 20;

/** A listing of no pods, whole: nothing is wrong with it. */
function emptyListing(stream: number): Buffer {
  return Buffer.concat([headers(stream, grpcHeaders, false), data(stream, message(Buffer.alloc(0))), end(stream)]);
}

function end(stream: number): Buffer {
  return headers(stream, ok, true);
}

/** Sends `part` over and over, as fast as the client takes it. */
function flood(socket: Socket, part: Buffer): void {
  const burst = Buffer.concat(Array.from({ length: Math.ceil(16384 / part.length) }, () => part));
  const pump = () => {
    if (socket.destroyed) return;
    // Beyond that the client does not take it: it must not fill our memory.
    if (socket.writableLength < 65536) write(socket, burst);
    setImmediate(pump);
  };
  pump();
}

/** The request is answered with `start`, and then with `part` for ever. */
function floodAfter(start: (stream: number) => Buffer, part: (stream: number) => Buffer): ConnectionFault {
  return onRequest((socket, stream) => {
    write(socket, start(stream));
    flood(socket, part(stream));
  });
}

/**
 * Sends `part` without an end, and no more of it than the client has answered: what waits to be read, on either side, stays
 * the same however slow this side is.
 */
function floodAnswered(socket: Socket, part: Buffer, answerBytes: number): void {
  let unread = 0;
  socket.on("data", (bytes: Buffer) => {
    unread += bytes.length;
    const count = Math.floor(unread / answerBytes);
    unread -= count * answerBytes;
    if (count > 0) write(socket, Buffer.concat(Array.from({ length: count }, () => part)));
  });
  write(socket, Buffer.concat(Array.from({ length: 4000 }, () => part)));
}

/** From the first byte on, with nothing before it. */
function floodOf(part: Buffer): ConnectionFault {
  return (socket) => {
    socket.once("data", () => flood(socket, part));
    socket.resume();
  };
}

/** Bytes one by one, from the client's first byte on. */
function dribbleOf(bytes: Buffer, milliseconds: number): ConnectionFault {
  return (socket) => {
    socket.resume();
    let at = 0;
    const timer = setInterval(() => {
      if (at < bytes.length) write(socket, bytes.subarray(at, ++at));
    }, milliseconds);
    socket.once("close", () => clearInterval(timer));
  };
}

const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
const headersFlags = { endStream: 1, endHeaders: 4 };
const nothing = () => Buffer.alloc(0);
const started = (stream: number) => headers(stream, grpcHeaders, false);

/** An HPACK block that puts 4 KB into the table and refers to it 60 000 times: 240 MB of header fields. */
function headerBomb(): Buffer {
  const value = Buffer.alloc(4000, "x");
  const insert = Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]), value]);
  return Buffer.concat([insert, Buffer.alloc(12000, 0xbe)]);
}

/** One ADDED event of a watch, with a pod that is another one each time. */
let podNumber = 0;
function addedPod(padding: number): Buffer {
  const uid = Buffer.from(String(podNumber++).padStart(36, "0"));
  const field = (number: number, bytes: Buffer) => {
    const length: number[] = [];
    let rest = bytes.length;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
    length.push(rest);
    return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), bytes]);
  };
  const metadata = field(1, field(5, uid));
  const status = field(3, field(3, Buffer.alloc(padding, "m")));
  return message(Buffer.concat([Buffer.from([8, 1]), field(2, Buffer.concat([metadata, status]))]));
}

/** Sends ADDED events of so many bytes as fast as the client's windows allow, and never INITIAL_SYNC_COMPLETE. */
function endlessWatch(padding: number): ConnectionFault {
  return (socket, onCall) => {
    let connection = 65535;
    let window = 65535;
    let initial = 65535;
    let stream = 0;
    let pending = Buffer.alloc(0);
    const pump = () => {
      while (stream !== 0 && !socket.destroyed && socket.writableLength < 65536) {
        if (pending.length === 0) pending = Buffer.concat(Array.from({ length: 8 }, () => addedPod(padding)));
        const allowed = Math.min(connection, window, pending.length, 16384);
        if (allowed <= 0) return;
        write(socket, data(stream, pending.subarray(0, allowed)));
        pending = pending.subarray(allowed);
        connection -= allowed;
        window -= allowed;
      }
    };
    readFrames(socket, {
      onPreface: () => write(socket, settings()),
      onRequest(id) {
        onCall();
        stream = id;
        write(socket, started(id));
        pump();
      },
      onInitialWindow(size) {
        window += size - initial;
        initial = size;
      },
      onWindow(id, more) {
        if (id === 0) connection += more;
        else window += more;
        pump();
      },
    });
    socket.on("drain", pump);
  };
}

/** Connection faults by name. */
export const connectionFaults: Readonly<Record<string, ConnectionFault>> = {
  // Silence.
  "hang-headers": onRequest((socket, stream) => write(socket, started(stream))),
  "hang-settings": (socket) => {
    socket.resume();
    write(socket, settings().subarray(0, 5));
  },
  "hang-header-block": onRequest((socket, stream) =>
    write(socket, frame(frameType.headers, 0, stream, Buffer.from([0x88]))),
  ),
  "dribble-settings": dribbleOf(settings([[initialWindowSize, 65535]]), 60),
  "dribble-http1": dribbleOf(Buffer.from("HT"), 60),

  // Another protocol.
  "http1-endless": floodOf(Buffer.from("HTTP/1.1 200 OK\r\n\r\nx")),
  "garbage-endless": floodOf(Buffer.from("\0\xff-ERR\r\n", "latin1")),
  // The head of a TLS 1.3 ServerHello, and then a wait for the rest of the handshake.
  "tls-hello": say(Buffer.from([22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3, ...Buffer.alloc(32, 7)]), { hold: true }),
  "preface-echo": (socket) => void socket.on("data", (bytes) => write(socket, bytes)),
  "wrong-first-frame": say(Buffer.concat([ping, settings()]), { hold: true }),
  "huge-frame": onRequest((socket, stream) => write(socket, Buffer.from([255, 255, 255, 0, 0, 0, 0, 0, stream]))),
  "push-promise": onRequest((socket, stream) => write(socket, frame(5, 4, stream, Buffer.from([0, 0, 0, 2, 0x88])))),
  "strange-stream": onRequest((socket) => write(socket, started(2))),
  "data-first": onRequest((socket, stream) => write(socket, data(stream, message(Buffer.alloc(0)), true))),
  "zero-window-update": onRequest((socket, stream) =>
    write(socket, frame(frameType.windowUpdate, 0, stream, Buffer.alloc(4))),
  ),
  "bad-hpack": onRequest((socket, stream) =>
    write(socket, frame(frameType.headers, headersFlags.endHeaders, stream, Buffer.from([0xff, 0xff, 0xff, 0x7f]))),
  ),
  "interim-only": onRequest((socket, stream) => write(socket, headers(stream, { ":status": "103" }, false))),

  // The connection ends.
  "goaway-first": (socket) => {
    socket.resume();
    write(socket, Buffer.concat([settings(), goaway(0, errorCode.noError)]));
    socket.end();
  },
  "goaway-graceful": onRequest((socket, stream) =>
    write(socket, Buffer.concat([goaway(stream, errorCode.noError), emptyListing(stream)])),
  ),
  "goaway-half": onRequest((socket, stream) => {
    const half = data(stream, message(Buffer.alloc(0), { length: 1000 }));
    write(socket, Buffer.concat([started(stream), half, goaway(stream, errorCode.internalError)]));
  }),
  "goaway-hold": onRequest((socket, stream) => write(socket, goaway(stream, errorCode.noError))),
  "half-closed": onRequest((socket, stream) => {
    write(socket, Buffer.concat([started(stream), data(stream, message(Buffer.alloc(0), { length: 1000 }))]));
    socket.end();
  }),
  "headers-closed": onRequest((socket, stream) => {
    write(socket, started(stream));
    socket.end();
  }),
  "reset-255": reset(255),
  "reset-half": onRequest((socket, stream) => {
    const half = data(stream, message(Buffer.alloc(0), { length: 1000 }));
    write(
      socket,
      Buffer.concat([started(stream), half, frame(frameType.rstStream, 0, stream, Buffer.from([0, 0, 0, 2]))]),
    );
  }),

  // An answer.
  "empty-listing": onRequest((socket, stream) => write(socket, emptyListing(stream))),
  "prefix-4gib": answerWith({ body: message(Buffer.alloc(16), { length: 2 ** 32 - 1 }), trailers: ok }),
  "prefix-cut": answerWith({ body: Buffer.from([0, 0, 0]), trailers: ok }),
  "trailers-only-ok": answerStatus(() => ok),
  "status-text": answerStatus(() => ({ "grpc-status": "FAILED", "grpc-message": "no number" })),
  "status-twice": answerStatus(() => ({ "grpc-status": "0, 13" })),
  "message-utf8": answerStatus(() => ({
    "grpc-status": "13",
    // As bytes, which a server that follows the protocol would have percent-encoded.
    "grpc-message": Buffer.from("größer als 5 µs — 壊れた").toString("latin1"),
  })),
  "message-percent": answerStatus(() => ({ "grpc-status": "13", "grpc-message": "%E5%A3%8A%zz%e%ff%00%1b[31m%0a" })),
  "message-1mb": answerStatus(() => ({ "grpc-status": "13", "grpc-message": "%C3%A9".repeat(170_000) })),
  "interim-then-answer": onRequest((socket, stream) =>
    write(socket, Buffer.concat([headers(stream, { ":status": "103" }, false), emptyListing(stream)])),
  ),
  "unknown-frames": onRequest((socket, stream) => {
    const strange = frame(0xbb, 0xff, stream, Buffer.alloc(100, 0xff));
    write(socket, Buffer.concat([strange, ping, settings(), strange, emptyListing(stream), strange]));
  }),
  "group-tag": answerWith({ body: message(Buffer.from([0x0b, 0x0c])), trailers: ok }),

  // A size.
  "answer-16-mib": largeAnswer(16 * mebibyte),
  "answer-64-mib": largeAnswer(64 * mebibyte),
  "tiny-pods": answerWith({ body: message(Buffer.alloc(mebibyte, Buffer.from([10, 0]))), trailers: ok }),
  "many-fields": onRequest((socket, stream) => {
    const fields = Buffer.alloc(mebibyte, Buffer.from([0x20, 1]));
    const pod = Buffer.concat([Buffer.from([10, 0x80, 0x80, 0x40]), fields]);
    write(socket, Buffer.concat([started(stream), data(stream, message(pod)), end(stream)]));
  }),
  "endless-messages": floodAfter(started, (stream) => data(stream, message(Buffer.alloc(0)))),

  // A server that keeps the client busy.
  "settings-flood": onRequest((socket) => floodAnswered(socket, settings([[initialWindowSize, 65535]]), 9)),
  "settings-flood-first": (socket) => {
    socket.once("data", () => floodAnswered(socket, settings([[initialWindowSize, 65535]]), 9));
  },
  "ping-flood": onRequest((socket) => floodAnswered(socket, ping, ping.length)),
  "ping-flood-unread": (socket) => {
    socket.once("data", () => {
      socket.pause();
      write(socket, settings());
      flood(socket, ping);
    });
  },
  "empty-data-flood": floodAfter(started, (stream) => data(stream, Buffer.alloc(0))),
  "window-flood": floodAfter(started, () => frame(frameType.windowUpdate, 0, 0, Buffer.from([0, 0, 0, 1]))),
  "unknown-flood": floodAfter(nothing, () => frame(0xbb, 0, 0, Buffer.alloc(8))),
  "continuation-flood": floodAfter(
    (stream) => frame(frameType.headers, 0, stream, Buffer.from([0x88])),
    (stream) => frame(frameType.continuation, 0, stream),
  ),
  "interim-flood": floodAfter(nothing, (stream) => headers(stream, { ":status": "100" }, false)),
  "header-bomb": onRequest((socket, stream) =>
    write(socket, frame(frameType.headers, headersFlags.endHeaders, stream, headerBomb())),
  ),
  "watch-flood": endlessWatch(0),
  "watch-flood-large": endlessWatch(mebibyte),
};

/** A kubelet that is restarted in the middle of the first call; what is at the path afterwards. */
export const restarts: Readonly<Record<string, "served" | "dead" | "missing">> = {
  "restart-back": "served",
  "restart-dead": "dead",
  "restart-gone": "missing",
};

/** A server of one fault. */
export interface FaultServer {
  /** Connections so far on which a client has said something. */
  readonly clients: number;
  close(): Promise<void>;
}

/** Serves a fault of this file at a path; resolves once clients can connect. */
export async function serveFault(name: string, path: string): Promise<FaultServer> {
  const servers = new Set<Server>();
  const open = new Set<Socket>();
  let clients = 0;

  async function serve(fault: ConnectionFault): Promise<Server> {
    const server = createServer((socket) => {
      open.add(socket);
      socket.on("close", () => open.delete(socket));
      socket.on("error", () => {});
      socket.once("data", () => clients++);
      fault(socket, () => {});
    });
    servers.add(server);
    // As the kubelet does it, and so that the end of a server leaves its file behind: Node removes only the first name.
    const temporary = `${path}.${servers.size}`;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(temporary, resolve);
    });
    renameSync(temporary, path);
    return server;
  }

  const after = restarts[name];
  const restart: ConnectionFault = onRequest(async (socket) => {
    rmSync(path, { force: true });
    if (after !== "missing") {
      const next = await serve(onRequest((again, stream) => write(again, emptyListing(stream))));
      if (after === "dead") next.close();
    }
    socket.destroy();
  });
  await serve(after === undefined ? connectionFaults[name]! : restart);

  return {
    get clients() {
      return clients;
    },
    async close() {
      for (const socket of open) socket.destroy();
      await Promise.all([...servers].map((server) => new Promise((resolve) => server.close(resolve))));
      rmSync(path, { force: true });
    },
  };
}
