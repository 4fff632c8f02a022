import type { Code } from "../codes.ts";
import {
  answerStatus,
  answerWith,
  type ConnectionFault,
  close,
  dribble,
  goAway,
  hang,
  hangBody,
  hangCall,
  largeAnswer,
  lose,
  noWindow,
  type RawAnswer,
  reset,
  say,
  settingsStorm,
} from "./faults.ts";
import { errorCode, message } from "./frames.ts";
import { encodeGrpcMessage, grpcStatus } from "./grpc.ts";
import { type SimulatedPod, staticPod } from "./pods.ts";
import { kubeletText, type ServiceBehaviour } from "./service.ts";
import type { SocketFileOptions } from "./socket-file.ts";

/** One thing that can be wrong, or right, with a node's Pods API. */
export interface Scenario {
  readonly name: string;
  readonly summary: string;
  /** The code a probe meets with it. */
  readonly code: Code;
  /** Which check shows it. */
  readonly check: "socket" | "ready" | "static-pods" | "rate-limit" | "watch";
  /** Options the probe needs to show it. */
  readonly hint?: string;
  /** What a probe needs besides: to run as another user than root, or the simulator's manifests as files of a folder. */
  readonly needs?: "other-user" | "manifests";
}

/** How a scenario comes about; what is left out is as on a healthy node. */
export interface ScenarioSetup extends Scenario {
  readonly file?: SocketFileOptions;
  /** What is at the path in place of a socket that somebody serves. */
  readonly instead?: "nothing" | "regular-file" | "dead-socket";
  /** What becomes of a connection in place of service. */
  readonly connection?: ConnectionFault;
  /** Only the first connection meets that, later ones are served. */
  readonly once?: boolean;
  readonly service?: ServiceBehaviour;
  /** Changes a healthy node's pods. */
  readonly pods?: (healthy: readonly SimulatedPod[], node: string, now: number) => readonly SimulatedPod[];
  /** Pads each pod to this many bytes, and makes this many API pods. */
  readonly podBytes?: number;
  readonly apiPods?: number;
  /** Makes the raw answer to ListPods of a healthy node. */
  readonly rawList?: (list: () => Uint8Array) => ConnectionFault;
}

const minute = 60_000;
const never = Number.POSITIVE_INFINITY;
const text = (value: string) => new TextEncoder().encode(value);

/** The static pod that scenarios with one bad pod pick on; any other if a node has no such pod. */
function change(
  pods: readonly SimulatedPod[],
  edit: (pod: SimulatedPod) => SimulatedPod | undefined,
): readonly SimulatedPod[] {
  const fileSource = pods.filter((pod) => pod.source === "file");
  const target = fileSource.find((pod) => pod.container === "etcd") ?? fileSource[0];
  return pods.flatMap((pod) => (pod === target ? (edit(pod) ?? []) : pod));
}

const crashLoop = {
  ready: false,
  restarts: 7,
  waiting: { reason: "CrashLoopBackOff", message: "back-off 5m0s restarting failed container" },
} as const;

/** A node's data at its worst for an output: line breaks, separators, escapes, controls, quotes, and a lot of it. */
const hostile = `\r\n|'"\`$(id)<b>\t\u0000\u0007\u001b[31m\u001b]0;title\u0007\u009b2J\u202e\u2066\u200b\u2028\ufeff,=;\\ é \u{1f4a5}`;

const files: readonly ScenarioSetup[] = [
  {
    name: "missing",
    summary: "no socket at the path",
    code: "SocketMissing",
    check: "socket",
    instead: "nothing",
  },
  {
    name: "not-a-socket",
    summary: "a regular file at the path",
    code: "SocketNotASocket",
    check: "socket",
    instead: "regular-file",
  },
  {
    name: "dead",
    summary: "the socket file of a kubelet that has stopped",
    code: "SocketDead",
    check: "socket",
    instead: "dead-socket",
  },
  {
    name: "insecure",
    summary: "a socket that anybody may write to, mode 0777",
    code: "SocketInsecure",
    check: "socket",
    file: { mode: 0o777 },
  },
  {
    name: "private",
    summary: "a socket for its owner only, mode 0700",
    code: "SocketSecure",
    check: "socket",
    file: { mode: 0o700 },
  },
  {
    name: "permission",
    summary: "a socket that nobody but root may write to, mode 0000",
    code: "PermissionDenied",
    check: "ready",
    needs: "other-user",
    file: { mode: 0 },
  },
];

const states: readonly ScenarioSetup[] = [
  {
    name: "initializing",
    summary: "the kubelet's sources are not ready",
    code: "Initializing",
    check: "ready",
    service: { readyAfter: never },
  },
  {
    name: "initializing-old",
    summary: "the kubelet's sources have not been ready for 15 minutes",
    code: "Initializing",
    check: "ready",
    file: { ageSeconds: 15 * 60 },
    service: { readyAfter: never },
  },
  {
    name: "initializing-inventory",
    summary: "the kubelet was restarted with the API server down: static pods run, none can be listed",
    code: "InventoryUnavailable",
    check: "static-pods",
    file: { ageSeconds: 15 * 60 },
    service: { readyAfter: never },
  },
  {
    name: "late",
    summary: "the kubelet's sources are ready half a second after the start",
    code: "Ready",
    check: "ready",
    hint: "--wait",
    service: { readyAfter: 500 },
  },
  {
    name: "slow",
    summary: "each answer takes 300 ms",
    code: "Ready",
    check: "ready",
    service: { delay: 300 },
  },
  {
    name: "strict-authority",
    summary: "resets calls whose :authority is a path, as strict servers do",
    code: "Ready",
    check: "ready",
    service: { strictAuthority: true },
  },
  {
    name: "empty-1.36",
    summary: "a 1.36 kubelet right after its start: an empty list, and OK",
    code: "StaticPodMissing",
    check: "static-pods",
    pods: () => [],
  },
  {
    name: "rate-limited",
    summary: "other clients take every token",
    code: "RateLimited",
    check: "rate-limit",
    service: { limiter: { rate: 0, burst: 0 } },
  },
  {
    name: "rate-limited-some",
    summary: "other clients leave one token, and ten a second",
    code: "RateLimited",
    check: "rate-limit",
    service: { limiter: { rate: 10, burst: 1 } },
  },
  {
    name: "rate-shared",
    summary: "other clients leave half of the burst",
    code: "RateLimitHeadroom",
    check: "rate-limit",
    service: { limiter: { rate: 100, burst: 5 } },
  },
  {
    name: "wrong-service",
    summary: "the socket of another API of the kubelet",
    code: "WrongService",
    check: "ready",
    service: { status: { status: grpcStatus.UNIMPLEMENTED, message: kubeletText.unknownService } },
  },
  {
    name: "server-error",
    summary: "every call fails with INTERNAL",
    code: "ServerError",
    check: "ready",
    service: {
      status: { status: grpcStatus.INTERNAL, message: "simulated: 100% of calls fail\nwith a second line | é" },
    },
  },
];

const podStates: readonly ScenarioSetup[] = [
  {
    name: "healthy",
    summary: "a healthy node",
    code: "StaticPodsHealthy",
    check: "static-pods",
  },
  {
    name: "missing-pod",
    summary: "one static pod is not there",
    code: "StaticPodMissing",
    check: "static-pods",
    pods: (pods) => change(pods, () => undefined),
  },
  {
    name: "not-ready",
    summary: "one static pod is in a crash loop",
    code: "StaticPodNotReady",
    check: "static-pods",
    pods: (pods, _, now) =>
      change(pods, (pod) => ({
        ...pod,
        ...crashLoop,
        since: now - minute / 2,
        ended: { exitCode: 137, reason: "OOMKilled" },
      })),
  },
  {
    name: "not-ready-old",
    summary: "one static pod has been in a crash loop for an hour",
    code: "StaticPodNotReady",
    check: "static-pods",
    pods: (pods, _, now) =>
      change(pods, (pod) => ({
        ...pod,
        ...crashLoop,
        restarts: 16,
        since: now - 60 * minute,
        ended: { exitCode: 1, reason: "Error", message: "panic: no space left on device" },
      })),
  },
  {
    name: "pending",
    summary: "one static pod waits for its image",
    code: "StaticPodNotReady",
    check: "static-pods",
    pods: (pods, _, now) =>
      change(pods, (pod) => ({
        ...pod,
        phase: "Pending",
        ready: false,
        since: now - minute / 2,
        waiting: { reason: "ImagePullBackOff", message: `Back-off pulling image "${pod.image}"` },
      })),
  },
  {
    name: "failed-pod",
    summary: "one static pod has been evicted",
    code: "StaticPodFailed",
    check: "static-pods",
    pods: (pods) =>
      change(pods, (pod) => ({
        ...pod,
        phase: "Failed",
        ready: false,
        reason: "Evicted",
        message: "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 512Mi.",
        ended: { exitCode: 137, reason: "Error" },
      })),
  },
  {
    name: "unexpected-pod",
    summary: "a static pod that nobody expects",
    code: "StaticPodUnexpected",
    check: "static-pods",
    pods: (pods, node, now) => [...pods, staticPod("left-over", "registry.example/left-over:1.0.0", node, now)],
  },
  {
    name: "touched-manifest",
    summary: "one manifest was touched a month after its pod was taken up, which is no change for the kubelet",
    code: "StaticPodsHealthy",
    check: "static-pods",
    hint: "--manifests DIR",
    needs: "manifests",
    pods: (pods, _, now) => change(pods, (pod) => ({ ...pod, seen: now - 30 * 24 * 60 * minute })),
  },
  {
    name: "stale-image",
    summary: "one static pod runs another image than its manifest names",
    code: "StaticPodStale",
    check: "static-pods",
    hint: "--manifests DIR",
    needs: "manifests",
    pods: (pods) => change(pods, (pod) => ({ ...pod, image: `${pod.image}-old` })),
  },
  {
    name: "hostile-text",
    summary: "names, reasons and messages with line breaks, pipes, terminal escapes, bidi controls and a megabyte",
    code: "StaticPodFailed",
    check: "static-pods",
    pods: (pods, node, now) => [
      ...change(pods, (pod) => ({
        ...pod,
        phase: "Failed",
        ready: false,
        reason: `Evicted${hostile}`,
        message: `${hostile}${"long ".repeat(200_000)}`,
        ended: { exitCode: 1, reason: `Error${hostile}`, message: hostile },
      })),
      { ...staticPod(`evil${hostile}`, `registry.example/${hostile}`, node, now), namespace: `kube${hostile}` },
    ],
  },
  {
    name: "invalid-utf8",
    summary: "a crash loop whose termination message the kubelet cut inside a character",
    code: "StaticPodNotReady",
    check: "static-pods",
    pods: (pods, _, now) =>
      change(pods, (pod) => ({
        ...pod,
        ...crashLoop,
        since: now - minute / 2,
        ended: { exitCode: 1, reason: "Error", message: text("no space left on device: é").subarray(0, -1) },
      })),
  },
  {
    name: "large",
    summary: "a healthy node with a listing of 5 MB",
    code: "StaticPodsHealthy",
    check: "static-pods",
    apiPods: 500,
    podBytes: 10_000,
  },
  {
    name: "undecodable-pod",
    summary: "one pod of the listing is not protobuf",
    code: "Undecodable",
    check: "ready",
    pods: (pods) => change(pods, (pod) => ({ ...pod, bytes: Buffer.alloc(64, 0xff) })),
  },
];

const transport: readonly ScenarioSetup[] = [
  {
    name: "hang",
    summary: "accepts and never says anything",
    code: "Timeout",
    check: "ready",
    hint: "--timeout 1s",
    connection: hang,
  },
  {
    name: "hang-call",
    summary: "takes the request and never answers",
    code: "Timeout",
    check: "ready",
    hint: "--timeout 1s",
    connection: hangCall,
  },
  {
    name: "hang-body",
    summary: "answers with half a message, then with nothing",
    code: "Timeout",
    check: "ready",
    hint: "--timeout 1s",
    rawList: hangBody,
  },
  {
    name: "dribble",
    summary: "answers one byte every 10 ms",
    code: "Timeout",
    check: "ready",
    hint: "--timeout 1s",
    rawList: (list) => dribble(list, 10),
  },
  {
    name: "no-window",
    summary: "opens no window for the request",
    code: "Timeout",
    check: "ready",
    hint: "--timeout 1s",
    connection: noWindow,
  },
  {
    name: "settings-storm",
    summary: "sends HTTP/2 settings without an end",
    code: "Timeout",
    check: "ready",
    hint: "--timeout 1s",
    connection: settingsStorm,
  },
  {
    name: "http1",
    summary: "an HTTP/1.1 server",
    code: "NotGrpc",
    check: "ready",
    connection: say(text("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")),
  },
  {
    name: "garbage",
    summary: "answers with bytes of no protocol, and holds",
    code: "NotGrpc",
    check: "ready",
    connection: say(Buffer.alloc(4096, "-ERR unknown command 'PRI'\r\n\0\xff\xfe", "latin1"), { hold: true }),
  },
  {
    name: "tls",
    summary: "a TLS server, which answers with an alert",
    code: "NotGrpc",
    check: "ready",
    // An alert record of TLS 1.2: fatal (2), protocol_version (70).
    connection: say(Buffer.from([21, 3, 3, 0, 2, 2, 70])),
  },
  {
    name: "wrong-content-type",
    summary: "an HTTP/2 server with a page of HTML",
    code: "NotGrpc",
    check: "ready",
    service: { http: { status: 200, contentType: "text/html", body: "<!doctype html><title>It works</title>\n" } },
  },
  {
    name: "http-status",
    summary: "a proxy that answers with HTTP status 503",
    code: "NotGrpc",
    check: "ready",
    service: { http: { status: 503, contentType: "text/plain", body: "no healthy upstream" } },
  },
  {
    name: "http-status-415",
    summary: "an HTTP/2 server that answers with HTTP status 415",
    code: "NotGrpc",
    check: "ready",
    service: { http: { status: 415, contentType: "text/plain", body: "unsupported media type" } },
  },
  {
    name: "close",
    summary: "closes each connection at once",
    code: "ConnectionLost",
    check: "ready",
    connection: close,
  },
  {
    name: "lost",
    summary: "breaks each connection during the call",
    code: "ConnectionLost",
    check: "ready",
    connection: lose,
  },
  {
    name: "lost-once",
    summary: "breaks the first connection during the call, then serves",
    code: "Ready",
    check: "ready",
    connection: lose,
    once: true,
  },
  {
    name: "goaway",
    summary: "sends the first connection away, then serves",
    code: "Ready",
    check: "ready",
    connection: goAway(),
    once: true,
  },
  {
    name: "goaway-always",
    summary: "sends each connection away, as grpc-go does with too many pings",
    code: "ConnectionLost",
    check: "ready",
    connection: goAway(errorCode.enhanceYourCalm, "too_many_pings"),
  },
  {
    name: "reset",
    summary: "resets each call with INTERNAL_ERROR",
    code: "ConnectionLost",
    check: "ready",
    connection: reset(errorCode.internalError),
  },
  {
    name: "too-large",
    summary: "an answer of one byte over 64 MiB",
    code: "AnswerTooLarge",
    check: "ready",
    connection: largeAnswer(64 * 1024 * 1024 + 1),
  },
];

const answers: readonly ScenarioSetup[] = [
  ...raw("undecodable", "an answer that is not protobuf", "Undecodable", () => ({
    body: message(Buffer.alloc(64, 0xff)),
    trailers: { "grpc-status": "0" },
  })),
  ...raw("truncated", "an answer that ends in the middle, and OK", "Undecodable", (list) => ({
    body: message(list().subarray(0, -100), { length: list().length }),
    trailers: { "grpc-status": "0" },
  })),
  ...raw("compressed", "an answer said to be compressed, which nobody asked for", "Undecodable", (list) => ({
    body: message(list(), { compressed: true }),
    trailers: { "grpc-status": "0" },
  })),
  ...raw("short-prefix", "an answer longer than its prefix says", "Undecodable", (list) => ({
    body: message(list(), { length: list().length - 100 }),
    trailers: { "grpc-status": "0" },
  })),
  ...raw("no-message", "OK without a message", "Undecodable", () => ({ trailers: { "grpc-status": "0" } })),
  ...raw("two-messages", "two messages where one belongs", "Undecodable", (list) => ({
    body: Buffer.concat([message(list()), message(list())]),
    trailers: { "grpc-status": "0" },
  })),
  ...raw("no-status", "an answer that ends without a gRPC status", "NotGrpc", (list) => ({ body: message(list()) })),
  {
    name: "long-message",
    summary: "an error with a message of one megabyte",
    code: "ServerError",
    check: "ready",
    connection: answerStatus(() => ({
      "grpc-status": "13",
      "grpc-message": `${encodeGrpcMessage(hostile)}${"x".repeat(1_000_000)}`,
    })),
  },
  {
    name: "unknown-status",
    summary: "an error with a gRPC status that does not exist",
    code: "ServerError",
    check: "ready",
    connection: answerStatus(() => ({ "grpc-status": "99", "grpc-message": "from the future" })),
  },
];

function raw(
  name: string,
  summary: string,
  code: Code,
  make: (list: () => Uint8Array) => RawAnswer,
): readonly [ScenarioSetup] {
  // Made anew for each call: what a listing takes should not stay in memory.
  const rawList =
    (list: () => Uint8Array): ConnectionFault =>
    (socket, onCall) =>
      answerWith(make(list))(socket, onCall);
  return [{ name, summary, code, check: "ready", rawList }];
}

const dropped = { status: grpcStatus.RESOURCE_EXHAUSTED, message: kubeletText.watchDropped } as const;

const watches: readonly ScenarioSetup[] = [
  {
    name: "watch-churn",
    summary: "a watch with changes after its sync, some of them older than the sync",
    code: "WatchHealthy",
    check: "watch",
    service: { watch: { churn: true } },
  },
  {
    name: "watch-dropped",
    summary: "each watch is dropped after its sync, as a slow watcher is",
    code: "WatchDropped",
    check: "watch",
    service: { watch: { end: "after-sync", status: dropped } },
  },
  {
    name: "watch-dropped-once",
    summary: "the first watch is dropped after its sync, the next one holds",
    code: "WatchHealthy",
    check: "watch",
    service: { watch: { end: "after-sync", status: dropped, times: 1 } },
  },
  {
    name: "watch-dropped-early",
    summary: "each watch is dropped before its sync",
    code: "WatchDropped",
    check: "watch",
    service: { watch: { end: "before-sync", status: dropped } },
  },
  {
    name: "watch-ended",
    summary: "each watch ends after its sync as if all were well",
    code: "WatchDropped",
    check: "watch",
    service: { watch: { end: "after-sync" } },
  },
  {
    name: "watch-shutdown",
    summary: "each watch is dropped and its connection sent away, as by a kubelet that shuts down",
    code: "WatchDropped",
    check: "watch",
    service: { watch: { end: "after-sync", status: dropped, goaway: true } },
  },
  {
    name: "watch-diverged",
    summary: "a watch that leaves a pod out which each listing has",
    code: "WatchDiverged",
    check: "watch",
    service: { watch: { hides: true } },
  },
  {
    name: "watch-silent",
    summary: "a watch that never sends anything",
    code: "Timeout",
    check: "watch",
    hint: "--timeout 1s",
    service: { watch: { silent: true } },
  },
  {
    name: "watch-endless",
    summary: "a watch that adds pods without an end and never syncs",
    code: "Timeout",
    check: "watch",
    hint: "--timeout 1s",
    service: { watch: { endless: true } },
  },
];

/** Those that mean something of their own on this socket; any other is an error of the server. */
const grpcCodes: Readonly<Record<number, readonly [Code, message: string]>> = {
  [grpcStatus.DEADLINE_EXCEEDED]: ["Timeout", "context deadline exceeded"],
  [grpcStatus.RESOURCE_EXHAUSTED]: ["RateLimited", kubeletText.rateLimited],
  [grpcStatus.FAILED_PRECONDITION]: ["Initializing", kubeletText.initializing],
  [grpcStatus.UNIMPLEMENTED]: ["WrongService", kubeletText.unknownService],
};

/** Every gRPC error code, with a message and without. */
const statuses: readonly ScenarioSetup[] = Object.entries(grpcStatus).flatMap(([name, status]): ScenarioSetup[] => {
  if (status === grpcStatus.OK) return [];
  const [code, text] = grpcCodes[status] ?? ["ServerError", `simulated ${name}`];
  const summary = `every call fails with ${name}`;
  return [
    { name: `grpc-${status}`, summary, code, check: "ready", service: { status: { status, message: text } } },
    {
      name: `grpc-${status}-bare`,
      summary: `${summary} and no message`,
      // Only its message tells the limiter from whatever else may be exhausted.
      code: code === "RateLimited" ? "ServerError" : code,
      check: "ready",
      service: { status: { status, message: "" } },
    },
  ];
});

/** Every HTTP/2 error code of RFC 9113 section 7. */
const resets: readonly ScenarioSetup[] = Array.from({ length: 14 }, (_, code) => ({
  name: `reset-${code}`,
  summary: `resets each call with HTTP/2 error code ${code}`,
  code: "ConnectionLost",
  check: "ready",
  connection: reset(code),
}));

/** Every scenario with the way it comes about, in the order of the documentation. */
export const setups: readonly ScenarioSetup[] = [
  ...podStates,
  ...files,
  ...states,
  ...transport,
  ...answers,
  ...watches,
  ...statuses,
  ...resets,
];
