// gRPC calls over HTTP/2 streams, in the shapes and with the texts of grpc-go: a server library would bring codecs and
// protocols that no kubelet speaks, a tenth of the program's code.

import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import {
  create,
  type DescMessage,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { message } from "./frames.ts";

/** The status codes of gRPC, by name. */
export const grpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** A gRPC status to answer with. */
export interface Answer {
  readonly status: number;
  readonly message: string;
}

/** Thrown to end a call with a status. */
export class GrpcError extends Error implements Answer {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What serves a method: it gives one message or many, and ends early when the signal comes, with the signal's reason. */
type Implementation<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  signal: AbortSignal,
) => AsyncIterable<MessageInitShape<O>>;

/** What serves each method of a service. */
export type Methods<S extends DescService> = {
  readonly [M in keyof S["method"]]: Implementation<S["method"][M]["input"], S["method"][M]["output"]>;
};

/** Of a message: whether it is compressed, and its length. */
const prefixBytes = 5;
// grpc-go's limit for a request.
const maxRequestBytes = 4 << 20;
// It sends no `date`; the option is Node's and in no type declaration.
const bare = { sendDate: false };

/** A status without a body: one HEADERS frame that ends the stream. */
export function respondStatus(stream: ServerHttp2Stream, answer: Answer, shape: OutgoingHttpHeaders): void {
  if (stream.destroyed) return;
  const fields = { ":status": 200, "content-type": "application/grpc", ...shape, ...trailers(answer) };
  stream.respond(fields, { ...bare, endStream: true });
}

/** Answers with something that is not gRPC. */
export function respondHttp(stream: ServerHttp2Stream, fields: OutgoingHttpHeaders, body: string): void {
  if (stream.destroyed) return;
  stream.respond(fields, { ...bare, endStream: false });
  stream.end(body);
}

/**
 * Answers one call of a method of `service`.
 * @param beforeEnd Is called when the answer is out, but for the end of the stream.
 */
export async function answerCall<S extends DescService>(
  stream: ServerHttp2Stream,
  fields: IncomingHttpHeaders,
  service: S,
  methods: Methods<S>,
  beforeEnd: () => void,
): Promise<void> {
  const shape = { ":status": 200, "content-type": fields["content-type"] };
  const timeout = fields["grpc-timeout"];
  const timeoutMs = typeof timeout === "string" ? parseTimeout(timeout) : undefined;
  if (typeof timeoutMs === "string") {
    const text = `malformed grpc-timeout: transport: ${timeoutMs}`;
    return respondStatus(stream, { status: grpcStatus.INTERNAL, message: text }, { ...shape, ":status": 400 });
  }
  const aborter = new AbortController();
  const abort = (status: number, text: string) => aborter.abort(new GrpcError(status, text));
  stream.once("close", () => abort(grpcStatus.CANCELLED, "context canceled"));
  const expire = () => abort(grpcStatus.DEADLINE_EXCEEDED, "context deadline exceeded");
  // No timer is that short, and a longer one would fire at once.
  if (timeoutMs !== undefined && timeoutMs < 1) expire();
  const timer = timeoutMs === undefined || timeoutMs >= 2 ** 31 ? undefined : setTimeout(expire, timeoutMs);

  let begun = false;
  let end: Answer = { status: grpcStatus.OK, message: "" };
  try {
    for await (const answer of call(await readBody(stream), fields[":path"] ?? "", service, methods, aborter.signal)) {
      aborter.signal.throwIfAborted();
      if (!begun) {
        stream.respond(shape, { ...bare, waitForTrailers: true });
        stream.once("wantTrailers", () => stream.sendTrailers(trailers(end)));
        begun = true;
      }
      if (!stream.write(message(answer))) await writable(stream);
    }
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    end = error;
  } finally {
    clearTimeout(timer);
  }
  if (stream.destroyed) return;
  beforeEnd();
  if (begun) await new Promise<void>((resolve) => stream.end(resolve));
  else respondStatus(stream, end, shape);
}

async function* call<S extends DescService>(
  body: Buffer,
  path: string,
  service: S,
  methods: Methods<S>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const slash = path.lastIndexOf("/");
  if (slash < 1) throw new GrpcError(grpcStatus.UNIMPLEMENTED, `malformed method name: ${JSON.stringify(path)}`);
  const [typeName, name] = [path.slice(1, slash), path.slice(slash + 1)];
  const method = service.methods.find((candidate) => candidate.name === name);
  if (typeName !== service.typeName || method === undefined) {
    const what = typeName === service.typeName ? `unknown method ${name} for` : "unknown";
    throw new GrpcError(grpcStatus.UNIMPLEMENTED, `${what} service ${typeName}`);
  }
  const isStream = method.methodKind === "server_streaming";
  const request = decode(readRequest(body, isStream), method.input, isStream);
  // A deadline of nothing is over before the method begins.
  signal.throwIfAborted();
  const serve = methods[method.localName] as Implementation<DescMessage, DescMessage>;
  for await (const answer of serve(request, signal)) yield toBinary(method.output, create(method.output, answer));
}

/** @returns The message of a request, without its prefix. */
function readRequest(body: Buffer, isStream: boolean): Buffer {
  const { INTERNAL, RESOURCE_EXHAUSTED, UNKNOWN } = grpcStatus;
  if (body.length < prefixBytes) {
    const none = "cardinality violation: received no request message from non-client-streaming RPC";
    throw isStream ? new GrpcError(INTERNAL, none) : new GrpcError(UNKNOWN, "EOF");
  }
  const [format, length] = [body[0]!, body.readUInt32BE(1)];
  if (format === 1) throw new GrpcError(INTERNAL, "grpc: compressed flag set with identity or empty encoding");
  if (format > 1) throw new GrpcError(INTERNAL, `grpc: received unexpected payload format ${format}`);
  if (length > maxRequestBytes) {
    const text = `grpc: received message larger than max (${length} vs. ${maxRequestBytes})`;
    throw new GrpcError(RESOURCE_EXHAUSTED, text);
  }
  const end = prefixBytes + length;
  if (body.length < end) throw new GrpcError(UNKNOWN, "unexpected EOF");
  // A method with one answer looks at its first message only.
  if (isStream && body.length > end) {
    const many = "cardinality violation: received multiple request messages for non-client-streaming RPC";
    throw new GrpcError(INTERNAL, many);
  }
  return body.subarray(prefixBytes, end);
}

function decode(bytes: Buffer, schema: DescMessage, isStream: boolean): MessageShape<DescMessage> {
  try {
    return fromBinary(schema, bytes);
  } catch {
    const what = isStream ? "failed to unmarshal the received message" : "error unmarshalling request";
    throw new GrpcError(grpcStatus.INTERNAL, `grpc: ${what}: proto: cannot parse invalid wire-format data`);
  }
}

const timeoutUnitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** @returns Milliseconds, or what is wrong with the text. */
function parseTimeout(text: string): number | string {
  const quoted = JSON.stringify(text);
  if (text.length < 2) return `timeout string is too short: ${quoted}`;
  if (text.length > 9) return `timeout string is too long: ${quoted}`;
  const unit = timeoutUnitMs[text.at(-1)!];
  if (unit === undefined) return `timeout unit is not recognized: ${quoted}`;
  return Number(text.slice(0, -1)) * unit;
}

function trailers({ status, message: text }: Answer): Record<string, string> {
  return { "grpc-status": String(status), "grpc-message": encodeGrpcMessage(text) };
}

/** Percent-encoding of the gRPC specification ("Status-Message"): all but space to tilde, and the percent sign. */
export function encodeGrpcMessage(text: string): string {
  let encoded = "";
  for (const byte of Buffer.from(text)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

/** Reads a request to its end: an answer before it would end with a reset, which is not how the kubelet answers. */
export async function readBody(stream: ServerHttp2Stream): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    // What is over the limit is refused by its prefix, and need not be kept.
    if (size <= maxRequestBytes) chunks.push(chunk);
    size += chunk.length;
  }
  return Buffer.concat(chunks);
}

/** Until the stream takes more, or is gone. */
function writable(stream: ServerHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.once("drain", done);
    stream.once("close", done);
  });
}
