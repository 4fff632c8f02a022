import { createServer, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { PodSchema } from "../proto/gen/pod_pb.js";
import { ListPodsResponseSchema } from "../proto/gen/pods_pb.js";
import { Fault } from "./fault.ts";
import { apiPods, encodePod, manifest, podUid, type SimulatedPod, staticPods } from "./simulator/pods.ts";
import { type Scenario, type ScenarioSetup, setups } from "./simulator/scenarios.ts";
import { createService, type ServedPod, type ServiceCounts } from "./simulator/service.ts";
import { clearPath, createRegularFile, listen, type OwnedFile } from "./simulator/socket-file.ts";

export { canary } from "./simulator/pods.ts";
export type { Scenario } from "./simulator/scenarios.ts";

/** Every scenario, in the order of the documentation. */
export const scenarios: readonly Scenario[] = setups.map(({ name, summary, code, check, hint, needs }) =>
  Object.freeze({ name, summary, code, check, ...(hint && { hint }), ...(needs && { needs }) }),
);

export interface SimulatorOptions {
  /** Path of the socket; an old socket there is replaced, a missing folder is made. */
  readonly socket: string;
  /** Name of a scenario. */
  readonly scenario: string;
  /** The node's name, "node-1" unless given; lower-cased, as the kubelet does. */
  readonly node?: string;
  /** Static pods, 4 unless given: those of a kubeadm control plane, then `static-NNN`. */
  readonly staticPods?: number;
  /** Pods of the API server, 6 unless given or the scenario has it otherwise. */
  readonly pods?: number;
  /** Pads each pod to about this many bytes; without it a pod has about 1.3 KB. */
  readonly podBytes?: number;
}

/** A running simulator. */
export interface Simulator {
  readonly socket: string;
  /** `namespace/name` of the static pods that a healthy node has, also where the scenario takes one away. */
  readonly expect: readonly string[];
  /** The manifests of those pods: file name to content. */
  readonly manifests: Readonly<Record<string, string>>;
  /** Connections accepted so far. */
  readonly connections: number;
  /** Connections open now. */
  readonly openConnections: number;
  /** gRPC calls so far, of any method. */
  readonly calls: number;
  /** Calls that took a token of the rate limit. */
  readonly admitted: number;
  /** Calls that the rate limit refused. */
  readonly rejected: number;
  /** Ends what is open and removes what the simulator put at the path. Never fails; a second call does nothing. */
  close(): Promise<void>;
}

/**
 * Serves the Pods API of a node in the given state.
 *
 * @throws Fault BadUsage for an unknown scenario or a path that cannot be served on
 */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const setup = findSetup(options.scenario);
  const { socket } = options;
  const node = (options.node ?? "node-1").trim().toLowerCase();
  const now = Date.now();
  const healthy = staticPods(options.staticPods ?? 4, node, now);
  const all = [...healthy, ...apiPods(options.pods ?? setup.apiPods ?? 6, now)];
  const padding = options.podBytes ?? setup.podBytes ?? 0;
  const served = (setup.pods?.(all, node, now) ?? all).map((pod) => serve(pod, node, padding));

  const counts: ServiceCounts = { calls: 0, admitted: 0, rejected: 0 };
  const service = createService(served, setup.service ?? {}, counts);
  const fault = setup.rawList?.(() => encodeList(served)) ?? setup.connection;
  const open = new Set<Socket>();
  let connections = 0;

  function accept(connection: Socket): void {
    connections += 1;
    open.add(connection);
    connection.on("close", () => open.delete(connection));
    // A client may go at any time; a socket's error without a listener would end the process.
    connection.on("error", () => {});
    if (fault === undefined || (setup.once && connections > 1)) service.serve(connection);
    else fault(connection, countCall);
  }

  function countCall(): void {
    counts.calls += 1;
  }

  clearPath(socket);
  const server = createServer(accept);
  const file = await place();

  async function place(): Promise<OwnedFile | undefined> {
    if (setup.instead === "nothing") return undefined;
    if (setup.instead === "regular-file") return createRegularFile(socket);
    const listening = await listen(server, socket, setup.file);
    if (setup.instead === "dead-socket") await stop();
    return listening;
  }

  function stop(): Promise<void> {
    return new Promise((resolve) => {
      if (!server.listening) return resolve();
      server.close(() => resolve());
      service.close();
      for (const connection of open) connection.destroy();
    });
  }

  return {
    socket,
    expect: healthy.map((pod) => `${pod.namespace}/${pod.name}`),
    manifests: Object.fromEntries(healthy.map((pod) => [`${pod.container}.yaml`, manifest(pod, node)])),
    get connections() {
      return connections;
    },
    get openConnections() {
      return open.size;
    },
    get calls() {
      return counts.calls;
    },
    get admitted() {
      return counts.admitted;
    },
    get rejected() {
      return counts.rejected;
    },
    async close() {
      file?.remove();
      await stop();
    },
  };
}

function findSetup(name: string): ScenarioSetup {
  const setup = setups.find((candidate) => candidate.name === name);
  if (setup !== undefined) return setup;
  const accepted = setups.map((candidate) => candidate.name).join(", ");
  throw new Fault("BadUsage", `Cannot simulate ${JSON.stringify(name)}: accepted are ${accepted}`);
}

function serve(pod: SimulatedPod, node: string, padding: number): ServedPod {
  const uid = podUid(pod);
  const served = { uid, bytes: encodePod(pod, node, padding) };
  if (pod.phase !== "Succeeded") return served;
  const metadata = { name: pod.name, namespace: pod.namespace, uid };
  return { ...served, deleted: toBinary(PodSchema, create(PodSchema, { metadata })) };
}

function encodeList(pods: readonly ServedPod[]): Uint8Array {
  return toBinary(ListPodsResponseSchema, create(ListPodsResponseSchema, { pods: pods.map((pod) => pod.bytes) }));
}
