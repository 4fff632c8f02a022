// One run of the program for one cell of the table: a fault, a runtime, a profile.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Profile } from "../../lib/exit.ts";
import { baseEnvironment, binary, root } from "../support.ts";
import type { Done, Order } from "./host.ts";
import { exits, type FaultRow, timeoutMs } from "./table.ts";

const bin = (name: string) => join(root, "node_modules", ".bin", name);
const main = join(root, "main.ts");

/** How the program is started, by runtime. */
export const runtimes: Readonly<Record<string, readonly [command: string, ...args: string[]]>> = {
  "kubelet-probe": [binary],
  bun: [bin("bun"), main],
  deno: [
    bin("deno"),
    "run",
    // No more than it needs: what a permission is missing for must not become a status of the runtime's own.
    ...["--no-prompt", "--no-check", "--quiet", "--allow-read", "--allow-write", "--allow-env", "--allow-sys"],
    "--allow-net",
    main,
  ],
  node: [bin("node"), "--disable-warning=ExperimentalWarning", main],
};

// Node takes the types off each file anew, which is most of what a run costs it.
const compileCache = mkdtempSync(join(tmpdir(), "kp-cache-"));
process.once("exit", () => rmSync(compileCache, { recursive: true, force: true }));

/** How a cell came out. */
export interface Outcome {
  /** What is wrong with it; nothing for a right one. */
  readonly wrong: string;
  /** From the start of the process to its end. */
  readonly wallMs: number;
}

/** Far beyond every deadline: what takes this long does not end by itself. */
const hangsMs = 90_000;

/** Runs the program on a fault and holds what it says and ends with against the table. */
export async function runCell(row: FaultRow, runtime: string, profile: Profile): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "kp-"));
  const path = join(folder, "pods-api.sock");
  const close = await serve(row, path);
  try {
    const words = [row.check, "--socket", path, "--profile", profile, ...row.args];
    const timeout = `${row.late ? timeoutMs.late : timeoutMs.other}ms`;
    const ended = await runProbe(runtime, [...words, "--timeout", timeout]);
    return { wrong: complaint(row, profile, ended), wallMs: ended.wallMs };
  } finally {
    await close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How long the program takes on this runtime where nothing is to be waited for. */
export async function startMs(runtime: string): Promise<number> {
  return (await runProbe(runtime, ["ready", "--socket", "/nonexistent"])).wallMs;
}

interface Run {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly wallMs: number;
  readonly hung: boolean;
}

function runProbe(runtime: string, words: readonly string[]): Promise<Run> {
  const [command, ...args] = runtimes[runtime]!;
  const start = performance.now();
  const child = spawn(command, [...args, ...words], {
    cwd: tmpdir(),
    env: { ...baseEnvironment, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", NODE_COMPILE_CACHE: compileCache },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr, wallMs, hung] = ["", "", 0, false];
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const bound = setTimeout(() => {
    hung = true;
    child.kill("SIGKILL");
  }, hangsMs);
  child.once("exit", () => {
    wallMs = performance.now() - start;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status, signal) => {
      clearTimeout(bound);
      resolve({ status, signal, stdout, stderr, wallMs, hung });
    });
  });
}

const lines: Readonly<Record<Profile, RegExp>> = {
  nagios: /^[A-Z-]+ (?<status>\w+) - (?<code>\w+)(:[^\n|]*)?( \|[^\n|]*)?\n$/,
  npd: /^(?<code>\w+)(: [ -~]+)?\n$/,
  kube: /^(?<code>\w+): [^\n]+\n$/,
};

function complaint(row: FaultRow, profile: Profile, run: Run): string {
  const shown = `; status ${run.status}, stdout ${JSON.stringify(run.stdout.slice(0, 300))}, stderr ${JSON.stringify(run.stderr.slice(0, 300))}`;
  if (run.hung) return `it did not end by itself${shown}`;
  if (run.signal !== null) return `it was ended by ${run.signal}${shown}`;
  const said = lines[profile].exec(run.stdout)?.groups;
  if (said === undefined) return `it said no line of the profile${shown}`;
  if (said.code !== row.code) return `code ${said.code}, not ${row.code}${shown}`;
  if (said.status !== undefined && said.status !== row.status) return `${said.status}, not ${row.status}${shown}`;
  if (run.status !== exits[profile][row.status])
    return `it should have ended with ${exits[profile][row.status]}${shown}`;
  return run.stderr === "" ? "" : `it wrote to its standard error${shown}`;
}

let worker: Worker | undefined;
let nextId = 0;
const waiting = new Map<number, (done: Done) => void>();

async function serve(row: FaultRow, path: string): Promise<() => Promise<void>> {
  const id = nextId++;
  await order({ id, path, ...(row.from === "simulator" ? { scenario: row.name } : { fault: row.name }) });
  return () => order({ id, path });
}

function order(message: Order): Promise<void> {
  worker ??= startWorker();
  return new Promise((resolve, reject) => {
    waiting.set(message.id, ({ error }) => (error === undefined ? resolve() : reject(new Error(error))));
    worker!.postMessage(message);
  });
}

function startWorker(): Worker {
  const started = new Worker(new URL("./host.ts", import.meta.url));
  started.on("message", (done: Done) => {
    const settle = waiting.get(done.id);
    waiting.delete(done.id);
    settle?.(done);
  });
  started.on("error", (error) => {
    for (const [id, settle] of waiting) settle({ id, error: String(error) });
    waiting.clear();
  });
  return started;
}

/** Ends the servers' thread. */
export async function endServers(): Promise<void> {
  await worker?.terminate();
  worker = undefined;
}
