// Feeds what a server sends to the client: to its parts on a socket that is none, which is fast, or to the whole client
// and the checks on a real one.

import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { statusFault } from "../../lib/client.ts";
import { Fault } from "../../lib/fault.ts";
import { type GrpcStatus, type MessageSink, startCall } from "../../lib/grpc.ts";
import { openHttp2 } from "../../lib/http2.ts";
import { createListDecoder, decodePod } from "../../lib/pod.ts";
import { canary } from "../../lib/simulator/pods.ts";
import { createEventDecoder } from "../../lib/watch_event.ts";
import { PodSchema } from "../../proto/gen/pod_pb.js";
import type { Input } from "./mutate.ts";

/** How a run ended: a code of the table, `decoded` where there was an answer, or what is to be mended. */
export type Result =
  | { readonly outcome: string }
  | { readonly wrong: "crash" | "hang" | "refused what is valid"; readonly why: string };

/** A socket that is not there: what is written to it is gone, and the test says what it receives. */
class NoSocket extends EventEmitter {
  writableLength = 0;
  destroyed = false;
  write(): boolean {
    return true;
  }
  pause(): void {}
  resume(): void {}
  destroy(): void {
    this.destroyed = true;
  }
}

/** To HTTP/2, gRPC and the decoders, in one go and without a clock. */
export async function feed(input: Input): Promise<Result> {
  const socket = new NoSocket();
  const http2 = openHttp2(socket as unknown as Socket, (error) => new Fault("ConnectionLost", error.message));
  let settled: GrpcStatus | unknown;
  let isSettled = false;
  const settle = (value: unknown) => {
    settled = value;
    isSettled = true;
  };
  const request = { path: "/", body: new Uint8Array(0), maxBytes: 1 << 20, userAgent: "fuzz", window: 65535 };
  const sink: MessageSink =
    input.method === "watch" ? createEventDecoder(() => {}) : createListDecoder((bytes) => void decodePod(bytes));
  startCall(http2, request, sink).status.then(settle, settle);
  try {
    socket.emit("connect");
    for (const chunk of input.chunks) {
      if (socket.destroyed) break;
      socket.emit("data", chunk);
      // What it answers is put together once a turn.
      await undefined;
    }
    socket.emit("end");
    socket.emit("close");
  } catch (error) {
    return { wrong: "crash", why: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  for (let turn = 0; turn < 5 && !isSettled; turn++) await undefined;
  if (!isSettled) return { wrong: "hang", why: "the connection is over, and the call is not" };
  if (!(settled instanceof Error)) {
    const status = settled as GrpcStatus;
    return { outcome: status.code === 0 ? "decoded" : statusFault(status).code };
  }
  return judge(settled, input);
}

/**
 * Whether a failure is one that a server can bring about. Groups, which no Kubernetes type has, and over-long varints are
 * refused on purpose; the other reader steps over both.
 */
export function judge(error: Error, input: Input): Result {
  if (!(error instanceof Fault)) return { wrong: "crash", why: error.stack ?? String(error) };
  if (error.code === "InternalError") return { wrong: "crash", why: error.message };
  // What cannot be read is told of without showing it: it may be a pod's environment.
  if (error.code === "Undecodable" && error.message.includes(canary)) return { wrong: "crash", why: error.message };
  const isStricter = /wire type 3|more than ten bytes/.test(error.message);
  if (input.pod !== undefined && error.code === "Undecodable" && !isStricter && isValid(input.pod)) {
    return { wrong: "refused what is valid", why: error.message };
  }
  return { outcome: error.code };
}

/**
 * By another reader of protobuf. It is a lenient one, that takes a field of the wrong wire type for what it should be: only
 * what it would write with the same bytes, in whatever order, is surely valid.
 */
export function isValid(pod: Buffer): boolean {
  try {
    const written = toBinary(PodSchema, fromBinary(PodSchema, pod));
    return Buffer.from(written).sort().equals(Buffer.from(pod).sort());
  } catch {
    return false;
  }
}
