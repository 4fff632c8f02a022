// A client for HTTP/2 (RFC 9113) on one connected socket: as much as gRPC needs, and nothing a server can make grow
// without a bound. The same code runs on every runtime, so a fault looks the same on each.

import type { Socket } from "node:net";
import { Fault } from "./fault.ts";
import { createHpackDecoder, encodeHeaders, type Headers, HpackError } from "./hpack.ts";

const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4, pushPromise: 5, ping: 6, goaway: 7, window: 8 };
const priorityFrame = 2;
const continuationFrame = 9;
const flagEnd = 1; // END_STREAM of DATA and HEADERS, ACK of SETTINGS and PING
const flagEndHeaders = 4;
const flagPadded = 8;
const flagPriority = 32;

const maxFrameSize = 16384; // SETTINGS_MAX_FRAME_SIZE as it is unless said otherwise
const maxHeaderBytes = 4 << 20; // a server may send a message of a megabyte in its trailers
const maxHeaderFrames = 1024;
const maxInterims = 100; // header blocks with a status 1xx, which a server may send before its answer
const maxQueuedBytes = 1 << 20; // answers to PING and SETTINGS that the server does not read
const maxWindow = 2 ** 31 - 1;
const defaultWindow = 65535;

// Deno runs no timer as long as input keeps coming, and Node few: after so much input without a gap, reading stops for
// one turn, so that deadlines and signals hold.
const busyMs = 25;
const gapMs = 5;

// RFC 9113 section 7.
const errorNames = (
  "NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR " +
  "REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED"
).split(" ");

function errorName(code: number): string {
  return errorNames[code] ?? `error ${code}`;
}

/** What happens to one request; after `end` or `fail` nothing more does. */
export interface StreamHandlers {
  /** The response's first header block, or with `end` its only one. */
  headers(headers: Headers, end: boolean): void;
  /** A piece of the body, valid only during the call: it is a view of the socket's buffer. */
  data(chunk: Uint8Array): void;
  /** The stream is over; the trailers are there if there was a second header block. */
  end(trailers: Headers | undefined): void;
  /** The stream or its connection failed. */
  fail(fault: Fault): void;
}

/** A request on its way. */
export interface Http2Stream {
  /** Tells the server that nobody reads on, and calls no handler any more. */
  cancel(): void;
  /**
   * Stops or goes on granting the server what it may send on this stream. Other streams go on, and so does this one
   * until its window is used up.
   */
  setPaused(paused: boolean): void;
}

/** One HTTP/2 connection. */
export interface Http2Connection {
  /** Settles with the server's first settings, or fails with NotGrpc or ConnectionLost. */
  readonly ready: Promise<void>;
  /** False once the server said that it takes no more requests, or the connection is gone. */
  readonly usable: boolean;
  /** Bytes received so far. */
  readonly bytesReceived: number;
  /**
   * Sends a request whole; may be called before `ready`.
   * @param window How many bytes the server may send before the next grant: at least 65535, at most 2^31-1.
   */
  request(
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    handlers: StreamHandlers,
    window: number,
  ): Http2Stream;
  /** Destroys the socket; open streams fail with `fault`. */
  close(fault: Fault): void;
}

interface OpenStream {
  readonly handlers: StreamHandlers;
  sendWindow: number;
  pendingBody: Uint8Array | undefined;
  answered: boolean;
  readonly window: number;
  /** Of its window, used by the server and not granted again. */
  used: number;
  paused: boolean;
}

/**
 * Speaks HTTP/2 on a socket that is connecting or connected, and takes over its `data`, `close` and `error` events.
 * @param socket Written to at once: the runtime keeps the bytes until it is connected.
 * @param refused Turns the error of a connection that never came about into what everything on it fails with.
 */
export function openHttp2(socket: Socket, refused: (error: NodeJS.ErrnoException) => Fault): Http2Connection {
  const decoder = createHpackDecoder(maxHeaderBytes);
  const streams = new Map<number, OpenStream>();
  let nextStreamId = 1;
  let isConnected = false;
  let closed = false;
  let refusing: string | undefined; // why the server takes no more requests
  let sawSettings = false;
  let bytesReceived = 0;
  let connectionSendWindow = defaultWindow;
  let initialSendWindow = defaultWindow;
  let windowUsed = 0;
  let interims = 0;
  let lastInputMs = 0;
  let busySinceMs = 0;
  let pause: NodeJS.Timeout | undefined;
  let outgoing: Uint8Array[] = [];
  let outgoingBytes = 0;

  let settle: { resolve: () => void; reject: (fault: Fault) => void };
  const ready = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
  });
  ready.catch(() => {}); // a caller may watch its request only

  // The frame being read.
  const head = new Uint8Array(9);
  let headLength = 0;
  let length = 0;
  let type = 0;
  let flags = 0;
  let streamId = 0;
  let remaining = -1; // bytes of the payload still to come; -1 while the head is read
  let payload: Uint8Array[] = [];
  let padding = 0; // bytes at the end of a DATA frame that are not data
  let padLengthDue = false;

  // A header block that goes on in CONTINUATION frames.
  let block: { readonly id: number; readonly end: boolean; parts: Uint8Array[]; size: number } | undefined;

  function frame(kind: number, flag: number, id: number, body: readonly number[] | Uint8Array): Buffer {
    const out = Buffer.allocUnsafe(9 + body.length);
    out.writeUIntBE(body.length, 0, 3);
    out[3] = kind;
    out[4] = flag;
    out.writeUInt32BE(id, 5);
    out.set(body, 9);
    return out;
  }

  function uint32(value: number): number[] {
    return [value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255];
  }

  function write(bytes: Uint8Array): void {
    if (closed) return;
    if (socket.writableLength + outgoingBytes > maxQueuedBytes) {
      return fail(new Fault("NotGrpc", "The server floods the connection and reads nothing"));
    }
    outgoing.push(bytes);
    outgoingBytes += bytes.length;
    if (outgoing.length === 1) queueMicrotask(send);
  }

  /** Puts what was written since the last turn into one system call. */
  function send(): void {
    if (!closed) socket.write(Buffer.concat(outgoing));
    outgoing = [];
    outgoingBytes = 0;
  }

  function fail(fault: Fault): void {
    if (closed) return;
    closed = true;
    clearTimeout(pause);
    settle.reject(fault);
    const open = [...streams.values()];
    streams.clear();
    socket.destroy();
    for (const stream of open) stream.handlers.fail(fault);
  }

  /** After a GOAWAY nothing is left to do once the last stream is over. */
  function closeIfDone(): void {
    if (refusing !== undefined && streams.size === 0) fail(lost(refusing, sawSettings ? "call" : "handshake"));
  }

  function protocolError(what: string): Fault {
    return new Fault("NotGrpc", `The server breaks the HTTP/2 protocol: ${what}`);
  }

  function lost(what: string, phase: "handshake" | "call"): Fault {
    return new Fault("ConnectionLost", what, { phase });
  }

  /** What a server is that does not begin with its settings. */
  function firstBytesFault(): Fault {
    const start = String.fromCharCode(...head.subarray(0, headLength));
    if (start.startsWith("HTTP/")) {
      return new Fault("NotGrpc", `The server answers in ${start.slice(0, 8)}, not in HTTP/2`);
    }
    if (/^[\x14-\x17]\x03[\0-\x04]/.test(start)) {
      return new Fault("NotGrpc", "The server speaks TLS, which the kubelet does not on this socket");
    }
    return new Fault("NotGrpc", "The server answers with something that is not HTTP/2");
  }

  function readHead(): void {
    length = (head[0]! << 16) | (head[1]! << 8) | head[2]!;
    type = head[3]!;
    flags = head[4]!;
    streamId = ((head[5]! & 127) << 24) | (head[6]! << 16) | (head[7]! << 8) | head[8]!;
    if (!sawSettings) {
      const isSettings = type === frameTypes.settings && (flags & flagEnd) === 0 && length % 6 === 0;
      // One that is going down may say so at once.
      const looksRight = (isSettings || (type === frameTypes.goaway && length >= 8)) && streamId === 0;
      if (!looksRight || length > maxFrameSize) throw firstBytesFault();
    }
    if (length > maxFrameSize) throw protocolError(`a frame of ${length} bytes, ${maxFrameSize} allowed`);
    if (block !== undefined && (type !== continuationFrame || streamId !== block.id)) {
      throw protocolError("a header block that is interrupted");
    }
    const isOfStream = type <= frameTypes.reset && type !== priorityFrame;
    const isOfConnection = type === frameTypes.settings || type === frameTypes.ping || type === frameTypes.goaway;
    if (isOfStream ? streamId === 0 : isOfConnection && streamId !== 0) {
      throw protocolError(`a frame of type ${type} on stream ${streamId}`);
    }
    const isUnopened = streamId !== 0 && (streamId % 2 === 0 || streamId >= nextStreamId);
    if (isUnopened && (isOfStream || type === frameTypes.window)) {
      throw protocolError("a frame of a stream that nobody opened");
    }
    remaining = length;
    payload = [];
    padding = 0;
    padLengthDue = type === frameTypes.data && (flags & flagPadded) !== 0;
  }

  function readData(piece: Uint8Array): void {
    let bytes = piece;
    if (padLengthDue && bytes.length > 0) {
      padLengthDue = false;
      padding = bytes[0]!;
      if (padding >= length) throw protocolError("padding over the length of its frame");
      bytes = bytes.subarray(1);
    }
    // The padding is at the end: what is left of the frame after this piece tells how much of it is padding.
    const data =
      padding === 0 ? bytes : bytes.subarray(0, Math.max(0, bytes.length - Math.max(0, padding - remaining)));
    const stream = streams.get(streamId);
    if (stream === undefined || data.length === 0) return;
    if (!stream.answered) throw protocolError("data before headers");
    stream.handlers.data(data);
  }

  function endData(): void {
    if (padLengthDue) throw protocolError("padding over the length of its frame");
    windowUsed += length;
    if (windowUsed > maxWindow / 2) {
      write(frame(frameTypes.window, 0, 0, uint32(windowUsed)));
      windowUsed = 0;
    }
    const stream = streams.get(streamId);
    if (stream === undefined) return;
    stream.used += length;
    if (stream.used > stream.window) throw protocolError(`data over a window of ${stream.window} bytes`);
    if ((flags & flagEnd) !== 0) {
      streams.delete(streamId);
      stream.handlers.end(undefined);
    } else {
      grant(streamId, stream);
    }
  }

  /** Lets the server send as much again as it has used of a stream's window, once that is worth a frame. */
  function grant(id: number, stream: OpenStream): void {
    if (stream.paused || stream.used <= stream.window / 2) return;
    write(frame(frameTypes.window, 0, id, uint32(stream.used)));
    stream.used = 0;
  }

  function endBlock(): void {
    const { id, end, parts } = block!;
    block = undefined;
    let headers: Headers;
    try {
      headers = decoder.decode(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      throw protocolError(error.message);
    }
    const stream = streams.get(id);
    if (stream === undefined) return;
    if (stream.answered) {
      if (!end) throw protocolError("trailers that do not end their stream");
      streams.delete(id);
      stream.handlers.end(headers);
      return;
    }
    if (!end && /^1\d\d$/.test(headers[":status"] ?? "")) {
      if (++interims > maxInterims) throw protocolError(`over ${maxInterims} interim answers`);
      return;
    }
    stream.answered = true;
    if (end) streams.delete(id);
    stream.handlers.headers(headers, end);
    if (end) stream.handlers.end(undefined);
  }

  function addToBlock(part: Uint8Array): void {
    block!.parts.push(part);
    block!.size += part.length;
    if (block!.size > maxHeaderBytes || block!.parts.length > maxHeaderFrames) {
      throw protocolError(`a header block over ${maxHeaderBytes} bytes or ${maxHeaderFrames} frames`);
    }
    if ((flags & flagEndHeaders) !== 0) endBlock();
  }

  function readSettings(body: Buffer): void {
    if ((flags & flagEnd) !== 0) {
      if (length !== 0) throw protocolError("a settings acknowledgement that is not empty");
      return;
    }
    if (length % 6 !== 0) throw protocolError("a settings frame of wrong form");
    for (let at = 0; at < length; at += 6) {
      if (body.readUInt16BE(at) !== 4) continue; // only INITIAL_WINDOW_SIZE concerns what we send
      const window = body.readUInt32BE(at + 2);
      if (window > maxWindow) throw protocolError("a window over 2^31-1");
      for (const stream of streams.values()) stream.sendWindow += window - initialSendWindow;
      initialSendWindow = window;
    }
    write(frame(frameTypes.settings, flagEnd, 0, []));
    if (!sawSettings) {
      sawSettings = true;
      settle.resolve();
    }
    flush();
  }

  function readGoaway(body: Buffer): void {
    if (length < 8) throw protocolError("a GOAWAY frame of wrong form");
    const last = body.readUInt32BE(0) & 0x7fffffff;
    const code = body.readUInt32BE(4);
    const note = body
      .toString("latin1", 8, 8 + 120)
      .replace(/[^ -~]/g, "")
      .trim();
    refusing = `The server closes the connection (GOAWAY ${errorName(code)}${note === "" ? "" : `, ${note}`})`;
    for (const [id, stream] of [...streams]) {
      if (id <= last && code === 0) continue; // it still answers what it has begun
      streams.delete(id);
      stream.handlers.fail(lost(refusing, "call"));
    }
  }

  function readControl(body: Buffer): void {
    switch (type) {
      case frameTypes.headers: {
        let start = 0;
        let end = length;
        if ((flags & flagPadded) !== 0) {
          start = 1;
          end -= body[0] ?? length + 1;
        }
        if ((flags & flagPriority) !== 0) start += 5;
        if (start > end) throw protocolError("padding over the length of its frame");
        block = { id: streamId, end: (flags & flagEnd) !== 0, parts: [], size: 0 };
        return addToBlock(body.subarray(start, end));
      }
      case continuationFrame:
        if (block === undefined) throw protocolError("a CONTINUATION of nothing");
        return addToBlock(body);
      case frameTypes.reset: {
        if (length !== 4) throw protocolError("a RST_STREAM frame of wrong form");
        const stream = streams.get(streamId);
        if (stream === undefined) return;
        streams.delete(streamId);
        return stream.handlers.fail(
          lost(`The server reset the call (RST_STREAM ${errorName(body.readUInt32BE(0))})`, "call"),
        );
      }
      case frameTypes.settings:
        return readSettings(body);
      case frameTypes.pushPromise:
        throw protocolError("a push that was not allowed");
      case frameTypes.ping:
        if (length !== 8) throw protocolError("a PING frame of wrong form");
        if ((flags & flagEnd) === 0) write(frame(frameTypes.ping, flagEnd, 0, body));
        return;
      case frameTypes.goaway:
        return readGoaway(body);
      case frameTypes.window: {
        if (length !== 4) throw protocolError("a WINDOW_UPDATE frame of wrong form");
        const increment = body.readUInt32BE(0) & 0x7fffffff;
        if (increment === 0) throw protocolError("a WINDOW_UPDATE of nothing");
        const stream = streams.get(streamId);
        if (streamId === 0) connectionSendWindow += increment;
        else if (stream !== undefined) stream.sendWindow += increment;
        if (connectionSendWindow > maxWindow || (stream?.sendWindow ?? 0) > maxWindow) {
          throw protocolError("a window over 2^31-1");
        }
        return flush();
      }
      default: // PRIORITY and frames of extensions are passed over
    }
  }

  function endFrame(): void {
    if (type === frameTypes.data) endData();
    else readControl(payload.length === 1 ? (payload[0] as Buffer) : Buffer.concat(payload));
    remaining = -1;
    headLength = 0;
  }

  function read(chunk: Buffer): void {
    bytesReceived += chunk.length;
    let at = 0;
    while (!closed) {
      if (remaining < 0) {
        while (headLength < 9 && at < chunk.length) head[headLength++] = chunk[at++]!;
        // The first frame is a short one. Some servers of another protocol say less than nine bytes and wait.
        if (!sawSettings && headLength >= 5 && head[0] !== 0 && head[0] !== 72) throw firstBytesFault();
        if (headLength < 9) return;
        readHead();
      }
      if (remaining > 0) {
        if (at === chunk.length) return;
        const piece = chunk.subarray(at, at + remaining);
        at += piece.length;
        remaining -= piece.length;
        if (type === frameTypes.data) readData(piece);
        else payload.push(piece);
      }
      if (remaining === 0) endFrame();
    }
  }

  /** Sends the bodies that waited for a window. */
  function flush(): void {
    for (const [id, stream] of streams) {
      const body = stream.pendingBody;
      if (body === undefined || body.length > stream.sendWindow || body.length > connectionSendWindow) continue;
      stream.pendingBody = undefined;
      stream.sendWindow -= body.length;
      connectionSendWindow -= body.length;
      write(frame(frameTypes.data, flagEnd, id, body));
    }
  }

  socket.on("data", (chunk: Buffer) => {
    if (closed) return;
    const nowMs = performance.now();
    if (nowMs - lastInputMs > gapMs) busySinceMs = nowMs;
    if (nowMs - busySinceMs > busyMs && pause === undefined) {
      socket.pause();
      pause = setTimeout(() => {
        pause = undefined;
        lastInputMs = 0;
        socket.resume();
      }, 0);
    }
    try {
      read(chunk);
    } catch (error) {
      // A handler that throws is ours to blame, and must not pass for a fault of the server.
      fail(error instanceof Fault ? error : new Fault("InternalError", String(error)));
    }
    closeIfDone();
    lastInputMs = performance.now();
  });
  socket.once("connect", () => {
    isConnected = true;
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (closed) return;
    if (!isConnected) return fail(refused(error));
    const name = error.code ?? error.message;
    fail(
      new Fault("ConnectionLost", `The connection broke: ${name}`, {
        phase: sawSettings ? "call" : "handshake",
        errno: name,
      }),
    );
  });
  const onEnd = () => {
    if (!sawSettings && headLength > 0 && head[0] !== 0) return fail(firstBytesFault());
    const what = sawSettings
      ? "The server closed the connection during the call"
      : bytesReceived === 0
        ? "The server closed the connection before it said anything"
        : "The server closed the connection before its HTTP/2 settings";
    fail(lost(refusing ?? what, sawSettings ? "call" : "handshake"));
  };
  // `close` alone would wait until the server has read what we sent, which one that has closed its side need not do.
  socket.on("end", onEnd);
  socket.on("close", onEnd);

  write(
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"),
      frame(frameTypes.settings, 0, 0, [0, 2, 0, 0, 0, 0]), // ENABLE_PUSH 0
      // The connection's window is as wide as it goes: each stream has its own.
      frame(frameTypes.window, 0, 0, uint32(maxWindow - defaultWindow)),
    ]),
  );

  return {
    ready,
    get usable() {
      return !closed && refusing === undefined && nextStreamId < 2 ** 30;
    },
    get bytesReceived() {
      return bytesReceived;
    },
    request(headers, body, handlers, window) {
      if (closed || refusing !== undefined) {
        queueMicrotask(() => handlers.fail(lost(refusing ?? "The connection is closed", "call")));
        return { cancel() {}, setPaused() {} };
      }
      const id = nextStreamId;
      const start = frame(frameTypes.headers, flagEndHeaders, id, encodeHeaders(headers));
      nextStreamId += 2;
      const stream: OpenStream = {
        handlers,
        sendWindow: initialSendWindow,
        pendingBody: body,
        answered: false,
        window,
        used: 0,
        paused: false,
      };
      streams.set(id, stream);
      write(start);
      if (window > defaultWindow) write(frame(frameTypes.window, 0, id, uint32(window - defaultWindow)));
      flush();
      return {
        cancel() {
          if (streams.delete(id)) write(frame(frameTypes.reset, 0, id, uint32(8))); // CANCEL
          closeIfDone();
        },
        setPaused(paused) {
          stream.paused = paused;
          if (streams.has(id)) grant(id, stream);
        },
      };
    },
    close(fault) {
      fail(fault);
    },
  };
}
