// Servers on a unix socket that send what they like, HTTP/2 frames or not: no library's server can be made to break the
// protocol, and those of the runtimes differ in what they can do.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Code } from "../lib/codes.ts";
import { Fault } from "../lib/fault.ts";

/** Frame types of RFC 9113 section 6. */
export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;

export const endStream = 1;
export const ack = 1;
export const endHeaders = 4;
export const padded = 8;

/** One frame. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

export function frame(type: number, flags: number, id: number, payload: Uint8Array | readonly number[] = []): Buffer {
  const out = Buffer.alloc(9 + payload.length);
  out.writeUIntBE(payload.length, 0, 3);
  out[3] = type;
  out[4] = flags;
  out.writeUInt32BE(id, 5);
  out.set(payload, 9);
  return out;
}

export function uint32(...values: number[]): Buffer {
  const out = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) out.writeUInt32BE(value, index * 4);
  return out;
}

/** An integer of RFC 7541 section 5.1. */
export function hpackInteger(value: number, prefixBits: number, flags = 0): Buffer {
  const mask = 2 ** prefixBits - 1;
  if (value < mask) return Buffer.from([flags | value]);
  const bytes = [flags | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** A header block of literals that are not indexed. */
export function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  const texts = fields.flatMap(([name, value]) => [Buffer.from([0]), ...[name, value].map(hpackText)]);
  return Buffer.concat(texts);
}

function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([hpackInteger(bytes.length, 7), bytes]);
}

export function headersFrame(id: number, fields: Readonly<Record<string, string>>, flags = 0): Buffer {
  return frame(frameType.headers, endHeaders | flags, id, headerBlock(Object.entries(fields)));
}

/** One message with its gRPC prefix. */
export function grpcMessage(bytes: Uint8Array, compressed = 0): Buffer {
  return Buffer.concat([Buffer.from([compressed]), uint32(bytes.length), bytes]);
}

export const grpcHeaders: Readonly<Record<string, string>> = { ":status": "200", "content-type": "application/grpc" };

/** The frames of a whole gRPC answer. */
export function grpcAnswer(id: number, message: Uint8Array): Buffer {
  const body = grpcMessage(message);
  const frames = [headersFrame(id, grpcHeaders)];
  for (let at = 0; at < body.length; at += 16384)
    frames.push(frame(frameType.data, 0, id, body.subarray(at, at + 16384)));
  return Buffer.concat([...frames, headersFrame(id, { "grpc-status": "0" }, endStream)]);
}

/** A status without a body: trailers-only, as the kubelet's server sends its errors. */
export function grpcError(id: number, code: number, message: string): Buffer {
  return headersFrame(id, { ...grpcHeaders, "grpc-status": `${code}`, "grpc-message": message }, endStream);
}

/** The server's side of a connection. */
export interface Peer {
  readonly socket: Socket;
  /** Which connection this is, from 1. */
  readonly number: number;
  /** What the client has sent so far. */
  readonly frames: readonly Frame[];
  send(...parts: readonly Uint8Array[]): void;
}

/** What a server does; without `onFrame` the client's bytes are read and dropped. */
export interface Script {
  onConnection?(peer: Peer): void;
  onFrame?(frame: Frame, peer: Peer): void;
  /** A frame with the client's headers, decoded. */
  onRequest?(id: number, headers: Readonly<Record<string, string>>, peer: Peer): void;
}

/** A server of a script. */
export interface RawServer {
  readonly path: string;
  readonly peers: readonly Peer[];
  /** The path is left behind, as a kubelet that ends leaves it. */
  close(): Promise<void>;
}

const prefaceLength = 24;

export async function startRawServer(path: string, script: Script): Promise<RawServer> {
  const peers: Peer[] = [];
  const server = createServer((socket) => {
    const frames: Frame[] = [];
    const peer: Peer = {
      socket,
      number: peers.length + 1,
      frames,
      send(...parts) {
        if (!socket.destroyed) socket.write(Buffer.concat(parts));
      },
    };
    peers.push(peer);
    let buffer = Buffer.alloc(0);
    let skip = prefaceLength;
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      buffer = Buffer.concat([buffer, chunk as Buffer]);
      if (buffer.length < skip) return;
      buffer = buffer.subarray(skip);
      skip = 0;
      while (buffer.length >= 9 && buffer.length >= 9 + buffer.readUIntBE(0, 3)) {
        const end = 9 + buffer.readUIntBE(0, 3);
        const [type, flags, id, payload] = [buffer[3]!, buffer[4]!, buffer.readUInt32BE(5), buffer.subarray(9, end)];
        buffer = buffer.subarray(end);
        frames.push({ type, flags, id, payload });
        script.onFrame?.(frames.at(-1)!, peer);
        if (type === frameType.headers) script.onRequest?.(id, parseLiterals(payload), peer);
      }
    });
    script.onConnection?.(peer);
  });
  await listen(server, path);
  return {
    path,
    peers,
    async close() {
      for (const { socket } of peers) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Waits until a server listens. */
export async function listen(server: Pick<Server, "listen" | "once">, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
}

/** The client sends literals that are not indexed, with lengths below 127: RFC 7541 section 6.2.2. */
function parseLiterals(block: Buffer): Record<string, string> {
  const headers: Record<string, string> = {};
  let at = 0;
  const text = () => {
    const length = block[at++]!;
    assert.ok(length < 127, "a length that the client is not to send");
    at += length;
    return block.toString("latin1", at - length, at);
  };
  while (at < block.length) {
    assert.equal(block[at++], 0, "not a literal without an index");
    const name = text();
    headers[name] = text();
  }
  return headers;
}

export async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a server of a script, and closes it however the test ends. */
export async function withRawServer(script: Script, use: (server: RawServer) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    const server = await startRawServer(join(folder, "s.sock"), script);
    try {
      await use(server);
    } finally {
      await server.close();
    }
  });
}

// Far beyond what anything takes, so that it tells of a hang and not of a slow machine.
const patienceMs = 30_000;

/** The fault that an operation is to fail with. */
export async function faultOf(operation: Promise<unknown>, code: Code): Promise<Fault> {
  let timer: NodeJS.Timeout | undefined;
  const hang = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: "it hangs" })), patienceMs);
  });
  try {
    await Promise.race([operation, hang]);
  } catch (error) {
    assert.ok(error instanceof Fault, `not a fault: ${error}`);
    assert.equal(error.code, code, error.message);
    return error;
  } finally {
    clearTimeout(timer);
  }
  return assert.fail("it did not fail");
}

/** Waits for a condition that an event brings about. */
export async function until(condition: () => boolean): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (!condition()) {
    assert.ok(performance.now() < endMs, "it does not come about");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
