// A client of the kubelet's Pods API (v1alpha1.Pods) on one node's unix socket.

import { createConnector, type Limit } from "./connection.ts";
import { Fault } from "./fault.ts";
import { type GrpcCall, type GrpcRequest, type GrpcStatus, grpcCodeNames, type MessageSink } from "./grpc.ts";
import { createListDecoder, type Depth, decodePod, type Pod } from "./pod.ts";
import { socketPath } from "./socket.ts";
import { version } from "./version.ts";
import { createEventDecoder, type WatchEvent } from "./watch_event.ts";

/** The longest answer a client takes unless told otherwise, in bytes. */
export const defaultMaxBytes: number = 64 << 20;

// Pods and containers of one listing. Of an answer within maxBytes that holds nothing but empty pods, each of two bytes,
// the objects would take gigabytes; a node has hundreds.
const maxObjects = 200_000;

// Events that wait for whoever iterates: with more than that the server is stopped, with less it goes on.
const maxWaitingEvents = 1000;
const resumeAtEvents = 500;
const watchWindow = 65535;

/** How to reach the kubelet. */
export interface PodsClientOptions {
  /** Path of the socket, also behind `unix:` or `unix://`. */
  readonly socket: string;
  /** How long one operation may take, in ms, connecting included. Default 10 000. */
  readonly timeoutMs?: number | undefined;
  /** The longest answer to take, in bytes. Default 64 MiB; the server has no limit of its own. */
  readonly maxBytes?: number | undefined;
}

/** What bounds one operation. */
export interface CallOptions {
  /** How long it may take, in ms; the client's own limit by default. */
  readonly timeoutMs?: number | undefined;
  /** Ends it early; it then fails with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What bounds a listing, and how much of it is decoded. */
export interface ListOptions extends CallOptions {
  /** With `static`, pods that are not static have their source and nothing else. Default `all`. */
  readonly depth?: Depth | undefined;
}

/** The pods of one ListPods call. */
export interface Listing {
  /** Sorted by UID, as the kubelet sends them. */
  readonly pods: readonly Pod[];
  /** Size of the answer in bytes. */
  readonly bytes: number;
}

/** A client with at most one connection, opened when it is first needed. */
export interface PodsClient {
  /**
   * Lists every pod the kubelet knows. Costs one token of the rate limit.
   * @throws Fault
   */
  list(options?: ListOptions): Promise<Listing>;
  /**
   * Gets one pod, or null if there is none with this UID. Costs one token of the rate limit.
   * @throws Fault
   */
  get(uid: string, options?: CallOptions): Promise<Pod | null>;
  /**
   * Watches the pods: one `added` each, `synced`, then every change, until the server ends the stream (a Fault too) or
   * the signal does, which leaves out events that wait. `timeoutMs` bounds the time until `synced` is received. While
   * about a thousand events wait, the server is stopped; the kubelet ends the stream of a slow watcher. Costs no token.
   * @throws Fault
   */
  watch(options?: CallOptions): AsyncGenerator<WatchEvent, never, void>;
  /**
   * Connects and waits for the server's HTTP/2 settings, to know that somebody answers. Costs no token.
   * @throws Fault
   */
  connect(options?: CallOptions): Promise<void>;
  /** Tokens of the rate limit that the calls so far have cost, at the most. */
  readonly tokensSpent: number;
  /** Bytes received so far. */
  readonly bytesReceived: number;
  /** Closes the connection for good: what is under way and what is called later fails with ConnectionLost. */
  close(): void;
}

/** Creates a client; nothing is opened yet. */
export function createPodsClient(options: PodsClientOptions): PodsClient {
  const connector = createConnector(socketPath(options.socket));
  const maxBytes = options.maxBytes ?? defaultMaxBytes;
  let tokensSpent = 0;

  function limitOf({ timeoutMs = options.timeoutMs ?? 10_000, signal }: CallOptions): Limit {
    return { atMs: performance.now() + timeoutMs, timeoutMs, signal, phase: "connect" };
  }

  function requestOf(method: string, body: Uint8Array): GrpcRequest {
    return { path: `/v1alpha1.Pods/${method}`, body, maxBytes, userAgent: `kubelet-probe/${version}` };
  }

  /** Runs `attempt`, and once more on a new connection if the first is lost. */
  async function onceMore<T>(attempt: () => Promise<T>): Promise<T> {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "ConnectionLost") throw error;
    }
    return attempt();
  }

  /** One rate-limited call, its token counted before it is known: a call that was sent and lost may have cost one. */
  async function spend(method: string, body: Uint8Array, sink: MessageSink, limit: Limit): Promise<GrpcStatus> {
    tokensSpent++;
    try {
      const request = { ...requestOf(method, body), timeoutMs: Math.max(1, limit.atMs - performance.now()) };
      const status = await connector.call(request, sink, limit);
      // Refused by the limiter, which takes none, or by a server without this service, which has no limiter.
      if (status.code === 8 || status.code === 12) tokensSpent--;
      return status;
    } catch (error) {
      // It is sent as soon as there is a connection, and a server that hangs may serve it yet.
      if (limit.phase === "connect" || (error instanceof Fault && error.code === "NotGrpc")) tokensSpent--;
      throw error;
    }
  }

  /** A call whose answer is one message with pods in its field 1, as those of ListPods and GetPod both have them. */
  async function fetch(method: string, body: Uint8Array, callOptions: ListOptions) {
    const limit = limitOf(callOptions);
    return onceMore(async () => {
      const pods: Pod[] = [];
      let objects = 0;
      const decoder = createListDecoder((bytes) => {
        const pod = decodePod(bytes, callOptions.depth);
        objects += 1 + pod.containers.length + pod.images.length;
        if (objects > maxObjects) {
          throw new Fault("AnswerTooLarge", `The answer holds over ${maxObjects} pods and containers`);
        }
        pods.push(pod);
      });
      const status = await spend(method, body, decoder, limit);
      if (status.code === 0 && decoder.messages !== 1) throw new Fault("Undecodable", "The answer holds no message");
      return { status, pods, bytes: decoder.bytes };
    });
  }

  return {
    async list(callOptions = {}) {
      const { status, pods, bytes } = await fetch("ListPods", new Uint8Array(0), callOptions);
      if (status.code !== 0) throw statusFault(status);
      return { pods, bytes };
    },

    async get(uid, callOptions = {}) {
      const { status, pods } = await fetch("GetPod", encodeUid(uid), callOptions);
      if (status.code === 5) return null;
      if (status.code !== 0) throw statusFault(status);
      if (pods.length !== 1) throw new Fault("Undecodable", `The answer to GetPod holds ${pods.length} pods`);
      return pods[0]!;
    },

    async *watch(callOptions = {}) {
      const limit = limitOf(callOptions);
      const { signal } = callOptions;
      const waiting: WatchEvent[] = [];
      let isSynced = false;
      let stopped: { readonly reason: unknown } | undefined; // by the limit or the signal, whatever waits
      let ended: { readonly reason: unknown } | undefined; // by the server, after what it has sent
      let call: GrpcCall | undefined;
      let wake = () => {};
      const decoder = createEventDecoder((event) => {
        isSynced ||= event.type === "synced";
        waiting.push(event);
        if (waiting.length > maxWaitingEvents) call?.setPaused(true);
        wake();
      });
      const stop = (reason: unknown) => {
        stopped ??= { reason };
        wake();
      };
      const end = (reason: unknown) => {
        ended ??= { reason };
        wake();
      };
      const abort = () => stop(signal!.reason);

      call = await connector.begin(
        { ...requestOf("WatchPods", new Uint8Array(0)), window: watchWindow },
        decoder,
        limit,
      );
      const leftMs = Math.min(2 ** 31 - 1, Math.max(0, limit.atMs - performance.now()));
      const timer = setTimeout(() => {
        const what = `The watch is not synced within ${Math.round(limit.timeoutMs)} ms`;
        if (!isSynced) stop(new Fault("Timeout", what, { phase: "call" }));
      }, leftMs);
      signal?.addEventListener("abort", abort);
      if (signal?.aborted) abort();
      call.status.then((status) => end(status.code === 0 ? endedFault() : statusFault(status)), end);
      try {
        for (;;) {
          if (isSynced) clearTimeout(timer);
          if (stopped !== undefined) throw stopped.reason;
          const event = waiting.shift();
          if (event !== undefined) {
            if (waiting.length === resumeAtEvents) call.setPaused(false);
            yield event;
          } else if (ended !== undefined) {
            throw ended.reason;
          } else {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        }
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        call.cancel();
      }
    },

    async connect(callOptions = {}) {
      const limit = limitOf(callOptions);
      await onceMore(() => connector.reach(limit));
    },

    get tokensSpent() {
      return tokensSpent;
    },
    get bytesReceived() {
      return connector.bytesReceived;
    },
    close() {
      connector.close();
    },
  };
}

function encodeUid(uid: string): Uint8Array {
  const bytes = new TextEncoder().encode(uid);
  if (bytes.length > 127) throw new RangeError(`Cannot ask for a UID of ${bytes.length} bytes: at most 127`);
  return Uint8Array.from([10, bytes.length, ...bytes]); // field 1, length-delimited
}

function endedFault(): Fault {
  return new Fault("WatchDropped", "The kubelet ended the watch without an error", { phase: "call" });
}

/** What a gRPC status that is not OK means on this socket. */
export function statusFault({ code, message }: GrpcStatus): Fault {
  const name = grpcCodeNames[code] ?? `code ${code}`;
  const details = { phase: "call", grpcStatus: code, grpcMessage: message } as const;
  const said = message === "" ? name : `${name}, "${message}"`;
  switch (code) {
    case 4:
      return new Fault("Timeout", `The server gave the call up: ${said}`, details);
    case 8:
      if (/rate.?limit/i.test(message)) return new Fault("RateLimited", `The call was refused: ${said}`, details);
      if (message === "watch client channel closed") {
        return new Fault("WatchDropped", `The kubelet ended the watch: ${said}`, details);
      }
      // What a server with a limit of its own says; the kubelet has none.
      if (/larger than max/i.test(message)) return new Fault("AnswerTooLarge", `The server refused: ${said}`, details);
      return new Fault("ServerError", `The server answered ${said}`, details);
    case 9:
      return new Fault("Initializing", `The kubelet does not serve its inventory yet: ${said}`, details);
    case 12:
      return new Fault("WrongService", `This socket serves another API: ${said}`, details);
    default:
      return new Fault("ServerError", `The server answered ${said}`, details);
  }
}
