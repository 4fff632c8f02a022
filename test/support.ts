// What the suites that start the built binary share. Nothing here asserts a time: what is waited for is polled for, and
// the bounds only keep a broken program from holding up the suite.

import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { chmodSync, constants, copyFileSync, existsSync, lstatSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type Simulator, type SimulatorOptions, startSimulator } from "../lib/simulator.ts";
import { Pods } from "../proto/gen/pods_pb.js";

/** The project's root folder. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** The built probe. */
export const binary = process.env.KUBELET_PROBE_BINARY ?? join(root, "dist", "kubelet-probe");
/** The kubelet's own server, of test/kubelet. */
export const kubeletServer = process.env.KUBELET_SERVER ?? join(root, "dist", "kubelet-server");

if (!existsSync(binary)) throw new Error(`Cannot test ${binary}: it is not there; npm run build makes it`);

export const isRoot = process.geteuid?.() === 0;
/** Reasons to skip, or false. */
export const needs = {
  kubelet: existsSync(kubeletServer) ? false : "needs the kubelet fixture: npm run build:kubelet",
  root: isRoot ? false : "needs root",
  strace: hasTool("strace") ? false : "needs strace",
  /** To run a command as another user. */
  otherUser: !isRoot ? "needs root" : hasTool("setpriv") ? false : "needs setpriv (util-linux)",
} as const;

function hasTool(name: string): boolean {
  return spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** What every command starts with, and nothing of the environment the tests run in. */
export const baseEnvironment: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  // Who is not root owns the sockets of the tests.
  ...(isRoot ? {} : { KUBELET_PROBE_OWNER: String(process.geteuid?.()) }),
};

/** A uid that owns nothing. */
export const otherUid = 1000;
/** Before a command: runs it as that user, without any group of root. */
export const asOtherUser: readonly string[] = [
  "setpriv",
  `--reuid=${otherUid}`,
  `--regid=${otherUid}`,
  "--clear-groups",
];

const cleanups = new WeakMap<TestContext, (() => unknown)[]>();

/**
 * Does something once the test is over: what was set up last goes first, and one failure leaves nothing undone. The
 * runner's own hooks go in the order they came in, and end with the first that fails: a server that is left running then
 * keeps the whole file from ending.
 */
export function cleanUp(t: TestContext, work: () => unknown): void {
  const known = cleanups.get(t);
  if (known !== undefined) return void known.push(work);
  const works = [work];
  cleanups.set(t, works);
  t.after(async () => {
    const failures: unknown[] = [];
    for (const one of works.toReversed()) {
      try {
        await one();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join("; "));
  });
}

/** A folder that is gone after the test. Its path is short: a socket's has to fit into 107 bytes. */
export function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "kp-"));
  cleanUp(t, () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }));
  return path;
}

/** The binary at a path that other users can reach, wherever the repository is. */
export function binaryForAll(t: TestContext): string {
  const home = folder(t);
  chmodSync(home, 0o755);
  const copy = join(home, "kubelet-probe");
  copyFileSync(binary, copy, constants.COPYFILE_FICLONE);
  chmodSync(copy, 0o755);
  return copy;
}

/** How a command ended. */
export interface Ended {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd?: string;
  /** Added to the base environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** In ms, after which the command counts as hanging; far above what it may take. */
  readonly boundMs?: number;
}

/** Runs a command to its end. Fails for one that does not end by itself. */
export async function execute(
  command: string,
  args: readonly string[],
  { cwd, env = {}, boundMs = 60_000 }: CommandOptions = {},
): Promise<Ended> {
  const child = start(command, args, { cwd, env: { ...baseEnvironment, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout!.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr!.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      killGroup(child);
      reject(new Error(`${[command, ...args].join(" ")} did not end within ${boundMs} ms; stdout ${stdout}`));
    }, boundMs);
    child.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once("close", (status, signal) => {
      clearTimeout(timer);
      resolve({ status, signal, stdout, stderr });
    });
  });
}

export interface ProbeOptions extends CommandOptions {
  /** What is run in place of the built binary: itself among other mounts, say. */
  readonly command?: readonly string[];
}

/** Runs the built binary to its end. */
export function probe(args: readonly string[], options: ProbeOptions = {}): Promise<Ended> {
  const [program, ...first] = options.command ?? [binary];
  return execute(program!, [...first, ...args], options);
}

/** The JSON a run printed. */
export async function probeJson(args: readonly string[], options: ProbeOptions = {}): Promise<ProbeJson> {
  const ended = await probe([...args, "--output", "json"], options);
  try {
    const value = JSON.parse(ended.stdout);
    return { ...value, ended };
  } catch {
    throw new Error(`not JSON: status ${ended.status}, stdout ${ended.stdout}, stderr ${ended.stderr}`);
  }
}

/** The parts of the JSON output that the suites look at. */
export interface ProbeJson {
  readonly ended: Ended;
  readonly status: string;
  readonly code: string;
  readonly summary: string;
  readonly exitStatus: number;
  readonly tokensSpent: number;
  readonly checks: readonly {
    readonly check: string;
    readonly status: string;
    readonly code: string;
    readonly summary: string;
    readonly skipped?: { readonly cause: string };
    readonly findings: readonly {
      readonly code: string;
      readonly status: string;
      readonly subject: string;
      readonly message: string;
      readonly cause?: string;
    }[];
    readonly metrics: readonly { readonly name: string; readonly value: number }[];
    readonly data: Readonly<Record<string, unknown>>;
  }[];
}

/** The check of a run, by name. */
export function checkOf(run: ProbeJson, name: string): ProbeJson["checks"][number] {
  const found = run.checks.find(({ check }) => check === name);
  if (found === undefined) throw new Error(`no check ${name} in ${run.ended.stdout}`);
  return found;
}

/** The value of a metric of a check. */
export function metricOf(run: ProbeJson, check: string, name: string): number | undefined {
  return checkOf(run, check).metrics.find((metric) => metric.name === name)?.value;
}

// Its own process group, so that what it started ends with it.
function start(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, { detached: true, ...options });
  running.add(child);
  child.once("close", () => running.delete(child));
  return child;
}

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) killGroup(child);
});

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Ended meanwhile.
  }
}

/** Asks again and again until there is an answer. */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const bound = performance.now() + 30_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > bound) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether somebody accepts connections at the path. */
export function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** A server process that a test talks to. */
export interface Server {
  readonly socket: string;
  readonly pid: number;
  /** Everything it printed so far. */
  output(): string;
  /** Ends it, and waits for that. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a server and waits until it accepts connections; it ends with the test. */
export async function serve(
  t: TestContext,
  command: string,
  args: readonly string[],
  { socket, env = {} }: { readonly socket: string; readonly env?: Readonly<Record<string, string>> },
): Promise<Server> {
  // A server that comes up in place of another: that one may still accept connections.
  const before = identity(socket);
  const child = start(command, args, { env: { ...baseEnvironment, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let ended = false;
  const end = new Promise<void>((resolve) => {
    child.once("close", () => {
      ended = true;
      resolve();
    });
    child.once("error", (error) => {
      output += error.message;
      ended = true;
      resolve();
    });
  });
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  const stop = async (signal: NodeJS.Signals = "SIGKILL") => {
    if (!ended) child.kill(signal);
    await end;
  };
  cleanUp(t, () => stop());
  await until(`a server on ${socket}`, async () => {
    if (ended) throw new Error(`${command} ended: ${output}`);
    return identity(socket) !== before && (await accepts(socket));
  });
  return { socket, pid: child.pid!, output: () => output, stop };
}

/** Tells a socket file from the one before it; the number of a removed inode is soon used again. */
function identity(path: string): string {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${stats.ino} ${stats.mtimeMs}`;
}

/** Starts the kubelet's own server; a restart on the same socket is a second call. */
export function startKubelet(
  t: TestContext,
  args: readonly string[] = [],
  socket: string = join(folder(t), "pods-api", "pods-api.sock"),
): Promise<Server> {
  return serve(t, kubeletServer, ["--socket", socket, ...args], { socket });
}

/** Starts a simulator in this process; it ends with the test. */
export async function simulate(
  t: TestContext,
  scenario: string,
  options: Partial<SimulatorOptions> = {},
): Promise<Simulator> {
  const socket = options.socket ?? join(folder(t), "pods-api", "pods-api.sock");
  const simulator = await startSimulator({ ...options, socket, scenario });
  cleanUp(t, () => simulator.close());
  return simulator;
}

/** Sets the time of birth of a socket back: a kubelet that has served for long is told by nothing else. */
export function age(socket: string, seconds: number): void {
  const birth = Date.now() / 1000 - seconds;
  utimesSync(socket, birth, birth);
}

/** Connect's client of the Pods API, which shares nothing with the project's own. */
export function independentClient(t: TestContext, path: string): ReturnType<typeof createClient<typeof Pods>> {
  const open = new Set<Socket>();
  const sessionManager = new Http2SessionManager(
    "http://localhost",
    {},
    {
      createConnection: () => {
        const socket = connect(path);
        socket.on("error", () => {});
        open.add(socket);
        return socket;
      },
    },
  );
  cleanUp(t, () => {
    sessionManager.abort();
    for (const socket of open) socket.destroy();
  });
  return createClient(Pods, createGrpcTransport({ baseUrl: "http://localhost", sessionManager }));
}
