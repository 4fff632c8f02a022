/**
 * The library of kubelet-probe: a client of the kubelet's Pods API on this node, and the checks that the binary runs.
 *
 * Importing it has no side effect. It runs on Node 22.18 and later, Deno and Bun, on Linux.
 *
 * @example List the pods of this node.
 * ```ts
 * import { createPodsClient, Fault } from "./mod.ts";
 *
 * const client = createPodsClient({ socket: "/var/lib/kubelet/pods-api/pods-api.sock", timeoutMs: 2000 });
 * try {
 *   const { pods } = await client.list();
 *   for (const pod of pods) console.log(`${pod.namespace}/${pod.name} ${pod.phase}`);
 * } catch (error) {
 *   // A failure is never an empty list: `Initializing` and `RateLimited` pass, the rest needs somebody.
 *   if (error instanceof Fault) console.error(error.code, error.message);
 * } finally {
 *   client.close();
 * }
 * ```
 * @module
 */

export type { BackoffOptions } from "./lib/backoff.ts";
export type { BudgetOptions } from "./lib/budget.ts";
export type { Check, CheckMetric, Context, Finding, Metric, Outcome } from "./lib/check.ts";
export { defineCheck } from "./lib/check.ts";
export type {
  ApiVersion,
  CallOptions,
  FieldOptions,
  Listing,
  ListOptions,
  PodsClient,
  PodsClientOptions,
  WatchOptions,
} from "./lib/client.ts";
export { apiVersions, createPodsClient, defaultMaxBytes } from "./lib/client.ts";
export type { Code, CodeEntry } from "./lib/codes.ts";
export { codes, isCode } from "./lib/codes.ts";
export type { ExitRules, ProbePurpose, Profile } from "./lib/exit.ts";
export { exitStatus, profiles } from "./lib/exit.ts";
export type { FaultDetails } from "./lib/fault.ts";
export { Fault } from "./lib/fault.ts";
export type { InventoryChange, InventoryOptions } from "./lib/follow.ts";
export type { FormatOptions, Output } from "./lib/format.ts";
export { format, outputs } from "./lib/format.ts";
export type { Illness } from "./lib/health.ts";
export { illness } from "./lib/health.ts";
export type { ContainerState, ContainerStatus, Depth, Pod, PodField } from "./lib/pod.ts";
export { isStatic } from "./lib/pod.ts";
export type { CheckReport, CheckRun, JudgedFinding, JudgedMetric, Report, RunOptions } from "./lib/probe.ts";
export { run } from "./lib/probe.ts";
export type { Range, Thresholds } from "./lib/range.ts";
export { alerts, evaluate, parseRange } from "./lib/range.ts";
export type { Status } from "./lib/status.ts";
export { isWorse, statuses, worst } from "./lib/status.ts";
export type { WaitOptions } from "./lib/wait.ts";
export type { WatchEvent } from "./lib/watch_event.ts";
export { checks } from "./probes/list.ts";
