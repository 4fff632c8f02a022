// The runner: runs checks over one connection and one listing within one deadline, turns a thrown fault into a finding
// with a code, gives every finding its status, and adds time and tokens.

import type { Check, Context, Finding, Metric, Outcome } from "./check.ts";
import { type ApiVersion, createPodsClient, type Listing } from "./client.ts";
import { type Code, codes } from "./codes.ts";
import { formatDuration } from "./duration.ts";
import { Fault } from "./fault.ts";
import type { KubeletProcess } from "./kubelet_process.ts";
import { evaluate, type Thresholds } from "./range.ts";
import { inspectSocket, socketPath } from "./socket.ts";
import { isWorse, type Status } from "./status.ts";

/** One check to run, and how. */
export interface CheckRun {
  readonly check: Check;
  /** The values of its option schema. */
  readonly options: object;
}

/** What a run needs to know. */
export interface RunOptions {
  readonly runs: readonly CheckRun[];
  /** The name of the run: a check's, or `all`. */
  readonly name: string;
  readonly socket: string;
  readonly nodeName: string;
  readonly kubeletRoot?: string | undefined;
  /** The kubelet that runs here and that is asked. */
  readonly kubelet?: KubeletProcess | undefined;
  /** For everything together, in ms. */
  readonly timeoutMs: number;
  readonly maxBytes?: number | undefined;
  readonly apiVersion?: ApiVersion | "auto" | undefined;
  /** Of the main metric; only for a run of one check. */
  readonly thresholds?: Thresholds | undefined;
  /** Replaces the status of every finding with the code. */
  readonly severity?: ReadonlyMap<Code, Status> | undefined;
}

/** A finding with its status. */
export interface JudgedFinding extends Finding {
  readonly status: Status;
}

/** A metric with the ranges it was judged by, as they were written. */
export interface JudgedMetric extends Metric {
  readonly warning?: string | undefined;
  readonly critical?: string | undefined;
}

/** What one check came to. */
export interface CheckReport {
  readonly check: string;
  readonly status: Status;
  readonly code: Code;
  readonly summary: string;
  /** Set for a check that could not run because of a fault that another one reports; it does not count. */
  readonly skipped?: { readonly cause: Code } | undefined;
  readonly findings: readonly JudgedFinding[];
  readonly metrics: readonly JudgedMetric[];
  readonly details: readonly string[];
  readonly data: Readonly<Record<string, unknown>>;
}

/** What a run came to. */
export interface Report {
  readonly name: string;
  readonly status: Status;
  readonly code: Code;
  readonly summary: string;
  readonly socket: string;
  readonly node: string;
  /** ms since the epoch. */
  readonly startedMs: number;
  readonly durationMs: number;
  readonly tokensSpent: number;
  readonly bytesReceived: number;
  /** The version of the API that the server has answered in; undefined where it has not. */
  readonly apiVersion?: ApiVersion | undefined;
  readonly checks: readonly CheckReport[];
}

/**
 * Runs checks one after the other. Never fails: what goes wrong is in the report.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { checks, run } from "./mod.ts";
 *
 * const ready = checks.find(({ name }) => name === "ready")!;
 * const report = await run({
 *   name: "ready",
 *   runs: [{ check: ready, options: { wait: false, initGrace: 300_000 } }],
 *   socket: "/var/lib/kubelet/pods-api/pods-api.sock",
 *   nodeName: "node-1",
 *   timeoutMs: 2000,
 * });
 * assert.deepEqual([report.status, report.code, report.tokensSpent], ["OK", "Ready", 1]);
 * ```
 */
export async function run(options: RunOptions): Promise<Report> {
  const startedMs = Date.now();
  const start = performance.now();
  const client = createPodsClient(options);
  const context = createContext(options, client, startedMs, start);
  const reported: Reported = { causes: new Set(), findings: new Map() };
  const checks: CheckReport[] = [];
  for (const { check, options: values } of options.runs) {
    checks.push(await runCheck(check, values, context, options, reported));
  }
  client.close();
  const counted = checks.filter(({ skipped }) => skipped === undefined);
  const worst = counted.reduce((a, b) => (isWorse(b.status, a.status) ? b : a), counted[0]!);
  return {
    name: options.name,
    status: worst.status,
    code: worst.code,
    summary: checks.length > 1 && worst.status === "OK" ? checks.map(({ code }) => code).join(", ") : worst.summary,
    socket: context.socketPath,
    node: options.nodeName,
    startedMs,
    durationMs: performance.now() - start,
    tokensSpent: client.tokensSpent,
    bytesReceived: client.bytesReceived,
    apiVersion: client.apiVersion,
    checks,
  };
}

function createContext(options: RunOptions, client: Context["client"], startedMs: number, start: number): Context {
  const path = socketPath(options.socket);
  let listed: Promise<Listing> | undefined;
  let listing: Listing | undefined;
  const context: Context = {
    client,
    socketPath: path,
    nodeName: options.nodeName,
    kubeletRoot: options.kubeletRoot,
    kubelet: options.kubelet,
    get nowMs() {
      return startedMs + performance.now() - start;
    },
    remainingMs: () => Math.max(0, start + options.timeoutMs - performance.now()),
    socket: () => inspectSocket(path),
    async listing({ again = false } = {}) {
      if (again) listed = undefined;
      listed ??= listPatiently(context);
      listing = await listed;
      return listing;
    },
    listed: () => listing,
  };
  return context;
}

// At 100 tokens a second, two are back after 20 ms: whoever is refused three times more meets steady use.
const refusedPausesMs = [25, 75, 150];

async function listPatiently({ client, remainingMs }: Context): Promise<Listing> {
  for (let refused = 0; ; refused++) {
    try {
      return await client.list({ timeoutMs: remainingMs(), depth: "static" });
    } catch (error) {
      const pauseMs = (refusedPausesMs[refused] ?? Number.POSITIVE_INFINITY) * (0.75 + Math.random() / 2);
      if (!(error instanceof Fault) || error.code !== "RateLimited" || pauseMs >= remainingMs() / 2) throw error;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

/** What the checks of a run have said so far: one cause is told once, under one code, by whoever met it first. */
interface Reported {
  /** Codes of what was thrown. */
  readonly causes: Set<Code>;
  /** The check that found it, by code and subject; what is about a check as a whole is its own. */
  readonly findings: Map<string, string>;
}

async function runCheck(
  check: Check,
  values: object,
  context: Context,
  options: RunOptions,
  reported: Reported,
): Promise<CheckReport> {
  let outcome: Outcome;
  let skipped: { readonly cause: Code } | undefined;
  let thrown: Finding | undefined;
  try {
    outcome = withoutRepeated(await check.run(context, values as never), check.name, reported);
  } catch (error) {
    const finding = findingOf(error, context, values);
    const cause = finding.cause ?? finding.code;
    if (reported.causes.has(cause)) skipped = { cause };
    reported.causes.add(cause);
    const shown: Finding =
      skipped === undefined
        ? finding
        : { code: "InventoryUnavailable", cause, subject: "", message: `not run because of ${cause}` };
    thrown = shown;
    outcome = { summary: shown.message, findings: [shown], metrics: [] };
  }
  const report = judge(check, values, outcome, options);
  // With `--severity` a fault may count as OK, but what the check asks was not answered all the same.
  return { ...report, skipped, code: thrown === undefined ? report.code : thrown.code };
}

function withoutRepeated(outcome: Outcome, check: string, { findings }: Reported): Outcome {
  const keyOf = ({ code, subject }: Finding) => (subject === "" ? "" : `${code} ${subject}`);
  const repeated = outcome.findings.filter((finding) => (findings.get(keyOf(finding)) ?? check) !== check);
  for (const finding of outcome.findings) {
    const key = keyOf(finding);
    if (key !== "" && !findings.has(key)) findings.set(key, check);
  }
  if (repeated.length === 0) return outcome;
  return {
    ...outcome,
    findings: outcome.findings.filter((finding) => !repeated.includes(finding)),
    details: [
      ...(outcome.details ?? []),
      ...repeated.map((finding) => `${finding.subject}: ${finding.code}, see ${findings.get(keyOf(finding))}`),
    ],
  };
}

/** What a thrown value is reported as; nothing but a Fault is thrown on purpose. */
function findingOf(error: unknown, context: Context, values: object): Finding {
  if (!(error instanceof Fault)) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { code: "InternalError", subject: "", message: text };
  }
  const { code, message, details } = error;
  if (code !== "Initializing") return { code, subject: "", message, cause: details.cause };
  // The socket's birth is the kubelet's start: there is no other clock for how long this lasts.
  const ageMs = ageOfSocket(context);
  if (ageMs === undefined) return { code, subject: "", message };
  const graceMs = (values as { readonly initGrace?: number }).initGrace ?? 300_000;
  return {
    code,
    status: ageMs > graceMs ? "CRITICAL" : undefined,
    subject: "",
    message: `${message}, ${formatDuration(ageMs)} after its start`,
  };
}

function ageOfSocket(context: Context): number | undefined {
  try {
    return Math.max(0, context.nowMs - context.socket().bornMs);
  } catch {
    // The next kubelet removes the file of the last one before it puts its own there.
    return undefined;
  }
}

function judge(check: Check, values: object, outcome: Outcome, options: RunOptions): CheckReport {
  const main = outcome.metrics.find(({ name }) => name === check.metric?.name);
  const given = options.thresholds ?? {};
  const isGiven = given.warning !== undefined || given.critical !== undefined;
  const thresholds = isGiven ? given : (check.metric?.defaults?.(values as never) ?? {});
  const ranged = main !== undefined && (thresholds.warning !== undefined || thresholds.critical !== undefined);
  const byRange = ranged ? evaluate(thresholds, main.value) : "OK";

  const findings: JudgedFinding[] = outcome.findings.map((finding) => {
    const own = ranged && check.metric?.codes.includes(finding.code) ? byRange : finding.status;
    return { ...finding, status: options.severity?.get(finding.code) ?? own ?? codes[finding.code].status };
  });
  if (byRange !== "OK" && !outcome.findings.some(({ code }) => check.metric?.codes.includes(code))) {
    const range = byRange === "CRITICAL" ? thresholds.critical : thresholds.warning;
    findings.push({
      code: "ThresholdExceeded",
      status: options.severity?.get("ThresholdExceeded") ?? byRange,
      subject: "",
      message: `${main!.name} ${round(main!.value)}${main!.unit} is ${range!.inside ? "inside" : "outside"} the range ${range!.text}`,
    });
  }

  const first = findings.reduce<JudgedFinding | undefined>(
    (a, b) => (a === undefined || isWorse(b.status, a.status) ? b : a),
    undefined,
  );
  const bad = first !== undefined && first.status !== "OK" ? first : undefined;
  return {
    check: check.name,
    status: bad?.status ?? "OK",
    code: bad?.code ?? check.okCode,
    summary: bad === undefined ? outcome.summary : summarize(bad, findings),
    findings,
    metrics: outcome.metrics.map((metric) =>
      metric === main && ranged
        ? { ...metric, warning: thresholds.warning?.text, critical: thresholds.critical?.text }
        : metric,
    ),
    details: outcome.details ?? [],
    data: outcome.data ?? {},
  };
}

/** The first of the worst findings, and how many more there are. */
function summarize(first: JudgedFinding, findings: readonly JudgedFinding[]): string {
  const more = findings.filter((finding) => finding !== first && finding.status !== "OK").length;
  const text = first.subject === "" ? first.message : `${first.subject}: ${first.message}`;
  return more === 0 ? text : `${text} (and ${more} more)`;
}

/** At most six digits behind the point. */
export function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
