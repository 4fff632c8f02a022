// Every fault with the code and the status it has by the design, written down by hand: what the program says is held
// against this and never the other way round.

import type { Code } from "../../lib/codes.ts";
import type { Profile } from "../../lib/exit.ts";
import type { Status } from "../../lib/status.ts";

/** One fault, and what the probe makes of it. */
export interface FaultRow {
  /** Of the server: a scenario of the simulator, or one of servers.ts. */
  readonly name: string;
  readonly from: "simulator" | "servers.ts";
  /** What the server does. */
  readonly does: string;
  readonly code: Code;
  readonly status: Status;
  /** `ready` unless given. */
  readonly check: string;
  readonly args: readonly string[];
  /** It ends because of its deadline. */
  readonly late: boolean;
}

/** The design's table of exit statuses. */
export const exits: Readonly<Record<Profile, Readonly<Record<Status, number>>>> = {
  nagios: { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 },
  npd: { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 2 },
  kube: { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 1 },
};

/** The deadline of a row that is to meet it, and of one that is not, in ms. */
export const timeoutMs = { late: 300, other: 30_000 } as const;

type Entry = readonly [name: string, does: string];
type Options = Partial<Pick<FaultRow, "check" | "args" | "late">>;

function rows(from: FaultRow["from"], code: Code, status: Status, options: Options, entries: readonly Entry[]) {
  return entries.map(([name, does]): FaultRow => {
    const late = options.late ?? false;
    return { name, from, does, code, status, check: options.check ?? "ready", args: options.args ?? [], late };
  });
}

const late = { late: true };
const watching = { check: "static-pods", args: ["--source", "watch", "--expect-count", "4:4"] };
const holding = { check: "watch", args: [] };

/** gRPC codes that mean something of their own on this socket; every other one is a ServerError, CRITICAL. */
const grpcCodes: Readonly<Record<number, readonly [Code, Status]>> = {
  4: ["Timeout", "CRITICAL"],
  8: ["RateLimited", "WARNING"],
  9: ["Initializing", "WARNING"],
  12: ["WrongService", "UNKNOWN"],
};

function grpcRows(): FaultRow[] {
  return Array.from({ length: 16 }, (_, at) => at + 1).flatMap((number) => {
    const [code, status] = grpcCodes[number] ?? (["ServerError", "CRITICAL"] as const);
    // Only its message tells the limiter from whatever else may be exhausted.
    const [bareCode, bareStatus] = number === 8 ? (["ServerError", "CRITICAL"] as const) : [code, status];
    return [
      ...rows("simulator", code, status, {}, [[`grpc-${number}`, `gRPC code ${number} with a message`]]),
      ...rows("simulator", bareCode, bareStatus, {}, [
        [`grpc-${number}-bare`, `gRPC code ${number} without a message`],
      ]),
    ];
  });
}

/** The table. */
export const faults: readonly FaultRow[] = [
  // Nobody is there.
  ...rows("simulator", "SocketMissing", "CRITICAL", {}, [["missing", "there is no socket"]]),
  ...rows("simulator", "SocketNotASocket", "CRITICAL", {}, [["not-a-socket", "a regular file is at the path"]]),
  ...rows("simulator", "SocketDead", "CRITICAL", {}, [["dead", "nobody listens, the file stayed"]]),

  // Somebody is there and says nothing, or not enough.
  ...rows("simulator", "Timeout", "CRITICAL", late, [
    ["hang", "accepts and never answers"],
    ["hang-call", "takes the request and never answers"],
    ["hang-body", "answers with headers and half a message, then with nothing"],
    ["dribble", "answers one byte every 10 ms, beyond the deadline"],
    ["no-window", "never opens a window for the request"],
  ]),
  ...rows("servers.ts", "Timeout", "CRITICAL", late, [
    ["hang-settings", "stops inside its first frame"],
    ["hang-headers", "answers with headers and stops"],
    ["hang-header-block", "stops inside a header block"],
    ["dribble-settings", "sends its first frame one byte every 60 ms"],
    ["dribble-http1", "sends two bytes of something, slowly"],
    ["interim-only", "an interim answer (103), then nothing"],
    ["goaway-hold", "GOAWAY without an error, then nothing of the answer it promised"],
  ]),

  // It is no gRPC server.
  ...rows("simulator", "NotGrpc", "UNKNOWN", {}, [
    ["http1", "HTTP/1.1"],
    ["garbage", "bytes of no protocol, held open"],
    ["tls", "a TLS alert"],
    ["wrong-content-type", "HTTP/2 with a page of HTML"],
    ["http-status", "HTTP/2 with status 503"],
    ["http-status-415", "HTTP/2 with status 415"],
    ["no-status", "an answer without a gRPC status"],
  ]),
  ...rows("servers.ts", "NotGrpc", "UNKNOWN", {}, [
    ["http1-endless", "HTTP/1.1 without an end, as fast as it is read"],
    ["garbage-endless", "bytes of no protocol without an end"],
    ["tls-hello", "a TLS hello, held open"],
    ["preface-echo", "an echo of what it is sent"],
    ["wrong-first-frame", "HTTP/2 that does not begin with SETTINGS"],
    ["huge-frame", "a frame of 16 MiB"],
    ["push-promise", "a push that was not allowed"],
    ["strange-stream", "a stream that nobody opened"],
    ["data-first", "a body before its headers"],
    ["zero-window-update", "a window update of nothing"],
    ["bad-hpack", "a header block that breaks HPACK"],
  ]),

  // The connection ends.
  ...rows("simulator", "ConnectionLost", "CRITICAL", {}, [
    ["close", "closes each connection at once"],
    ["lost", "breaks each connection during the call"],
    ["goaway-always", "GOAWAY during each call, with an error"],
    ...Array.from({ length: 14 }, (_, code): Entry => [`reset-${code}`, `RST_STREAM with code ${code}`]),
  ]),
  ...rows("servers.ts", "ConnectionLost", "CRITICAL", {}, [
    ["goaway-first", "GOAWAY before each call"],
    ["goaway-half", "GOAWAY with an error inside the answer"],
    ["half-closed", "closes after half a message"],
    ["headers-closed", "closes after the headers"],
    ["reset-255", "RST_STREAM with a code that does not exist"],
    ["reset-half", "RST_STREAM inside the answer"],
  ]),
  ...rows("simulator", "Ready", "OK", {}, [
    ["lost-once", "breaks the first connection during the call, then serves"],
    ["goaway", "GOAWAY during the first call, then serves"],
  ]),
  ...rows("servers.ts", "Ready", "OK", {}, [
    ["goaway-graceful", "GOAWAY without an error, and the answer after it"],
    ["restart-back", "is restarted during the call, and is back"],
  ]),
  ...rows("servers.ts", "SocketDead", "CRITICAL", {}, [
    ["restart-dead", "is restarted during the call, its file stayed"],
  ]),
  ...rows("servers.ts", "SocketMissing", "CRITICAL", {}, [["restart-gone", "ends during the call, its file too"]]),

  // The answer.
  ...rows("simulator", "Undecodable", "UNKNOWN", {}, [
    ["undecodable", "a message that is not protobuf"],
    ["undecodable-pod", "a pod that is not protobuf"],
    ["truncated", "half a message, and OK"],
    ["compressed", "a message said to be compressed"],
    ["short-prefix", "a length prefix that is too small"],
    ["no-message", "OK without a message"],
    ["two-messages", "two messages"],
  ]),
  ...rows("servers.ts", "Undecodable", "UNKNOWN", {}, [
    ["prefix-cut", "half a length prefix, and OK"],
    ["trailers-only-ok", "OK in the headers, and no message"],
    ["group-tag", "a field of a wire type that is gone"],
    ["endless-messages", "messages without an end"],
  ]),
  ...rows("servers.ts", "Ready", "OK", {}, [
    ["empty-listing", "a listing of no pods"],
    ["interim-then-answer", "an interim answer (103) before the answer"],
    ["unknown-frames", "frames of unknown types, PING and SETTINGS around the answer"],
    ["answer-16-mib", "an answer of 16 MiB"],
    ["answer-64-mib", "an answer of 64 MiB"],
  ]),
  ...rows("simulator", "AnswerTooLarge", "UNKNOWN", {}, [["too-large", "an answer of one byte over 64 MiB"]]),
  ...rows("servers.ts", "AnswerTooLarge", "UNKNOWN", {}, [
    ["prefix-4gib", "a length prefix of 4 GiB"],
    ["tiny-pods", "half a million pods of nothing"],
    ["many-fields", "a pod of half a million fields"],
  ]),

  // The kubelet refuses.
  ...rows("simulator", "RateLimited", "WARNING", {}, [["rate-limited", "the limiter refuses every call"]]),
  ...rows("simulator", "Initializing", "WARNING", {}, [["initializing", "is initializing"]]),
  ...rows("simulator", "Initializing", "CRITICAL", {}, [["initializing-old", "has been initializing for 15 minutes"]]),
  ...rows("simulator", "WrongService", "UNKNOWN", {}, [["wrong-service", "serves another API"]]),
  ...rows("simulator", "ServerError", "CRITICAL", {}, [
    ["server-error", "INTERNAL with a message of several lines, é and |"],
    ["long-message", "INTERNAL with a message of a megabyte"],
    ["unknown-status", "a gRPC code that does not exist"],
  ]),
  ...rows("servers.ts", "ServerError", "CRITICAL", {}, [
    ["message-utf8", "a message in raw UTF-8"],
    ["message-percent", "a message whose percent encoding is broken, with escapes"],
    ["message-1mb", "a message of a megabyte of percent encoding"],
    ["status-text", "a gRPC status that is no number"],
    ["status-twice", "two gRPC statuses"],
  ]),
  ...grpcRows(),

  // A watch.
  ...rows("simulator", "StaticPodsHealthy", "OK", watching, [
    ["watch-dropped", "drops each watch after its sync"],
    ["watch-ended", "ends each watch after its sync"],
    ["watch-shutdown", "drops each watch after its sync, with GOAWAY"],
  ]),
  ...rows("simulator", "InventoryUnavailable", "UNKNOWN", watching, [
    ["watch-dropped-early", "drops each watch before its sync"],
    ["lost", "breaks each watch"],
  ]),
  ...rows("simulator", "InventoryUnavailable", "UNKNOWN", { ...watching, late: true }, [
    ["watch-silent", "opens a watch and never sends an event"],
    ["watch-endless", "adds the same pods without an end, and never syncs"],
  ]),
  ...rows("servers.ts", "InventoryUnavailable", "UNKNOWN", watching, [
    ["watch-flood", "adds other pods without an end, as fast as they are read"],
    ["watch-flood-large", "adds other pods of a megabyte without an end"],
  ]),

  ...rows("simulator", "WatchHealthy", "OK", holding, [
    ["watch-dropped-once", "drops the first watch after its sync"],
    ["watch-churn", "changes without an end after its sync"],
  ]),
  ...rows("simulator", "WatchDropped", "WARNING", holding, [
    ["watch-dropped", "drops each watch after its sync"],
    ["watch-dropped-early", "drops each watch before its sync"],
    ["watch-ended", "ends each watch after its sync"],
    ["watch-shutdown", "drops each watch after its sync, with GOAWAY"],
  ]),
  ...rows("simulator", "ConnectionLost", "CRITICAL", holding, [["lost", "breaks each watch"]]),
  ...rows("simulator", "Timeout", "CRITICAL", { ...holding, late: true }, [
    ["watch-silent", "opens a watch and never sends an event"],
    ["watch-endless", "adds the same pods without an end, and never syncs"],
  ]),
  ...rows("servers.ts", "AnswerTooLarge", "UNKNOWN", holding, [
    ["watch-flood", "adds other pods without an end, as fast as they are read"],
    ["watch-flood-large", "adds other pods of a megabyte without an end"],
  ]),

  // It keeps the client busy.
  ...rows("simulator", "Timeout", "CRITICAL", late, [["settings-storm", "SETTINGS without an end, 50 every 5 ms"]]),
  ...rows("servers.ts", "Timeout", "CRITICAL", late, [
    ["settings-flood", "SETTINGS without an end, as fast as they are read"],
    ["settings-flood-first", "the same, from the first byte on"],
    ["ping-flood", "PING without an end"],
    ["empty-data-flood", "empty pieces of an answer without an end"],
    ["window-flood", "window updates without an end"],
    ["unknown-flood", "frames of an unknown type without an end"],
  ]),
  ...rows("servers.ts", "NotGrpc", "UNKNOWN", {}, [
    ["ping-flood-unread", "PING without an end, and reads no answer"],
    ["continuation-flood", "a header block without an end"],
    ["interim-flood", "interim answers without an end"],
    ["header-bomb", "12 KB of headers that decode to 48 MB"],
  ]),
];
