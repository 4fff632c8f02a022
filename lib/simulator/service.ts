import * as http2 from "node:http2";
import type { Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createServiceImplSpec, type HandlerContext } from "@connectrpc/connect";
import { createUniversalServiceHandlers } from "@connectrpc/connect/protocol";
import { createHandlerFactory } from "@connectrpc/connect/protocol-grpc";
import {
  EventType,
  GetPodResponseSchema,
  ListPodsResponseSchema,
  Pods,
  type WatchPodsEvent,
  WatchPodsEventSchema,
} from "../../proto/gen/pods_pb.js";
import { createLimiter, kubeletLimit, type LimiterOptions } from "./limiter.ts";

/** The kubelet's texts, v1.37.2 pkg/kubelet/apis/pods and pkg/kubelet/server. */
export const kubeletText = {
  initializing: "Kubelet is initializing",
  rateLimited: "rejected by rate limit",
  watchDropped: "watch client channel closed",
  unknownService: "unknown service v1alpha1.Pods",
} as const;

/** A gRPC status to answer with. */
export interface Answer {
  readonly status: number;
  readonly message: string;
}

/** What a watch does once its pods are out. */
export interface WatchBehaviour {
  /** Ends it before INITIAL_SYNC_COMPLETE, after it, or never. */
  readonly end?: "before-sync" | "after-sync";
  /** The status it ends with; without one it ends as if all were well. */
  readonly status?: Answer;
  /** Ends only the first this many watches of the simulator. */
  readonly times?: number;
  /** Closes the connection with GOAWAY once the watch has ended, as a kubelet does that shuts down. */
  readonly goaway?: boolean;
  /** Never sends anything. */
  readonly silent?: boolean;
  /** Sends ADDED without an end and never INITIAL_SYNC_COMPLETE. */
  readonly endless?: boolean;
  /** Sends changes after the sync, the first of them a pod that the sync had already. */
  readonly churn?: boolean;
  /** Leaves the first pod of the listing out. */
  readonly hides?: boolean;
}

/** How the service departs from a healthy kubelet. */
export interface ServiceBehaviour {
  readonly limiter?: LimiterOptions;
  /** Milliseconds from the start until the sources are ready; `Infinity` for never. */
  readonly readyAfter?: number;
  /** Milliseconds that each answer takes. */
  readonly delay?: number;
  /** Answers every call so, trailers-only. */
  readonly status?: Answer;
  /** Answers every request with this HTTP response, which is not gRPC. */
  readonly http?: { readonly status: number; readonly contentType: string; readonly body: string };
  /** Resets a stream whose `:authority` is no host name, as strict servers and proxies do. */
  readonly strictAuthority?: boolean;
  readonly watch?: WatchBehaviour;
}

/** One pod as the service serves it. */
export interface ServedPod {
  readonly uid: string;
  readonly bytes: Uint8Array;
  /** What a DELETED event carries: of a pod that has ended, which can be DELETED and still be listed. */
  readonly deleted?: Uint8Array;
}

/** What the service counted. */
export interface ServiceCounts {
  calls: number;
  admitted: number;
  rejected: number;
}

export interface Service {
  /** Takes a connection over. */
  serve(socket: Socket): void;
  close(): void;
}

/** The Pods API over HTTP/2, in the shapes that grpc-go gives its answers. */
export function createService(pods: readonly ServedPod[], behaviour: ServiceBehaviour, counts: ServiceCounts): Service {
  const listing = [...pods].sort((a, b) => (a.uid < b.uid ? -1 : 1));
  const allow = createLimiter(behaviour.limiter ?? kubeletLimit);
  const started = performance.now();
  const sessions = new Set<http2.Http2Session>();
  let watches = 0;

  function takeToken(): void {
    if (allow()) {
      counts.admitted += 1;
      return;
    }
    counts.rejected += 1;
    throw new ConnectError(kubeletText.rateLimited, Code.ResourceExhausted);
  }

  function checkReady(): void {
    if (performance.now() - started < (behaviour.readyAfter ?? 0)) {
      throw new ConnectError(kubeletText.initializing, Code.FailedPrecondition);
    }
  }

  async function listPods(_request: unknown, context: HandlerContext) {
    takeToken();
    await pause(behaviour.delay ?? 0, context.signal);
    checkReady();
    return create(ListPodsResponseSchema, { pods: listing.map((pod) => pod.bytes) });
  }

  async function getPod(request: { readonly podUID: string }, context: HandlerContext) {
    takeToken();
    await pause(behaviour.delay ?? 0, context.signal);
    // The kubelet looks at the sources before it looks at the UID.
    checkReady();
    const pod = listing.find((candidate) => candidate.uid === request.podUID);
    if (pod === undefined) throw new ConnectError(`pod with UID ${request.podUID} not found`, Code.NotFound);
    return create(GetPodResponseSchema, { pod: pod.bytes });
  }

  async function* watchPods(_request: unknown, context: HandlerContext): AsyncGenerator<WatchPodsEvent> {
    await pause(behaviour.delay ?? 0, context.signal);
    checkReady();
    const watch = behaviour.watch ?? {};
    watches += 1;
    const ends = watches <= (watch.times ?? Number.POSITIVE_INFINITY) ? watch.end : undefined;
    if (watch.silent) await held(context.signal);
    do {
      for (const pod of watch.hides ? listing.slice(1) : listing) yield event(EventType.ADDED, pod.bytes);
      if (watch.endless) await pause(20, context.signal);
    } while (watch.endless && !context.signal.aborted);
    if (ends === "before-sync") return end(watch);
    yield event(EventType.INITIAL_SYNC_COMPLETE);
    if (ends === "after-sync") return end(watch);
    // The watcher is registered before its snapshot is taken, so an event can come twice.
    if (watch.churn && listing[0] !== undefined) yield event(EventType.ADDED, listing[0].bytes);
    while (watch.churn && !context.signal.aborted) {
      for (const pod of listing) {
        yield event(EventType.MODIFIED, pod.bytes);
        if (pod.deleted !== undefined) yield event(EventType.DELETED, pod.deleted);
      }
      await pause(50, context.signal);
    }
    await held(context.signal);
  }

  function end(watch: WatchBehaviour): void {
    if (watch.status !== undefined) throw new ConnectError(watch.status.message, watch.status.status);
  }

  // Without compression: the kubelet uses it only for a client that compressed its request.
  // gRPC alone: a router brings the Connect protocols and their JSON along.
  const service = createServiceImplSpec<typeof Pods>(Pods, { listPods, getPod, watchPods });
  const served = createUniversalServiceHandlers(service, [createHandlerFactory({ acceptCompression: [] })]);
  const handlers = new Map(served.map((handler) => [handler.requestPath, handler]));

  async function answer(stream: http2.ServerHttp2Stream, fields: http2.IncomingHttpHeaders): Promise<void> {
    const path = fields[":path"] ?? "";
    const contentType = fields["content-type"] ?? "";
    if (behaviour.strictAuthority && !/^[\w.:[\]-]+$/.test(fields[":authority"] ?? "")) {
      return stream.close(http2.constants.NGHTTP2_PROTOCOL_ERROR);
    }
    if (behaviour.http !== undefined) {
      const { status, body } = behaviour.http;
      await readBody(stream);
      return respondHttp(stream, { ":status": status, "content-type": behaviour.http.contentType }, body);
    }
    if (fields[":method"] !== "POST") {
      const text = `Received a HEADERS frame with :method "${fields[":method"]}" which should be POST`;
      return respondStatus(stream, { status: Code.Internal, message: text }, { ":status": 405 });
    }
    if (!/^application\/grpc($|[+;])/.test(contentType)) {
      const text = `invalid gRPC request content-type "${contentType}"`;
      return respondStatus(stream, { status: Code.InvalidArgument, message: text }, { ":status": 415 });
    }
    counts.calls += 1;
    const shape = { ":status": 200, "content-type": contentType };
    if (behaviour.status !== undefined) {
      await readBody(stream);
      return respondStatus(stream, behaviour.status, shape);
    }
    const handler = handlers.get(path);
    if (handler === undefined) {
      await readBody(stream);
      return respondStatus(stream, { status: Code.Unimplemented, message: unimplemented(path) }, shape);
    }

    // Whole, since Connect would leave off reading where it finds a fault, which resets the stream.
    const body = await readBody(stream);
    const aborter = new AbortController();
    stream.once("close", () => aborter.abort());
    const response = await handler({
      httpVersion: "2.0",
      method: "POST",
      // Only its path counts; grpc-go accepts any authority, also one that no URL can hold.
      url: `http://localhost${path}`,
      header: requestHeader(fields),
      body: once(body),
      signal: aborter.signal,
    });
    const session = stream.session;
    const sentAway = path.endsWith("/WatchPods") && behaviour.watch?.goaway;
    // GOAWAY comes before the end of the last stream, as with a server that stops gracefully. Bun's and Deno's close()
    // alone does not send it.
    await respond(stream, response, shape, () => sentAway && session?.goaway());
    if (sentAway) session?.close();
  }

  const server = http2.createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.on("error", ignore);
  });
  server.on("sessionError", ignore);
  server.on("stream", (stream, fields) => {
    stream.on("error", ignore);
    answer(stream, fields).catch(() => stream.destroy());
  });

  return {
    serve: (socket) => void server.emit("connection", socket),
    close() {
      for (const session of sessions) session.destroy();
    },
  };
}

/** grpc-go sends no `date`; the option is Node's and in no type declaration. */
const bare = { sendDate: false };

type Shape = http2.OutgoingHttpHeaders;

/** A status without a body: one HEADERS frame that ends the stream. */
function respondStatus(stream: http2.ServerHttp2Stream, answer: Answer, shape: Shape): void {
  if (stream.destroyed) return;
  const fields = {
    ":status": 200,
    "content-type": "application/grpc",
    ...shape,
    "grpc-status": String(answer.status),
    "grpc-message": encodeGrpcMessage(answer.message),
  };
  stream.respond(fields, { ...bare, endStream: true });
}

/** What Connect made of a call, in the frames that grpc-go would use for it. */
async function respond(
  stream: http2.ServerHttp2Stream,
  response: ConnectResponse,
  shape: Shape,
  beforeEnd: () => void,
): Promise<void> {
  let begun = false;
  for await (const chunk of response.body ?? []) {
    if (stream.destroyed) return;
    if (!begun) {
      stream.respond(shape, { ...bare, waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers(trailer(response)));
      begun = true;
    }
    if (!stream.write(chunk)) await writable(stream);
  }
  if (stream.destroyed) return;
  beforeEnd();
  if (begun) await new Promise<void>((resolve) => stream.end(resolve));
  else stream.respond({ ...shape, ...trailer(response) }, { ...bare, endStream: true });
}

interface ConnectResponse {
  readonly body?: AsyncIterable<Uint8Array>;
  readonly trailer?: Headers;
}

function trailer(response: ConnectResponse): Record<string, string> {
  return {
    "grpc-status": response.trailer?.get("grpc-status") ?? "0",
    // Connect escapes the whole message as in a URL, grpc-go only what the gRPC specification asks for.
    "grpc-message": encodeGrpcMessage(decodeURIComponent(response.trailer?.get("grpc-message") ?? "")),
  };
}

/** Percent-encoding of the gRPC specification ("Status-Message"): all but space to tilde, and the percent sign. */
export function encodeGrpcMessage(message: string): string {
  let encoded = "";
  for (const byte of Buffer.from(message)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

function respondHttp(stream: http2.ServerHttp2Stream, fields: http2.OutgoingHttpHeaders, body: string): void {
  if (stream.destroyed) return;
  stream.respond(fields, { ...bare, endStream: false });
  stream.end(body);
}

/** grpc-go's texts for a path that it does not serve. */
function unimplemented(path: string): string {
  const name = path.replace(/^\//, "");
  const slash = name.lastIndexOf("/");
  if (slash < 0) return `malformed method name: ${JSON.stringify(path)}`;
  const [service, method] = [name.slice(0, slash), name.slice(slash + 1)];
  return service === Pods.typeName ? `unknown method ${method} for service ${service}` : `unknown service ${service}`;
}

function requestHeader(fields: http2.IncomingHttpHeaders): Headers {
  const header = new Headers();
  for (const [name, value] of Object.entries(fields)) {
    if (!name.startsWith(":") && value !== undefined) header.set(name, String(value));
  }
  // grpc-go has no other codec, so it reads every subtype as protobuf.
  header.set("content-type", "application/grpc+proto");
  return header;
}

function event(type: EventType, pod: Uint8Array = new Uint8Array()): WatchPodsEvent {
  return create(WatchPodsEventSchema, { type, pod });
}

/** Reads a request to its end: an answer before it would end with a reset, which is not how the kubelet answers. */
async function readBody(stream: http2.ServerHttp2Stream): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    // grpc-go's limit for a request; what is over it would be refused, and need not be kept.
    if (size <= 4 << 20) chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}

/** Until the stream takes more, or is gone. */
function writable(stream: http2.ServerHttp2Stream): Promise<void> {
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

/** Until the call is over for another reason; ends with the status grpc-go gives for that reason. */
async function held(signal: AbortSignal): Promise<never> {
  await pause(undefined, signal);
  const reason: unknown = signal.reason;
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) {
    throw new ConnectError("context deadline exceeded", Code.DeadlineExceeded);
  }
  throw new ConnectError("context canceled", Code.Canceled);
}

/** Until the time is up, or the signal comes; without a time, until the signal comes. */
function pause(milliseconds: number | undefined, signal: AbortSignal): Promise<void> {
  if (milliseconds === 0 || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = milliseconds === undefined ? undefined : setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}

function ignore(): void {}
