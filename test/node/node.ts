// A real kubelet on this machine, with cri-client's fake container runtime, in mount and network namespaces of its own:
// nothing of it is left when its process ends, and it ends with the process that started it, however that ends.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { createPodsClient, type PodsClient } from "../../lib/client.ts";
import { Fault } from "../../lib/fault.ts";
import type { Pod } from "../../lib/pod.ts";
import type { WatchEvent } from "../../lib/watch_event.ts";
import { baseEnvironment, cleanUp, execute, type ProbeJson, type ProbeOptions, probeJson } from "../support.ts";

const here = dirname(fileURLToPath(import.meta.url));

/** The folder with the built kubelet and fakecri, or undefined outside of `npm run test:node`. */
export const builtIn: string | undefined = process.env.KUBELET_NODE_BIN;
/** Such as `v1.37.2`. */
export const version: string = process.env.KUBELET_NODE_VERSION ?? "";
const minor = Number(version.split(".")[1] ?? 0);

/** For the options of a test: why it is not run here, or nothing. */
export const only: { readonly skip: string | false } = { skip: builtIn ? false : "of npm run test:node" };
/** The same for a fact that began with a version. */
export const since37: { readonly skip: string | false } = only.skip
  ? only
  : { skip: minor < 37 && "of 1.37 and later" };
/** The same for a fact that ended with it. */
export const before37: { readonly skip: string | false } = only.skip ? only : { skip: minor >= 37 && "of 1.36" };

/** The suffix of every static pod. */
export const nodeName = "node-k";

// One lone kubelet serves after 0.3 s; several of them on a machine that compiles, and one with 500 pods, need far more.
const boundMs = 120_000;

/** How a kubelet is started. */
export interface KubeletOptions {
  /** The gate PodsAPI; `default` names it nowhere. */
  readonly gate?: boolean | "default";
  readonly umask?: string;
  /** A port of its own loopback interface where its API server is looked for; nobody is there unless one is started. */
  readonly apiPort?: number;
  /** A folder, or `default` to name none: then it is /var/lib/kubelet among the kubelet's own mounts. */
  readonly rootDir?: string;
  readonly hostname?: string;
  /** Added to its configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** A node: the folders of a kubelet, its container runtime, and a kubelet that comes and goes. */
export interface Node {
  readonly folder: string;
  readonly root: string;
  readonly socket: string;
  readonly manifests: string;
  readonly config: string;
  /** Options of the probe that find this node. */
  readonly options: readonly string[];
  /** Starts a kubelet; settles at once. */
  launch(options?: KubeletOptions): void;
  /** Starts a kubelet and waits until somebody answers on its socket. */
  start(options?: KubeletOptions): Promise<void>;
  /** Ends the kubelet and waits until it is gone. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** The kubelet's process ID. */
  readonly pid: number;
  /** Whether the kubelet ended by itself, and what it said last. */
  readonly ended: string | undefined;
  /** Everything the kubelets of this node have logged. */
  log(): string;
  /** Writes a manifest as the field does it: somewhere else, then moved into place. */
  write(file: string, content: string | object): void;
  remove(file: string): void;
  /** An order to the container runtime. */
  runtime(order: string): Promise<number>;
  /** Starts an API server for the kubelet, or gives the one there is another state; see api-server.ts. */
  serveApi(port: number, state: ApiState): void;
  /** Ends the API server. */
  stopApi(): Promise<void>;
  /** Makes mounts that nobody else sees, each a source and a target, and gives what in front of a command runs it among them. */
  mounted(...mounts: readonly (readonly [from: string, to: string])[]): Promise<readonly string[]>;
  /** What the kubelet's own web server has at a path. */
  fetch(path: string): Promise<string>;
  /** The kubelet's own metrics whose names begin with `kubelet_pod_`. */
  metrics(): Promise<ReadonlyMap<string, number>>;
  /** A client that is closed with the test. */
  client(): PodsClient;
  /** The pods by name, as a listing that succeeds has them; asks again where the limiter or a start is in the way. */
  pods(): Promise<ReadonlyMap<string, Pod>>;
}

/** What an API server has to offer a kubelet. */
export interface ApiState {
  readonly nodes?: readonly object[];
  readonly pods?: readonly object[];
  /** What is at its path /manifest. */
  readonly manifest?: string;
}

const capacity = { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" };

/** The node as an API server knows it once it is registered. */
export const registered: readonly object[] = [
  {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: nodeName, uid: "node", resourceVersion: "1" },
    // Without, the kubelet finds no room for a pod.
    status: { capacity, allocatable: capacity },
  },
];

/** A manifest of one container. */
export function podManifest(name: string, more: Manifest = {}): object {
  const { namespace, metadata, container, spec } = more;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...metadata },
    spec: {
      terminationGracePeriodSeconds: 1,
      ...spec,
      containers: [{ name: "main", image: "registry.example/main:1", ...container }],
    },
  };
}

export interface Manifest {
  readonly namespace?: string;
  readonly metadata?: object;
  readonly container?: object;
  readonly spec?: object;
}

/** The four static pods of a control plane. */
export const controlPlane = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;

/** A node whose kubelet is not started yet. Everything of it is gone after the test. */
export async function createNode(t: TestContext, manifests: Readonly<Record<string, string | object>> = {}) {
  assert.ok(builtIn, "KUBELET_NODE_BIN names no folder");
  const folder = mkdtempSync(join(tmpdir(), "kn-"));
  const processes: Running[] = [];
  const clients: PodsClient[] = [];
  // The latest node goes first, since its kubelet may write into the folder of an earlier one until it is gone.
  cleanUp(t, async () => {
    for (const client of clients) client.close();
    await Promise.all(processes.map((one) => one.stop("SIGKILL")));
    rmSync(folder, { recursive: true, force: true });
  });
  const begin = (command: readonly string[], output: string) => {
    const one = startProcess(command, output);
    processes.push(one);
    return one;
  };
  for (const name of ["manifests", "root", "certs", "plugins", "podlogs", "sys", "staging"])
    mkdirSync(join(folder, name));
  const log = join(folder, "kubelet.log");
  const cri = join(folder, "cri.sock");
  const orders = join(folder, "orders.sock");
  const config = join(folder, "config.yaml");
  writeFileSync(config, JSON.stringify(configuration(folder, {})));
  let kubelet: Running | undefined;
  let api: Running | undefined;
  let root = join(folder, "root");

  const runtime = begin([join(builtIn, "fakecri"), cri, orders], join(folder, "fakecri.log"));
  await until("the container runtime", () => existsSync(cri) && existsSync(orders), runtime);

  const node: Node = {
    folder,
    get root() {
      return root;
    },
    get socket() {
      return join(root, "pods-api", "pods-api.sock");
    },
    manifests: join(folder, "manifests"),
    config,
    get options() {
      return ["--kubelet-root", root, "--node-name", nodeName, "--timeout", "20s"];
    },
    launch(options = {}) {
      assert.ok(kubelet === undefined || kubelet.ended !== undefined, "a kubelet is running");
      const isDefault = options.rootDir === "default";
      if (!isDefault) root = options.rootDir ?? root;
      writeFileSync(config, JSON.stringify(configuration(folder, options)));
      const args = [`--config=${config}`, `--cert-dir=${folder}/certs`, "--v=2"];
      if (!isDefault) args.push(`--root-dir=${root}`);
      args.push(`--hostname-override=${options.hostname ?? nodeName}`);
      if (options.apiPort !== undefined) {
        writeFileSync(join(folder, "kubeconfig"), JSON.stringify(kubeconfig(options.apiPort)));
        args.push(`--kubeconfig=${folder}/kubeconfig`);
      }
      // Every program here replaces the one before it, so the child's process ID is the kubelet's.
      const namespaces = ["unshare", "--mount", "--net", "--propagation", "private"];
      const script = ["sh", join(here, "isolate.sh"), join(folder, "sys"), options.umask ?? "022"];
      kubelet = begin([...namespaces, ...script, join(builtIn!, "kubelet"), ...args], log);
      if (isDefault) root = `/proc/${node.pid}/root/var/lib/kubelet`;
    },
    async start(options = {}) {
      const before = node.log().length;
      node.launch(options);
      await until(
        "the kubelet to serve",
        async () => {
          // A socket file of the last kubelet may still be there, but nobody answers on it.
          if (options.gate === false) return node.log().slice(before).includes("Started kubelet");
          const client = createPodsClient({ socket: node.socket, timeoutMs: 5000 });
          try {
            await client.connect();
            return true;
          } catch (error) {
            if (error instanceof Fault) return false;
            throw error;
          } finally {
            client.close();
          }
        },
        kubelet,
      );
    },
    async stop(signal = "SIGKILL") {
      await kubelet?.stop(signal);
    },
    get pid() {
      return kubelet!.child.pid!;
    },
    get ended() {
      return kubelet?.ended;
    },
    log: () => (existsSync(log) ? readFileSync(log, "utf8") : ""),
    write(file, content) {
      const text = typeof content === "string" ? content : JSON.stringify(content);
      const staged = join(folder, "staging", "file");
      writeFileSync(staged, text);
      renameSync(staged, join(folder, "manifests", file));
    },
    remove(file) {
      rmSync(join(folder, "manifests", file));
    },
    runtime: (order) => sendOrder(orders, order),
    serveApi(port, state) {
      const staged = join(folder, "staging", "state.json");
      const file = join(folder, "state.json");
      writeFileSync(staged, JSON.stringify(state));
      renameSync(staged, file);
      if (api !== undefined && api.ended === undefined) return;
      const namespace = ["nsenter", "--target", String(node.pid), "--net"];
      const server = [process.execPath, join(here, "api-server.ts"), String(port), file];
      api = begin([...namespace, ...server], join(folder, "api-server.log"));
    },
    async stopApi() {
      await api?.stop("SIGKILL");
    },
    async mounted(...mounts) {
      const commands = mounts.map((_, i) => `mount --bind "$${i * 2 + 1}" "$${i * 2 + 2}"`);
      const ready = join(folder, "staging", "mounted");
      const script = [...commands, `touch ${ready}`, "exec sleep infinity"].join(" && ");
      const namespace = ["unshare", "--mount", "--propagation", "private"];
      const holder = begin([...namespace, "sh", "-c", script, "sh", ...mounts.flat()], join(folder, "mounts.log"));
      await until("the mounts", () => existsSync(ready), holder);
      return ["nsenter", "--target", String(holder.child.pid), "--mount"];
    },
    fetch: (path) => fetchFrom(node.pid, path),
    metrics: async () => readMetrics(await node.fetch("/metrics")),
    client() {
      const client = createPodsClient({ socket: node.socket, timeoutMs: 20_000 });
      clients.push(client);
      return client;
    },
    async pods() {
      const client = createPodsClient({ socket: node.socket, timeoutMs: 20_000 });
      try {
        return await until("a listing", async () => {
          try {
            const { pods } = await client.list();
            return new Map(pods.map((pod) => [`${pod.namespace}/${pod.name}`, pod]));
          } catch (error) {
            if (error instanceof Fault && ["RateLimited", "Initializing"].includes(error.code)) return undefined;
            throw error;
          }
        });
      } finally {
        client.close();
      }
    },
  };
  for (const [file, content] of Object.entries(manifests)) node.write(file, content);
  return node;
}

function configuration(folder: string, { gate = true, config = {} }: KubeletOptions): object {
  const never = Object.fromEntries(
    ["memory.available", "nodefs.available", "imagefs.available", "nodefs.inodesFree", "imagefs.inodesFree"].map(
      (signal) => [signal, "0%"],
    ),
  );
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: "127.0.0.1",
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    containerRuntimeEndpoint: `unix://${folder}/cri.sock`,
    imageServiceEndpoint: `unix://${folder}/cri.sock`,
    staticPodPath: join(folder, "manifests"),
    // The default is 20 s; nothing else about the scan depends on it.
    fileCheckFrequency: "1s",
    httpCheckFrequency: "1s",
    syncFrequency: "2s",
    contentType: "application/json",
    cgroupDriver: "cgroupfs",
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    makeIPTablesUtilChains: false,
    volumePluginDir: join(folder, "plugins"),
    podLogsDir: join(folder, "podlogs"),
    resolvConf: "",
    registerNode: false,
    enableControllerAttachDetach: false,
    imageGCHighThresholdPercent: 100,
    evictionHard: never,
    ...(gate === "default" ? {} : { featureGates: { PodsAPI: gate } }),
    ...config,
  };
}

function kubeconfig(port: number): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
    users: [{ name: "u", user: {} }],
  };
}

/** A process that ends with this one. */
interface Running {
  readonly child: ChildProcess;
  /** Why it ended, once it has. */
  readonly ended: string | undefined;
  stop(signal: NodeJS.Signals): Promise<void>;
}

function startProcess(command: readonly string[], log: string): Running {
  const out = openSync(log, "a");
  // The kernel ends it when its parent is gone, even one that was killed.
  const child = spawn("setpriv", ["--pdeathsig", "KILL", ...command], {
    env: baseEnvironment,
    stdio: ["ignore", out, out],
  });
  closeSync(out);
  let ended: string | undefined;
  const gone = new Promise<void>((resolve) => {
    const end = (why: string) => {
      const last = readFileSync(log, "utf8").trimEnd().split("\n").slice(-15).join("\n");
      ended ??= `${command.find((word) => !/^(-|sh$|unshare$)/.test(word))} ended with ${why}; it said last:\n${last}`;
      resolve();
    };
    child.once("exit", (status, signal) => end(`${status ?? signal}`));
    child.once("error", (error) => end(error.message));
  });
  const stop = async (signal: NodeJS.Signals) => {
    if (ended === undefined) child.kill(signal);
    await gone;
  };
  return {
    child,
    get ended() {
      return ended;
    },
    stop,
  };
}

/** Asks again and again until there is an answer, unless the process that it depends on is gone. */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  process?: { readonly ended: string | undefined },
): Promise<T> {
  const bound = performance.now() + boundMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (process?.ended !== undefined) throw new Error(`waited for ${what}, but ${process.ended}`);
    if (performance.now() > bound) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits until the pods of these names, and no others, run and are ready. */
export async function settled(node: Node, names: readonly string[]): Promise<void> {
  await until(`${names.join(", ")} to be ready`, async () => {
    const pods = await node.pods();
    return pods.size === names.length && names.every((name) => pods.get(name)?.ready);
  });
}

function sendOrder(path: string, order: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write(`${order}\n`));
    let answer = "";
    socket.setEncoding("utf8").on("data", (text) => {
      answer += text;
      if (!answer.includes("\n")) return;
      socket.destroy();
      const [word, ...rest] = answer.trim().split(" ");
      if (word === "ok") resolve(Number(rest[0]));
      else reject(new Error(rest.join(" ")));
    });
    socket.once("error", reject);
  });
}

/** What the kubelet, which listens on a loopback interface of its own, serves at a path. */
async function fetchFrom(pid: number, path: string): Promise<string> {
  const script = `
    import { get } from "node:https";
    get({ host: "127.0.0.1", port: 10250, path: "${path}", rejectUnauthorized: false }, (answer) => answer.pipe(process.stdout));
  `;
  const node = [process.execPath, "--input-type=module", "--eval", script];
  const { status, stdout, stderr } = await execute("nsenter", ["--target", String(pid), "--net", ...node]);
  assert.equal(status, 0, stderr);
  return stdout;
}

function readMetrics(text: string): ReadonlyMap<string, number> {
  const metrics = new Map<string, number>();
  for (const line of text.split("\n")) {
    const parts = /^(kubelet_pod_(?:requests|watch)_\S+) (\S+)$/.exec(line);
    if (parts !== null) metrics.set(parts[1]!, Number(parts[2]));
  }
  return metrics;
}

export const profiles = ["nagios", "npd", "kube"] as const;

// The exit statuses as the README has them, written down a second time.
const exitTable = {
  nagios: { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 },
  npd: { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 2 },
  kube: { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 1 },
} as const;

type Status = keyof (typeof exitTable)["nagios"];

/** Whether a run ended as it has to in its profile: code, status and exit status. */
export function assertVerdict(run: ProbeJson, profile: (typeof profiles)[number], status: Status, code: string): void {
  const exitStatus = exitTable[profile][status];
  assert.deepEqual(
    { profile, code: run.code, status: run.status, exitStatus: run.exitStatus, ended: run.ended.status },
    { profile, code, status, exitStatus, ended: exitStatus },
    run.ended.stdout,
  );
}

/** How to ask. */
export interface AskOptions extends ProbeOptions {
  /** Codes that the probe may give while it does not give the awaited one. Any by default. */
  readonly meanwhile?: readonly string[];
  /** Whether the verdict may come and go, so that each profile is asked until it gives it. */
  readonly fleeting?: boolean;
  /** What the summary has to say. */
  readonly says?: RegExp;
}

/**
 * Asks the built binary until it gives the code, and then once in every profile: code, status and exit status.
 * @returns The run in the profile nagios, and the codes that came before.
 */
export async function expectVerdict(
  node: Node,
  args: readonly string[],
  status: Status,
  code: string,
  { meanwhile, says, fleeting = false, ...options }: AskOptions = {},
): Promise<{ readonly run: ProbeJson; readonly before: readonly string[] }> {
  const before = new Set<string>();
  let last = "";
  const readsManifests = ["static-pods", "manifests", "all"].includes(args[0]!) && !args.includes("--kubelet-config");
  const config = readsManifests ? ["--kubelet-config", node.config] : [];
  const ask = (profile: string) =>
    probeJson([args[0]!, ...node.options, ...config, ...args.slice(1), "--profile", profile], options);
  const matches = (run: ProbeJson) => run.code === code && run.status === status && (says?.test(run.summary) ?? true);
  try {
    await until(`${args.join(" ")} to be ${status} ${code}`, async () => {
      const found = await ask("nagios");
      last = `${found.status} ${found.code}: ${found.summary}`;
      if (matches(found)) return true;
      if (meanwhile !== undefined && !meanwhile.includes(found.code)) throw new Error("meanwhile that must not be");
      before.add(found.code);
      return false;
    });
  } catch (error) {
    throw new Error(`${(error as Error).message}; ${args.join(" ")} said last ${last}`);
  }
  let nagios: ProbeJson | undefined;
  for (const profile of profiles) {
    const found = fleeting
      ? await until(`${args.join(" ")} to be ${code} with ${profile}`, async () => {
          const candidate = await ask(profile);
          return matches(candidate) ? candidate : undefined;
        })
      : await ask(profile);
    nagios ??= found;
    assertVerdict(found, profile, status, code);
  }
  return { run: nagios!, before: [...before] };
}

/** A watch that is read until it ends. */
export interface Watch {
  readonly events: readonly WatchEvent[];
  /** Settles with what ended it. */
  readonly ended: Promise<Fault>;
  readonly isOver: boolean;
}

/** Opens a watch and waits until it is synced. */
export async function openWatch(node: Node): Promise<Watch> {
  const events: WatchEvent[] = [];
  let isOver = false;
  const client = node.client();
  const ended = (async () => {
    try {
      for await (const event of client.watch()) events.push(event);
    } catch (error) {
      isOver = true;
      if (error instanceof Fault) return error;
      throw error;
    }
    throw new Error("a watch ends with a fault only");
  })();
  await until("the watch to be synced", () => isOver || events.some(({ type }) => type === "synced"));
  return {
    events,
    ended,
    get isOver() {
      return isOver;
    },
  };
}
