import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type ContainerState,
  ContainerStateRunningSchema,
  ContainerStateSchema,
  ContainerStateTerminatedSchema,
  ContainerStateWaitingSchema,
  type ContainerStatus,
  ContainerStatusSchema,
  PodSchema,
  type Time,
  TimeSchema,
} from "../../proto/gen/pod_pb.js";

/** Stands in every pod's environment, so that a test can prove that no output ever shows a pod's environment. */
export const canary = "CANARY-SECRET";

/** What a pod is to a probe; `encodePod` adds what a real one has besides. Dates are milliseconds since the epoch. */
export interface SimulatedPod {
  readonly namespace: string;
  readonly name: string;
  readonly source: "file" | "http" | "api";
  readonly container: string;
  readonly image: string;
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed";
  readonly ready: boolean;
  /** When the kubelet took it up, `kubernetes.io/config.seen`. */
  readonly seen: number;
  /** When its conditions last changed. */
  readonly since: number;
  /** Of the pod's status. */
  readonly reason?: string;
  readonly message?: string;
  readonly restarts?: number;
  readonly waiting?: { readonly reason: string; readonly message: string };
  /** How the container ended: its state in a pod that has ended, its last state in one that goes on. */
  readonly ended?: { readonly exitCode: number; readonly reason: string; readonly message?: string | Uint8Array };
  /** In place of the pod's bytes. */
  readonly bytes?: Uint8Array;
}

/** The control plane of a kubeadm node, in the order the simulator adds it. */
const controlPlane: readonly (readonly [name: string, image: string])[] = [
  ["kube-apiserver", "registry.k8s.io/kube-apiserver:v1.37.2"],
  ["etcd", "registry.k8s.io/etcd:3.6.6-0"],
  ["kube-scheduler", "registry.k8s.io/kube-scheduler:v1.37.2"],
  ["kube-controller-manager", "registry.k8s.io/kube-controller-manager:v1.37.2"],
];

/** A static pod as the kubelet names it: the manifest's name, a dash, the node's name in lower case. */
export function staticPod(name: string, image: string, node: string, now: number): SimulatedPod {
  return {
    namespace: "kube-system",
    name: `${name}-${node}`,
    source: "file",
    container: name,
    image,
    phase: "Running",
    ready: true,
    seen: now,
    since: now,
  };
}

/** The static pods of a healthy node. */
export function staticPods(count: number, node: string, now: number): SimulatedPod[] {
  return Array.from({ length: count }, (_, index) => {
    const [name, image] = controlPlane[index] ?? [
      `static-${String(index).padStart(3, "0")}`,
      "registry.example/static:1.0.0",
    ];
    return staticPod(name, image, node, now);
  });
}

/** Pods of the API server; every sixth has ended, as that of a job does, which is nobody's fault. */
export function apiPods(count: number, now: number): SimulatedPod[] {
  return Array.from({ length: count }, (_, index) => {
    const ended = index % 6 === 5;
    return {
      namespace: "default",
      name: `app-${String(index).padStart(4, "0")}`,
      source: "api",
      container: "app",
      image: "registry.example/app:1.0.0",
      phase: ended ? "Succeeded" : "Running",
      ready: !ended,
      seen: now,
      since: now,
      ...(ended ? { ended: { exitCode: 0, reason: "Completed" } } : {}),
    };
  });
}

/** A UID that is the same in every run: 32 hex digits for a static pod, a UUID for any other. */
export function podUid(pod: SimulatedPod): string {
  const hash = createHash("sha256").update(`${pod.namespace}/${pod.name}`).digest("hex");
  if (pod.source !== "api") return hash.slice(0, 32);
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-4${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/**
 * The bytes of a core/v1 Pod, about 1.3 KB as the kubelet's own test pods have.
 *
 * @param atLeast pads the pod with an annotation to about this many bytes
 */
export function encodePod(pod: SimulatedPod, node: string, atLeast = 0): Uint8Array {
  if (pod.bytes !== undefined) return pod.bytes;
  const bytes = encode(pod, node, 0);
  return bytes.length < atLeast ? encode(pod, node, atLeast - bytes.length) : bytes;
}

function encode(pod: SimulatedPod, node: string, padding: number): Uint8Array {
  const uid = podUid(pod);
  const since = time(pod.since);
  const isStatic = pod.source !== "api";
  const annotations: Record<string, string> = {
    "kubernetes.io/config.seen": new Date(pod.seen).toISOString().replace("Z", "000000Z"),
    "kubernetes.io/config.source": pod.source,
  };
  if (isStatic) annotations["kubernetes.io/config.hash"] = uid;
  if (padding > 0) annotations["example.com/pad"] = "x".repeat(padding);

  const message = create(PodSchema, {
    metadata: { name: pod.name, namespace: pod.namespace, uid, annotations, labels: labels(pod) },
    spec: { nodeName: node, containers: [{ name: pod.container, image: pod.image }] },
    status: {
      phase: pod.phase,
      reason: pod.reason ?? "",
      message: pod.message ?? "",
      startTime: since,
      conditions: conditions(pod, since),
      containerStatuses: [containerStatus(pod, since)],
    },
  });
  if (!isStatic) message.metadata!.creationTimestamp = since;

  // What a real pod has beyond our pod.proto goes in as unknown fields, numbered as in core/v1 generated.proto.
  message.spec!.containers[0]!.$unknown = [
    text(4, "--config=/etc/app/config.yaml"), // args
    text(4, "--v=2"),
    bytesField(7, nested(text(1, "API_TOKEN"), text(2, `${canary}-${pod.name}`))), // env, a value
    bytesField(7, nested(text(1, "POD_NAME"), bytesField(3, nested(bytesField(1, nested(text(2, "metadata.name"))))))),
    bytesField(8, nested(quantity("cpu", "100m"), quantity("memory", "64Mi"))), // resources
    bytesField(9, nested(text(1, "etc"), number(2, 1), text(3, "/etc/app"))), // volumeMounts
    text(13, "/dev/termination-log"),
    text(14, "IfNotPresent"),
    text(20, "File"),
  ];
  message.spec!.$unknown = [
    bytesField(1, nested(text(1, "etc"), bytesField(2, nested(bytesField(1, nested(text(1, "/etc/app"))))))), // volumes
    text(3, "Always"), // restartPolicy
    number(4, 30), // terminationGracePeriodSeconds
    text(6, "ClusterFirst"), // dnsPolicy
    text(19, "default-scheduler"),
    text(24, isStatic ? "system-node-critical" : ""), // priorityClassName
    number(11, isStatic ? 1 : 0), // hostNetwork
  ];
  message.status!.$unknown = [
    text(5, "192.0.2.10"), // hostIP
    text(6, "192.0.2.10"), // podIP
    text(9, "Burstable"), // qosClass
  ];

  return toBinary(PodSchema, message);
}

function containerStatus(pod: SimulatedPod, since: Time): ContainerStatus {
  const over = pod.phase === "Succeeded" || pod.phase === "Failed";
  const ended = pod.ended;
  const terminated =
    ended === undefined
      ? undefined
      : create(ContainerStateTerminatedSchema, {
          exitCode: ended.exitCode,
          reason: ended.reason,
          message: typeof ended.message === "string" ? ended.message : "",
          finishedAt: since,
        });
  if (terminated !== undefined && ended?.message instanceof Uint8Array) {
    // The kubelet cuts this text at a byte, so it need not be valid UTF-8, which the generated code would not write.
    terminated.$unknown = [bytesField(4, ended.message)];
  }
  const waiting = pod.waiting ?? (pod.phase === "Pending" ? { reason: "ContainerCreating", message: "" } : undefined);
  const state: ContainerState = create(ContainerStateSchema);
  if (over && terminated !== undefined) state.terminated = terminated;
  else if (waiting !== undefined) state.waiting = create(ContainerStateWaitingSchema, waiting);
  else state.running = create(ContainerStateRunningSchema, { startedAt: since });

  const status = create(ContainerStatusSchema, {
    name: pod.container,
    state,
    ready: pod.ready,
    restartCount: pod.restarts ?? 0,
    image: pod.image,
  });
  if (!over && terminated !== undefined) status.lastState = create(ContainerStateSchema, { terminated });
  if (pod.phase !== "Pending") {
    const digest = createHash("sha256").update(pod.image).digest("hex");
    status.$unknown = [text(7, `${pod.image.split(":")[0]}@sha256:${digest}`), text(8, `containerd://${digest}`)];
  }
  return status;
}

function conditions(pod: SimulatedPod, since: Time) {
  const started = pod.phase !== "Pending";
  const notReady = pod.ready
    ? {}
    : { reason: pod.phase === "Succeeded" ? "PodCompleted" : "ContainersNotReady", message: notReadyMessage(pod) };
  return [
    { type: "PodReadyToStartContainers", status: started ? "True" : "False", lastTransitionTime: since },
    { type: "Initialized", status: "True", lastTransitionTime: since },
    { type: "Ready", status: pod.ready ? "True" : "False", lastTransitionTime: since, ...notReady },
    { type: "ContainersReady", status: pod.ready ? "True" : "False", lastTransitionTime: since, ...notReady },
    { type: "PodScheduled", status: "True", lastTransitionTime: since },
  ];
}

/** As pkg/kubelet/status generate.go has it. */
function notReadyMessage(pod: SimulatedPod): string {
  return pod.phase === "Succeeded" ? "" : `containers with unready status: [${pod.container}]`;
}

function labels(pod: SimulatedPod): Record<string, string> {
  return pod.source === "api"
    ? { app: pod.name, "pod-template-hash": "6d4b75cb6d" }
    : { component: pod.container, tier: "control-plane" };
}

function time(milliseconds: number): Time {
  return create(TimeSchema, { seconds: BigInt(Math.floor(milliseconds / 1000)) });
}

interface UnknownField {
  readonly no: number;
  readonly wireType: WireType;
  readonly data: Uint8Array;
}

function text(no: number, value: string): UnknownField {
  return { no, wireType: WireType.LengthDelimited, data: new BinaryWriter().string(value).finish() };
}

function number(no: number, value: number): UnknownField {
  return { no, wireType: WireType.Varint, data: new BinaryWriter().uint32(value).finish() };
}

function bytesField(no: number, value: Uint8Array): UnknownField {
  return { no, wireType: WireType.LengthDelimited, data: new BinaryWriter().bytes(value).finish() };
}

function nested(...fields: readonly UnknownField[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of fields) writer.tag(field.no, field.wireType).raw(field.data);
  return writer.finish();
}

/** One entry of ResourceRequirements.requests, a map from string to Quantity. */
function quantity(name: string, value: string): UnknownField {
  return bytesField(2, nested(text(1, name), bytesField(2, nested(text(1, value)))));
}

/** The manifest file a static pod could come from: JSON, which is YAML too. */
export function manifest(pod: SimulatedPod, node: string): string {
  const name = pod.name.slice(0, -(node.length + 1));
  const spec = { containers: [{ name: pod.container, image: pod.image }] };
  return `${JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: pod.namespace }, spec }, null, 1)}\n`;
}
