import type { Status } from "./status.ts";

/**
 * What a code stands for: the status it has unless a check or `--severity` says otherwise, and one clause that says it
 * without any number, in ASCII and at most 56 bytes, for consumers that compare a message with the one before it.
 */
export interface CodeEntry {
  readonly status: Status;
  readonly brief: string;
}

const table = {
  SocketSecure: { status: "OK", brief: "only its owner can use or replace the socket" },
  Ready: { status: "OK", brief: "the kubelet serves its local inventory" },
  StaticPodsHealthy: { status: "OK", brief: "every expected static pod runs and is ready" },
  RateLimitHeadroom: { status: "OK", brief: "a client gets its calls through" },
  WatchHealthy: { status: "OK", brief: "a watch opens, syncs and holds" },
  ManifestsClean: { status: "OK", brief: "the kubelet takes every file" },

  SocketMissing: { status: "CRITICAL", brief: "no Pods API socket at this path" },
  SocketNotASocket: { status: "CRITICAL", brief: "a file or folder stands where the socket should be" },
  SocketDead: { status: "CRITICAL", brief: "nobody listens on the socket file" },
  SocketInsecure: { status: "CRITICAL", brief: "others can use or replace the socket" },
  PermissionDenied: { status: "UNKNOWN", brief: "this user may not use the socket" },
  PathTooLong: { status: "UNKNOWN", brief: "the socket path is over the limit of the kernel" },
  Timeout: { status: "CRITICAL", brief: "no answer before the deadline" },
  NotGrpc: { status: "UNKNOWN", brief: "the server on the socket does not speak gRPC" },
  WrongService: { status: "UNKNOWN", brief: "the socket serves another API" },
  Initializing: { status: "WARNING", brief: "the kubelet does not serve its inventory yet" },
  RateLimited: { status: "WARNING", brief: "the rate limit of the Pods API refuses calls" },
  WatchDropped: { status: "WARNING", brief: "the kubelet ended the watch" },
  WatchDiverged: { status: "CRITICAL", brief: "a watch and a listing differ in what they must not" },
  AnswerTooLarge: { status: "UNKNOWN", brief: "the answer is over the limit of this client" },
  ConnectionLost: { status: "CRITICAL", brief: "the connection broke during the call" },
  Undecodable: { status: "UNKNOWN", brief: "the answer is not valid protobuf" },
  ServerError: { status: "CRITICAL", brief: "the kubelet answered with an error" },
  InventoryUnavailable: { status: "UNKNOWN", brief: "the pods could not be listed" },

  StaticPodMissing: { status: "CRITICAL", brief: "an expected static pod is not there" },
  StaticPodFailed: { status: "CRITICAL", brief: "a static pod has ended" },
  StaticPodNotReady: { status: "WARNING", brief: "a static pod is not ready" },
  StaticPodUnexpected: { status: "WARNING", brief: "a static pod that nothing explains" },
  StaticPodStale: { status: "WARNING", brief: "a static pod runs an older manifest" },

  ManifestRefused: { status: "CRITICAL", brief: "the kubelet refuses a pod manifest" },
  ManifestIgnored: { status: "WARNING", brief: "the kubelet passes over a file or a document" },
  ManifestShadowed: { status: "WARNING", brief: "two files give one pod" },
  ManifestsUnreadable: { status: "UNKNOWN", brief: "the manifests cannot be read" },

  ThresholdExceeded: { status: "WARNING", brief: "a metric is outside the range given for it" },
  BadUsage: { status: "UNKNOWN", brief: "the command line cannot be used" },
  InternalError: { status: "UNKNOWN", brief: "kubelet-probe itself failed" },
} as const satisfies Record<string, CodeEntry>;

/** A stable name for one outcome; never renamed, never reused. */
export type Code = keyof typeof table;

/** Every code, in the order of the documentation. */
export const codes: Readonly<Record<Code, CodeEntry>> = Object.freeze(table);

/**
 * Whether `text` is a code, spelled as in the table.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { codes, isCode } from "./mod.ts";
 *
 * const text: string = "Initializing";
 * assert.ok(isCode(text) && codes[text].status === "WARNING");
 * assert.ok(!isCode("initializing"));
 * ```
 */
export function isCode(text: string): text is Code {
  return Object.hasOwn(table, text);
}
