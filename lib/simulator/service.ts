import * as http2 from "node:http2";
import type { Socket } from "node:net";
import { EventType, Pods } from "../../proto/gen/pods_pb.js";
import {
  type Answer,
  answerCall,
  GrpcError,
  grpcStatus,
  type Methods,
  readBody,
  respondHttp,
  respondStatus,
} from "./grpc.ts";
import { createLimiter, kubeletLimit, type LimiterOptions } from "./limiter.ts";

/** The kubelet's texts, v1.37.2 pkg/kubelet/apis/pods and pkg/kubelet/server. */
export const kubeletText = {
  initializing: "Kubelet is initializing",
  rateLimited: "rejected by rate limit",
  watchDropped: "watch client channel closed",
  unknownService: "unknown service v1alpha1.Pods",
} as const;

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
    throw new GrpcError(grpcStatus.RESOURCE_EXHAUSTED, kubeletText.rateLimited);
  }

  function checkReady(): void {
    if (performance.now() - started < (behaviour.readyAfter ?? 0)) {
      throw new GrpcError(grpcStatus.FAILED_PRECONDITION, kubeletText.initializing);
    }
  }

  const methods: Methods<typeof Pods> = {
    async *listPods(_request, signal) {
      takeToken();
      await pause(behaviour.delay ?? 0, signal);
      checkReady();
      yield { pods: listing.map((pod) => pod.bytes) };
    },

    async *getPod({ podUID }, signal) {
      takeToken();
      await pause(behaviour.delay ?? 0, signal);
      // The kubelet looks at the sources before it looks at the UID.
      checkReady();
      const pod = listing.find(({ uid }) => uid === podUID);
      if (pod === undefined) throw new GrpcError(grpcStatus.NOT_FOUND, `pod with UID ${podUID} not found`);
      yield { pod: pod.bytes };
    },

    async *watchPods(_request, signal) {
      await pause(behaviour.delay ?? 0, signal);
      checkReady();
      const watch = behaviour.watch ?? {};
      watches += 1;
      const ends = watches <= (watch.times ?? Number.POSITIVE_INFINITY) ? watch.end : undefined;
      if (watch.silent) await held(signal);
      do {
        for (const pod of watch.hides ? listing.slice(1) : listing) yield { type: EventType.ADDED, pod: pod.bytes };
        if (watch.endless) await pause(20, signal);
      } while (watch.endless && !signal.aborted);
      if (ends === "before-sync") return end(watch);
      yield { type: EventType.INITIAL_SYNC_COMPLETE };
      if (ends === "after-sync") return end(watch);
      // The watcher is registered before its snapshot is taken, so an event can come twice.
      if (watch.churn && listing[0] !== undefined) yield { type: EventType.ADDED, pod: listing[0].bytes };
      while (watch.churn && !signal.aborted) {
        for (const pod of listing) {
          yield { type: EventType.MODIFIED, pod: pod.bytes };
          if (pod.deleted !== undefined) yield { type: EventType.DELETED, pod: pod.deleted };
        }
        await pause(50, signal);
      }
      await held(signal);
    },
  };

  function end(watch: WatchBehaviour): void {
    if (watch.status !== undefined) throw new GrpcError(watch.status.status, watch.status.message);
  }

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
      return respondStatus(stream, { status: grpcStatus.INTERNAL, message: text }, { ":status": 405 });
    }
    if (!/^application\/grpc($|[+;])/.test(contentType)) {
      const text = `invalid gRPC request content-type "${contentType}"`;
      return respondStatus(stream, { status: grpcStatus.INVALID_ARGUMENT, message: text }, { ":status": 415 });
    }
    counts.calls += 1;
    if (behaviour.status !== undefined) {
      await readBody(stream);
      return respondStatus(stream, behaviour.status, { "content-type": contentType });
    }
    const session = stream.session;
    const sentAway = path.endsWith("/WatchPods") && behaviour.watch?.goaway;
    // GOAWAY comes before the end of the last stream, as with a server that stops gracefully. Bun's and Deno's close()
    // alone does not send it.
    await answerCall(stream, fields, Pods, methods, () => sentAway && session?.goaway());
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

/** Until the call is over for another reason, which it ends with. */
async function held(signal: AbortSignal): Promise<never> {
  await pause(undefined, signal);
  throw signal.reason;
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
