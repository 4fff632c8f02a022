// A client of the kubelet's Pods API on one node's unix socket. What only the library's users ask for is loaded when they
// do: a probe starts a process a minute.

import type { Budget, BudgetOptions } from "./budget.ts";
import { createConnector, type Limit } from "./connection.ts";
import { Fault } from "./fault.ts";
import type { FieldMask } from "./field_mask.ts";
import type { InventoryChange, InventoryOptions } from "./follow.ts";
import { type GrpcCall, type GrpcRequest, type GrpcStatus, grpcCodeNames, type MessageSink } from "./grpc.ts";
import { createListDecoder, type Depth, decodePod, type Pod, type PodField } from "./pod.ts";
import { socketPath } from "./socket.ts";
import { version } from "./version.ts";
import type { WaitOptions } from "./wait.ts";
import { createEventDecoder, type WatchEvent } from "./watch_event.ts";

/** The longest answer a client takes unless told otherwise, in bytes. */
export const defaultMaxBytes: number = 64 << 20;

// Pods and containers of one listing. Of an answer within maxBytes that holds nothing but empty pods, each of two bytes,
// the objects would take gigabytes; a node has hundreds.
const maxObjects = 200_000;

const watchWindow = 65535;

/**
 * The versions of the API that a client speaks, in the order it tries them. Every kubelet from 1.36.0 to 1.37.2 has the
 * first, and none of the others; those are taken to have the same messages with further fields.
 */
export const apiVersions = ["v1alpha1", "v1beta1", "v1"] as const;
/** One of them. */
export type ApiVersion = (typeof apiVersions)[number];

/** How to reach the kubelet. */
export interface PodsClientOptions {
  /** Path of the socket, also behind `unix:` or `unix://`. */
  readonly socket: string;
  /** How long one operation may take, in ms, connecting included. Default 10 000. */
  readonly timeoutMs?: number | undefined;
  /** The longest answer to take, in bytes. Default 64 MiB; the server has no limit of its own. */
  readonly maxBytes?: number | undefined;
  /** The version of the API; with `auto`, the default, the first of `apiVersions` that the server has. */
  readonly apiVersion?: ApiVersion | "auto" | undefined;
  /**
   * The client's share of the rate limit that all clients of the kubelet have together. Calls that cost a token wait for
   * it, for as long as they may take. None by default.
   */
  readonly budget?: BudgetOptions | undefined;
}

/** What bounds one operation. */
export interface CallOptions {
  /** How long it may take, in ms; the client's own limit by default. */
  readonly timeoutMs?: number | undefined;
  /** Ends it early; it then fails with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What bounds a call, and which fields of the pods are decoded. */
export interface FieldOptions<F extends PodField = PodField> extends CallOptions {
  /**
   * The fields that are decoded, all by default; the pods then have these and no others. Servers are told by the metadata
   * `x-kubernetes-fieldmask`; none up to 1.37.2 makes use of it, so they send whole pods all the same.
   */
  readonly fields?: readonly F[] | undefined;
}

/** What bounds a listing, and how much of it is decoded. */
export interface ListOptions<F extends PodField = PodField> extends FieldOptions<F> {
  /** With `static`, pods that are not static have their source and nothing else. Default `all`. */
  readonly depth?: Depth | undefined;
}

/** What bounds a watch, and how much of it is decoded and held. */
export interface WatchOptions<F extends PodField = PodField> extends FieldOptions<F> {
  /** How many events may wait for whoever iterates before the server is stopped; it goes on at half. Default 1000. */
  readonly buffer?: number | undefined;
}

/** The pods of one ListPods call. */
export interface Listing<P = Pod> {
  /** Sorted by UID, as the kubelet sends them. */
  readonly pods: readonly P[];
  /** Size of the answer in bytes. */
  readonly bytes: number;
}

/**
 * A client with at most one connection, opened when it is first needed. Whatever goes wrong is a `Fault` with a code of
 * docs/codes.md; a failure is never an empty answer.
 */
export interface PodsClient {
  /**
   * Lists every pod the kubelet knows: static ones, those of the API server, those that have ended. Costs one token of the
   * rate limit.
   * @throws Fault `Initializing` and `RateLimited` pass by themselves; a kubelet that restarts gives `SocketDead`,
   *   `SocketMissing` or `ConnectionLost`.
   * @throws RangeError for a field that a pod does not have.
   * @example
   * ```ts
   * import assert from "node:assert/strict";
   * import { createPodsClient } from "./mod.ts";
   *
   * const client = createPodsClient({ socket: "/var/lib/kubelet/pods-api/pods-api.sock" });
   * const { pods, bytes } = await client.list({ fields: ["namespace", "name", "phase"], timeoutMs: 2000 });
   * client.close();
   * assert.deepEqual(Object.keys(pods[0]!), ["namespace", "name", "phase"]);
   * assert.ok(bytes > 0);
   * ```
   */
  list<F extends PodField = PodField>(options?: ListOptions<F>): Promise<Listing<Pick<Pod, F>>>;
  /**
   * Gets one pod, or null if there is none with this UID; the UID of a mirror pod is none. Costs one token of the rate limit.
   * @throws Fault As `list` does; null is an answer of the kubelet, and no failure is.
   * @throws RangeError for a UID of over 127 bytes, or a field that a pod does not have.
   * @example
   * ```ts
   * import assert from "node:assert/strict";
   * import { createPodsClient } from "./mod.ts";
   *
   * const client = createPodsClient({ socket: "/var/lib/kubelet/pods-api/pods-api.sock" });
   * assert.equal(await client.get("no-such-uid"), null);
   * const [first] = (await client.list()).pods;
   * const again = await client.get(first!.uid, { fields: ["name"] });
   * client.close();
   * assert.deepEqual(again, { name: first!.name });
   * ```
   */
  get<F extends PodField = PodField>(uid: string, options?: FieldOptions<F>): Promise<Pick<Pod, F> | null>;
  /**
   * Watches the pods: one `added` each, `synced`, then every change, until the server ends the stream (a Fault too) or
   * the signal does, which leaves out events that wait. `timeoutMs` bounds the time until `synced` is received. While
   * more events wait than `buffer`, the server is stopped; the kubelet ends the stream of a slow watcher. Costs no token.
   *
   * There is no resourceVersion: an event may be older than `synced`, and after a dropped stream only a new listing tells
   * what was missed. `deleted` says that a pod has ended, which the kubelet may still list. `inventory` sees to all that.
   * @throws Fault `WatchDropped` where the kubelet ends the stream; else as `list` does.
   * @throws RangeError for a field that a pod does not have.
   * @example
   * ```ts
   * import assert from "node:assert/strict";
   * import { createPodsClient } from "./mod.ts";
   *
   * const client = createPodsClient({ socket: "/var/lib/kubelet/pods-api/pods-api.sock" });
   * const names: string[] = [];
   * for await (const event of client.watch({ fields: ["name"] })) {
   *   if (event.type === "synced") break;
   *   names.push(event.pod.name);
   * }
   * client.close();
   * assert.ok(names.length > 0);
   * ```
   */
  watch<F extends PodField = PodField>(
    options?: WatchOptions<F>,
  ): AsyncGenerator<WatchEvent<Pick<Pod, F>>, never, void>;
  /**
   * Follows the pods of the node: lists them, watches, and after whatever interrupts it lists again and tells the
   * difference. Nothing comes until they are known, and what is known stays while they cannot be read: a failure is never
   * an empty inventory. Ends when the signal does. Costs one token at the start, one after each interruption or removal
   * (several within a second count as one), and one every `relistMs`.
   * @throws Fault One that does not pass by itself, such as `PermissionDenied` or `WrongService`; `options.onFault` is told
   *   of those that do.
   * @throws RangeError for a field that a pod does not have.
   * @example
   * ```ts
   * import assert from "node:assert/strict";
   * import { createPodsClient } from "./mod.ts";
   *
   * const client = createPodsClient({
   *   socket: "/var/lib/kubelet/pods-api/pods-api.sock",
   *   budget: { perSecond: 2, burst: 4 },
   * });
   * const stop = new AbortController();
   * for await (const { pods, added, removed, resynced } of client.inventory(stop.signal)) {
   *   assert.deepEqual([added.length, removed.length, resynced], [pods.size, 0, true]);
   *   stop.abort();
   * }
   * client.close();
   * ```
   */
  inventory<F extends PodField = PodField>(
    signal?: AbortSignal,
    options?: InventoryOptions<F>,
  ): AsyncGenerator<InventoryChange<Pick<Pod, F | "uid">>, void, void>;
  /**
   * Waits until the kubelet serves its inventory, asking again after growing, jittered pauses. Costs one token a try; a try
   * asks for a pod that does not exist, the cheapest question there is. A kubelet of 1.36 counts as ready at once.
   * @param signal Ends the waiting; without one it lasts until the kubelet is ready.
   * @returns How many tries it took.
   * @throws Fault One that does not pass by itself, such as `PermissionDenied` or `WrongService`; the reason of the signal.
   * @example
   * ```ts
   * import assert from "node:assert/strict";
   * import { createPodsClient } from "./mod.ts";
   *
   * const client = createPodsClient({ socket: "/var/lib/kubelet/pods-api/pods-api.sock" });
   * const tries = await client.waitUntilReady(AbortSignal.timeout(30_000));
   * client.close();
   * assert.equal(tries, 1);
   * ```
   */
  waitUntilReady(signal?: AbortSignal, options?: WaitOptions): Promise<number>;
  /**
   * Connects and waits for the server's HTTP/2 settings, to know that somebody answers. Costs no token.
   * @throws Fault `SocketMissing`, `SocketDead`, `PermissionDenied`, `Timeout`, `NotGrpc` and their like.
   * @example
   * ```ts
   * import assert from "node:assert/strict";
   * import { createPodsClient, Fault } from "./mod.ts";
   *
   * const client = createPodsClient({ socket: "/nonexistent/pods-api.sock", timeoutMs: 500 });
   * await assert.rejects(client.connect(), (error) => error instanceof Fault && error.code === "SocketMissing");
   * client.close();
   * ```
   */
  connect(options?: CallOptions): Promise<void>;
  /** The version of the API that the server has answered in; undefined before it has. */
  readonly apiVersion: ApiVersion | undefined;
  /** Tokens of the rate limit that the calls so far have cost, at the most. */
  readonly tokensSpent: number;
  /** Bytes received so far. */
  readonly bytesReceived: number;
  /** Closes the connection for good: what is under way and what is called later fails with ConnectionLost. */
  close(): void;
}

/**
 * Creates a client; nothing is opened yet.
 * @param options Times are in ms, sizes in bytes, tokens are those of the kubelet's rate limit.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { createPodsClient, Fault } from "./mod.ts";
 *
 * const client = createPodsClient({ socket: "unix:///var/lib/kubelet/pods-api/pods-api.sock", timeoutMs: 2000 });
 * try {
 *   const { pods } = await client.list();
 *   assert.ok(pods.every(({ uid }) => uid !== ""));
 * } catch (error) {
 *   if (!(error instanceof Fault)) throw error;
 *   console.error(`${error.code}: ${error.message}`);
 * } finally {
 *   client.close();
 * }
 * assert.equal(client.tokensSpent, 1);
 * ```
 */
export function createPodsClient(options: PodsClientOptions): PodsClient {
  const connector = createConnector(socketPath(options.socket));
  const maxBytes = options.maxBytes ?? defaultMaxBytes;
  let tokensSpent = 0;
  let budget: Promise<Budget> | undefined;
  const versions: readonly ApiVersion[] =
    options.apiVersion === undefined || options.apiVersion === "auto" ? apiVersions : [options.apiVersion];
  let spoken: ApiVersion | undefined; // by the server
  let masksRefused = false;

  function limitOf({ timeoutMs = options.timeoutMs ?? 10_000, signal }: CallOptions): Limit {
    return { atMs: performance.now() + timeoutMs, timeoutMs, signal, phase: "connect" };
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

  /** What is chosen of the pods, if anything is. */
  async function maskOf({ fields }: FieldOptions): Promise<FieldMask | undefined> {
    return fields && (await import("./field_mask.ts")).createFieldMask(fields);
  }

  function requestOf(
    method: string,
    apiVersion: ApiVersion,
    body: Uint8Array,
    mask: FieldMask | undefined,
  ): GrpcRequest {
    return {
      path: `/${apiVersion}.Pods/${method}`,
      body,
      maxBytes,
      userAgent: `kubelet-probe/${version}`,
      metadata: mask && !masksRefused ? { "x-kubernetes-fieldmask": mask.header } : undefined,
    };
  }

  /** The versions to try, what the server has answered in before first. */
  function versionsToTry(): readonly ApiVersion[] {
    return spoken === undefined ? versions : [spoken, ...versions.filter((each) => each !== spoken)];
  }

  /** One rate-limited call, its token counted before it is known: a call that was sent and lost may have cost one. */
  async function spend(request: GrpcRequest, sink: MessageSink, limit: Limit): Promise<GrpcStatus> {
    if (options.budget !== undefined) {
      budget ??= import("./budget.ts").then(({ createBudget }) => createBudget(options.budget!));
      await (await budget).take(limit);
    }
    tokensSpent++;
    try {
      const timeoutMs = Math.max(1, limit.atMs - performance.now());
      const status = await connector.call({ ...request, timeoutMs }, sink, limit);
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
    const mask = callOptions.fields && (await maskOf(callOptions));
    const call = (apiVersion: ApiVersion) =>
      onceMore(async () => {
        const pods: Pod[] = [];
        const count = createObjectCount();
        const decoder = createListDecoder((bytes) => {
          const pod = decodePod(bytes, callOptions.depth, mask?.parts);
          count(pod);
          pods.push(mask === undefined ? pod : mask.pick(pod));
        });
        const status = await spend(requestOf(method, apiVersion, body, mask), decoder, limit);
        if (status.code === 0 && decoder.messages !== 1) throw new Fault("Undecodable", "The answer holds no message");
        return { status, pods, bytes: decoder.bytes };
      });
    let first: GrpcStatus | undefined;
    for (const apiVersion of versionsToTry()) {
      let answer = await call(apiVersion);
      if (answer.status.code === 3 && mask !== undefined && !masksRefused) {
        masksRefused = true;
        answer = await call(apiVersion);
      }
      const { status } = answer;
      if (status.code === 12) {
        first ??= status;
        continue;
      }
      spoken = apiVersion;
      if (status.code !== 0 && !(status.code === 5 && method === "GetPod")) throw statusFault(status);
      return answer;
    }
    throw statusFault(first!);
  }

  /** One stream of events in one version; how the server ends it is thrown as the status it gives. */
  async function* watchOnce(
    apiVersion: ApiVersion,
    mask: FieldMask | undefined,
    watchOptions: WatchOptions,
    limit: Limit,
  ): AsyncGenerator<WatchEvent, GrpcStatus, void> {
    const { signal, buffer = 1000 } = watchOptions;
    const waiting: WatchEvent[] = [];
    let isSynced = false;
    let stopped: { readonly reason: unknown } | undefined; // by the limit or the signal, whatever waits
    let failed: { readonly reason: unknown } | undefined; // after what has come before
    let ended: GrpcStatus | undefined; // by the server, after what it has sent
    let call: GrpcCall | undefined;
    let wake = () => {};
    // What comes before the sync is an answer like a listing's, and as bounded.
    const receivedBefore = connector.bytesReceived;
    const count = createObjectCount();
    const decoder = createEventDecoder((event) => {
      isSynced ||= event.type === "synced";
      if (!isSynced && event.type !== "synced") {
        count(event.pod);
        if (connector.bytesReceived - receivedBefore > maxBytes) {
          throw new Fault("AnswerTooLarge", `The watch is not synced after ${maxBytes} bytes`);
        }
      }
      waiting.push(event);
      if (waiting.length > buffer) call?.setPaused(true);
      wake();
    }, mask?.parts);
    const stop = (reason: unknown) => {
      stopped ??= { reason };
      wake();
    };
    const abort = () => stop(signal!.reason);

    const request = requestOf("WatchPods", apiVersion, new Uint8Array(0), mask);
    call = await connector.begin({ ...request, window: watchWindow }, decoder, limit);
    if (waiting.length > buffer) call.setPaused(true);
    const leftMs = Math.min(2 ** 31 - 1, Math.max(0, limit.atMs - performance.now()));
    const timer = setTimeout(() => {
      const what = `The watch is not synced within ${Math.round(limit.timeoutMs)} ms`;
      if (!isSynced) stop(new Fault("Timeout", what, { phase: "call" }));
    }, leftMs);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    call.status.then(
      (status) => {
        ended = status;
        wake();
      },
      (reason) => {
        failed = { reason };
        wake();
      },
    );
    try {
      for (;;) {
        if (isSynced) clearTimeout(timer);
        if (stopped !== undefined) throw stopped.reason;
        const event = waiting.shift();
        if (event !== undefined) {
          if (waiting.length === Math.floor(buffer / 2)) call.setPaused(false);
          yield mask === undefined || event.type === "synced" ? event : { ...event, pod: mask.pick(event.pod) };
        } else if (failed !== undefined) {
          throw failed.reason;
        } else if (ended !== undefined) {
          return ended;
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
  }

  const client: PodsClient = {
    async list(callOptions = {}) {
      const { pods, bytes } = await fetch("ListPods", new Uint8Array(0), callOptions);
      return { pods, bytes };
    },

    async get(uid, callOptions = {}) {
      const { status, pods } = await fetch("GetPod", encodeUid(uid), callOptions);
      if (status.code === 5) return null;
      if (pods.length !== 1) throw new Fault("Undecodable", `The answer to GetPod holds ${pods.length} pods`);
      return pods[0]!;
    },

    async *watch(watchOptions = {}) {
      const limit = limitOf(watchOptions);
      const mask = watchOptions.fields && (await maskOf(watchOptions));
      const toTry = [...versionsToTry()];
      let first: GrpcStatus | undefined;
      for (let apiVersion = toTry.shift(); apiVersion !== undefined; ) {
        const masked = !masksRefused;
        const events = watchOnce(apiVersion, mask, watchOptions, limit);
        let status: GrpcStatus | undefined;
        let begun = false;
        try {
          while (status === undefined) {
            const next = await events.next();
            if (next.done) status = next.value;
            else {
              begun = true;
              spoken = apiVersion;
              yield next.value;
            }
          }
        } finally {
          await events.return(undefined as never);
        }
        if (!begun && status.code === 3 && mask !== undefined && masked) {
          masksRefused = true;
        } else if (!begun && status.code === 12) {
          first ??= status;
          apiVersion = toTry.shift();
        } else {
          spoken = apiVersion;
          throw status.code === 0 ? endedFault() : statusFault(status);
        }
      }
      throw statusFault(first!);
    },

    async *inventory(signal, inventoryOptions = {}) {
      const { follow } = await import("./follow.ts");
      yield* follow(client, signal, inventoryOptions);
    },

    async waitUntilReady(signal, waitOptions = {}) {
      const { waitUntilReady } = await import("./wait.ts");
      return waitUntilReady(client, signal, waitOptions);
    },

    async connect(callOptions = {}) {
      const limit = limitOf(callOptions);
      await onceMore(() => connector.reach(limit));
    },

    get apiVersion() {
      return spoken;
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
  return client;
}

/** Counts the objects of one answer. @throws Fault AnswerTooLarge */
function createObjectCount(): (pod: Pod) => void {
  let objects = 0;
  return (pod) => {
    objects += 1 + pod.containers.length + pod.images.length;
    if (objects > maxObjects) {
      throw new Fault("AnswerTooLarge", `The answer holds over ${maxObjects} pods and containers`);
    }
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
