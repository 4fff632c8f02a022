// gRPC over HTTP/2 (the protocol's "PROTOCOL-HTTP2" document), without compression, which the kubelet does not use.

import { Fault } from "./fault.ts";
import type { Headers } from "./hpack.ts";
import type { Http2Connection, StreamHandlers } from "./http2.ts";

/** How a call ended: the code 0 to 16 and the decoded message. */
export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}

/** The names of the gRPC codes, by number. */
export const grpcCodeNames: readonly string[] = (
  "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED " +
  "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS " +
  "UNAUTHENTICATED"
).split(" ");

/** Takes the answer's messages as they come, so that a long one need not be held whole. */
export interface MessageSink {
  /** A message of `length` bytes begins. */
  start(length: number): void;
  /** A piece of it, valid only during the call. */
  chunk(bytes: Uint8Array): void;
  /** It is complete. */
  end(): void;
}

/** What to call, and how much to take. */
export interface GrpcRequest {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** The serialized request. */
  readonly body: Uint8Array;
  /** The longest message to take, in bytes. */
  readonly maxBytes: number;
  /** Told to the server as `grpc-timeout`, in ms; none by default. */
  readonly timeoutMs?: number | undefined;
  /** How many bytes of the answer the server may send while the call is paused. By default nothing stops it. */
  readonly window?: number | undefined;
  readonly userAgent: string;
  /** Further metadata, lower-case names. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** A call on its way. */
export interface GrpcCall {
  /** Settles with the status the server ended the call with; fails with a Fault where it did not get that far. */
  readonly status: Promise<GrpcStatus>;
  /** Gives the call up; `status` then never settles. */
  cancel(): void;
  /** Stops the server once it has used up its window, or lets it go on. */
  setPaused(paused: boolean): void;
}

/** Sends one request and reads the answer's messages into `sink`. */
export function startCall(connection: Http2Connection, request: GrpcRequest, sink: MessageSink): GrpcCall {
  const body = new Uint8Array(5 + request.body.length);
  new DataView(body.buffer).setUint32(1, request.body.length);
  body.set(request.body, 5);

  const headers: Record<string, string> = {
    ":method": "POST",
    ":scheme": "http",
    ":path": request.path,
    // One plain value: strict servers reset a call whose authority is a socket path.
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
    "user-agent": request.userAgent,
    ...request.metadata,
  };
  // At most 8 digits are allowed.
  if (request.timeoutMs !== undefined) {
    headers["grpc-timeout"] = `${Math.max(1, Math.min(99_999_999, Math.ceil(request.timeoutMs)))}m`;
  }

  let settle: { resolve: (status: GrpcStatus) => void; reject: (fault: Fault) => void };
  const status = new Promise<GrpcStatus>((resolve, reject) => {
    settle = { resolve, reject };
  });

  let initial: Headers | undefined;
  const prefix = new Uint8Array(5);
  let prefixLength = 0;
  let remaining = -1; // of the message being read; -1 between two

  function refuse(fault: Fault): void {
    stream.cancel();
    settle.reject(fault);
  }

  function readMessages(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (remaining < 0) {
        prefix[prefixLength++] = chunk[at++]!;
        if (prefixLength < 5) continue;
        prefixLength = 0;
        const length = new DataView(prefix.buffer).getUint32(1);
        if (prefix[0] !== 0) {
          const what = prefix[0] === 1 ? "compressed, which nobody asked for" : "not a gRPC message";
          throw new Fault("Undecodable", `The answer is ${what}`);
        }
        if (length > request.maxBytes) {
          const what = `The answer of ${length} bytes is over the limit of ${request.maxBytes} bytes`;
          throw new Fault("AnswerTooLarge", what);
        }
        remaining = length;
        sink.start(length);
      }
      const piece = chunk.subarray(at, at + remaining);
      at += piece.length;
      remaining -= piece.length;
      if (piece.length > 0) sink.chunk(piece);
      if (remaining === 0) {
        remaining = -1;
        sink.end();
      }
    }
  }

  const handlers: StreamHandlers = {
    headers(received, end) {
      initial = received;
      if (end) return; // trailers-only: the status is here
      const fault = responseFault(received);
      if (fault !== undefined) refuse(fault);
    },
    data(chunk) {
      try {
        readMessages(chunk);
      } catch (error) {
        // What a sink cannot take is the fault of this call, not of the connection.
        refuse(error instanceof Fault ? error : new Fault("InternalError", String(error)));
      }
    },
    end(trailers) {
      const found = readStatus(trailers) ?? readStatus(initial);
      if (found !== undefined && (found.code !== 0 || (remaining < 0 && prefixLength === 0))) {
        return settle.resolve(found);
      }
      if (found !== undefined) {
        return settle.reject(new Fault("Undecodable", "The answer ends in the middle of a message"));
      }
      const fault = initial === undefined ? undefined : responseFault(initial);
      settle.reject(fault ?? new Fault("NotGrpc", "The answer ends without a gRPC status"));
    },
    fail(fault) {
      settle.reject(fault);
    },
  };
  const stream = connection.request(headers, body, handlers, request.window ?? 2 ** 31 - 1);
  return {
    status,
    cancel() {
      stream.cancel();
    },
    setPaused(paused) {
      stream.setPaused(paused);
    },
  };
}

/** Why a response cannot be gRPC, whatever follows; a server that sends a gRPC status all the same is believed. */
function responseFault(headers: Headers): Fault | undefined {
  if (headers["grpc-status"] !== undefined) return undefined;
  const status = headers[":status"] ?? "none";
  if (status !== "200") return new Fault("NotGrpc", `The server answers with HTTP status ${status.slice(0, 20)}`);
  const type = headers["content-type"] ?? "none";
  if (!/^application\/grpc([+;]|$)/.test(type)) {
    return new Fault("NotGrpc", `The server answers with content type ${JSON.stringify(type.slice(0, 80))}, not gRPC`);
  }
  return undefined;
}

function readStatus(headers: Headers | undefined): GrpcStatus | undefined {
  const text = headers?.["grpc-status"];
  if (text === undefined) return undefined;
  const code = /^\d{1,3}$/.test(text) ? Number(text) : 2; // UNKNOWN, as the protocol has it for a status it lacks
  return { code, message: decodeMessage(headers?.["grpc-message"] ?? "") };
}

// Nobody reads more of a message, and a server may send megabytes.
const maxMessageLength = 1 << 16;

/** Undoes the percent encoding; what is not valid stays or becomes U+FFFD. */
function decodeMessage(encoded: string): string {
  const text = encoded.slice(0, maxMessageLength);
  const bytes = Buffer.from(text, "latin1");
  let written = 0;
  for (let at = 0; at < bytes.length; at++) {
    const hex = bytes[at] === 37 ? text.slice(at + 1, at + 3) : "";
    if (/^[0-9a-fA-F]{2}$/.test(hex)) {
      bytes[written++] = Number.parseInt(hex, 16);
      at += 2;
    } else {
      bytes[written++] = bytes[at]!;
    }
  }
  return new TextDecoder().decode(bytes.subarray(0, written));
}
