import type { Socket } from "node:net";

/*
 * The few HTTP/2 frames (RFC 9113) that a broken server needs. The http2 module of a runtime protects its user from
 * sending most of what is broken, and each runtime lacks another part, so broken answers are written by hand.
 */

/** HTTP/2 frame types, RFC 9113 section 6. */
export const frameType = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

const flag = { ack: 1, endStream: 1, endHeaders: 4 } as const;

/** HTTP/2 error codes, RFC 9113 section 7. */
export const errorCode = { noError: 0, protocolError: 1, internalError: 2, enhanceYourCalm: 11 } as const;

const prefaceBytes = 24;
const headerBytes = 9;

/** The largest frame a peer takes unless it says otherwise. */
const maxFrameBytes = 16384;

/** One frame, whole. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(headerBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A SETTINGS frame of identifiers and values. */
export function settings(entries: readonly (readonly [identifier: number, value: number])[] = []): Buffer {
  const payload = Buffer.alloc(entries.length * 6);
  entries.forEach(([identifier, value], index) => {
    payload.writeUInt16BE(identifier, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  });
  return frame(frameType.settings, 0, 0, payload);
}

/** SETTINGS_INITIAL_WINDOW_SIZE. */
export const initialWindowSize = 4;

/** A GOAWAY frame that says which stream was the last one looked at. */
export function goaway(lastStream: number, code: number, debug = ""): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastStream, 0);
  payload.writeUInt32BE(code, 4);
  return frame(frameType.goaway, 0, 0, Buffer.concat([payload, Buffer.from(debug)]));
}

/** An RST_STREAM frame. */
export function rstStream(stream: number, code: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code, 0);
  return frame(frameType.rstStream, 0, stream, payload);
}

/** Header fields as HPACK literals without indexing (RFC 7541 section 6.2.2), so no state is kept. */
function encodeFields(fields: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of Object.entries(fields)) {
    parts.push(Buffer.from([0]), encodeText(name), encodeText(value));
  }
  return Buffer.concat(parts);
}

/** An HPACK string without Huffman coding: a length with a 7-bit prefix (RFC 7541 section 5), then the bytes. */
function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Header fields of a stream, in as many frames as their size asks for. */
export function headers(stream: number, fields: Readonly<Record<string, string>>, endStream: boolean): Buffer {
  const block = encodeFields(fields);
  const frames: Buffer[] = [];
  let offset = 0;
  do {
    const part = block.subarray(offset, offset + maxFrameBytes);
    const last = offset + part.length === block.length;
    const flags = (last ? flag.endHeaders : 0) | (offset === 0 && endStream ? flag.endStream : 0);
    frames.push(frame(offset === 0 ? frameType.headers : frameType.continuation, flags, stream, part));
    offset += part.length;
  } while (offset < block.length);
  return Buffer.concat(frames);
}

/** Body bytes of a stream, in as many frames as their size asks for. */
export function data(stream: number, bytes: Uint8Array, endStream = false): Buffer {
  const frames: Buffer[] = [];
  let offset = 0;
  do {
    const part = bytes.subarray(offset, offset + maxFrameBytes);
    const last = offset + part.length === bytes.length;
    frames.push(frame(frameType.data, last && endStream ? flag.endStream : 0, stream, part));
    offset += part.length;
  } while (offset < bytes.length);
  return Buffer.concat(frames);
}

/** A gRPC message: the compressed flag, the length, the bytes. */
export function message(
  bytes: Uint8Array,
  { compressed = false, length = bytes.length }: { readonly compressed?: boolean; readonly length?: number } = {},
): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(compressed ? 1 : 0, 0);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** What `readFrames` tells of a client. */
export interface FrameEvents {
  /** The client's first bytes are an HTTP/2 preface; the time for the server's SETTINGS. */
  readonly onPreface?: () => void;
  /** A request is there, its body too. */
  readonly onRequest?: (stream: number) => void;
  /** The header fields of a request are there; its body may follow. */
  readonly onRequestHeaders?: (stream: number) => void;
  /** The client takes this many more bytes on a stream, or on the connection for stream 0. */
  readonly onWindow?: (stream: number, bytes: number) => void;
  /** The window a new stream starts with. */
  readonly onInitialWindow?: (bytes: number) => void;
  /** The client gave a stream up. */
  readonly onReset?: (stream: number) => void;
}

/** Reads a client's frames and answers only what keeps a connection alive: SETTINGS and PING. */
export function readFrames(socket: Socket, events: FrameEvents): void {
  let pending = Buffer.alloc(0);
  let greeted = false;

  socket.on("data", (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    if (!greeted) {
      if (pending.length < prefaceBytes) return;
      pending = pending.subarray(prefaceBytes);
      greeted = true;
      events.onPreface?.();
    }
    while (pending.length >= headerBytes) {
      const length = pending.readUIntBE(0, 3);
      if (pending.length < headerBytes + length) return;
      const type = pending.readUInt8(3);
      const flags = pending.readUInt8(4);
      const stream = pending.readUInt32BE(5) & 0x7fffffff;
      const payload = pending.subarray(headerBytes, headerBytes + length);
      pending = pending.subarray(headerBytes + length);
      take(type, flags, stream, payload);
    }
  });

  function take(type: number, flags: number, stream: number, payload: Buffer): void {
    if (type === frameType.settings && (flags & flag.ack) === 0) {
      for (let offset = 0; offset + 6 <= payload.length; offset += 6) {
        if (payload.readUInt16BE(offset) === initialWindowSize) {
          events.onInitialWindow?.(payload.readUInt32BE(offset + 2));
        }
      }
      write(socket, frame(frameType.settings, flag.ack, 0));
    } else if (type === frameType.ping && (flags & flag.ack) === 0) {
      write(socket, frame(frameType.ping, flag.ack, 0, payload));
    } else if (type === frameType.windowUpdate && payload.length === 4) {
      events.onWindow?.(stream, payload.readUInt32BE(0));
    } else if (type === frameType.rstStream) {
      events.onReset?.(stream);
    } else if (type === frameType.headers || type === frameType.data) {
      if (type === frameType.headers) events.onRequestHeaders?.(stream);
      if ((flags & flag.endStream) !== 0) events.onRequest?.(stream);
    }
  }
}

/** Writes unless the client has gone; what it never got is of no interest to anybody. */
export function write(socket: Socket, bytes: Uint8Array): boolean {
  return !socket.destroyed && socket.writable && socket.write(bytes);
}
