// What the tests of the checks share: a folder, a simulator in it, a context that is made up, and checks run by words as
// on a command line. No test looks at the machine it runs on.

import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArguments } from "../../lib/arguments.ts";
import type { Check, Context, Finding, Outcome } from "../../lib/check.ts";
import { plan } from "../../lib/cli.ts";
import type { PodsClient } from "../../lib/client.ts";
import type { Pod } from "../../lib/pod.ts";
import { type Report, run } from "../../lib/probe.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../lib/simulator.ts";
import { checks } from "../../probes/list.ts";

/** Reason to skip a test that gives files to others, or false. */
export const needsRoot: false | string = process.geteuid?.() === 0 ? false : "needs root";

/** A folder that is gone afterwards. Its path is short: a socket's has to fit into 107 bytes. */
export async function inFolder<T>(use: (folder: string) => Promise<T> | T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "kp-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A simulator below a folder, as `<folder>/pods-api/pods-api.sock`. */
export function withSimulator<T>(
  scenario: string,
  use: (simulator: Simulator, folder: string) => Promise<T>,
  options: Partial<SimulatorOptions> = {},
): Promise<T> {
  return inFolder(async (folder) => {
    const socket = join(folder, "pods-api", "pods-api.sock");
    const simulator = await startSimulator({ socket, scenario, ...options });
    try {
      return await use(simulator, folder);
    } finally {
      await simulator.close();
    }
  });
}

/** Runs what a command line asks for, without asking the kubelet of this machine where things are. */
export async function runWords(words: readonly string[]): Promise<Report> {
  const owner = process.geteuid?.() ?? 0;
  const takesOwner = words[0] === "all" || words[0] === "socket";
  const planned = plan(checks, {
    name: "kubelet-probe",
    words: owner !== 0 && takesOwner ? [...words, "--owner", String(owner)] : words,
    environment: { NODE_NAME: "node-1" },
  });
  if (planned.kind !== "run") throw new Error(`not a run: ${words.join(" ")}`);
  return run(planned.run);
}

/** The check of a report, by name. */
export function reportOf(report: Report, name: string): Report["checks"][number] {
  const found = report.checks.find(({ check }) => check === name);
  if (found === undefined) throw new Error(`no check ${name}`);
  return found;
}

/** Status and code. */
export function verdict({ status, code }: { readonly status: string; readonly code: string }): string {
  return `${status} ${code}`;
}

/** Findings as `STATUS Code subject`. */
export function findingsOf({ findings }: Report["checks"][number]): string[] {
  return findings.map(({ status, code, subject }) => [status, code, subject].filter(Boolean).join(" "));
}

/** The value of a metric. */
export function metricOf({ metrics }: Pick<Outcome, "metrics">, name: string): number | undefined {
  return metrics.find((metric) => metric.name === name)?.value;
}

/** The one finding of a code. */
export function only(findings: readonly Finding[], code: string): Finding {
  const found = findings.filter((finding) => finding.code === code);
  if (found.length !== 1) throw new Error(`${found.length} of ${code} in ${JSON.stringify(findings)}`);
  return found[0]!;
}

/** Writes files below a folder that last changed so many seconds ago. Their ctime is now, whatever a test does. */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>, seconds = 0): string {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    const changed = Date.now() / 1000 - seconds;
    utimesSync(path, changed, changed);
  }
  return folder;
}

/** A manifest as a file has it. */
export function manifestText(name: string, image = "registry.example/main:1", more: object = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "kube-system", ...more },
    spec: { containers: [{ name: "main", image }] },
  });
}

/** A static pod that runs and is ready on node-1. */
export function pod(name: string, differs: Partial<Pod> = {}): Pod {
  return {
    namespace: "kube-system",
    name,
    uid: `uid-of-${name}`,
    source: "file",
    seenMs: hour,
    deletedMs: null,
    nodeName: "node-1",
    images: ["registry.example/main:1"],
    phase: "Running",
    reason: "",
    message: "",
    startMs: hour,
    ready: true,
    readySinceMs: hour,
    readyReason: "",
    containers: [],
    ...differs,
  };
}

const hour = 3_600_000;

/** What a fake context has in place of a kubelet. */
export interface FakeKubelet {
  readonly pods?: readonly Pod[];
  /** How long it has served, in ms. */
  readonly servedMs?: number;
  /** The time it is. */
  readonly nowMs?: number;
  readonly nodeName?: string;
  readonly client?: Partial<PodsClient>;
}

/** A context without a socket: an hour after everything that was written just now, so that it is old. */
export function fakeContext(kubelet: FakeKubelet = {}): Context {
  const nowMs = kubelet.nowMs ?? Date.now() + hour;
  const pods = kubelet.pods ?? [];
  return {
    client: (kubelet.client ?? {}) as PodsClient,
    socketPath: "/nonexistent/pods-api.sock",
    nodeName: kubelet.nodeName ?? "node-1",
    kubeletRoot: undefined,
    kubelet: undefined,
    nowMs,
    remainingMs: () => 10_000,
    socket: () => ({
      path: "/nonexistent/pods-api.sock",
      stats: {} as never,
      bornMs: nowMs - (kubelet.servedMs ?? hour),
    }),
    listing: async () => ({ pods, bytes: 0 }),
    listed: () => undefined,
  };
}

/** Runs one check with the options of these words. */
export function runCheck(check: Check, context: Context, ...words: readonly string[]): Promise<Outcome> {
  return check.run(context, parseArguments(check.options, words, {}).values as never);
}
