// The only place where a status becomes a number.

import type { Code } from "./codes.ts";
import type { Status } from "./status.ts";

/** Whose rules the exit status follows. */
export type Profile = "nagios" | "npd" | "kube";

/** Every profile. */
export const profiles: readonly Profile[] = ["nagios", "npd", "kube"];

/** Which of a container's probes `kube` answers for. */
export type ProbePurpose = "startup" | "readiness" | "liveness";

/** What the exit status depends on besides the verdict. */
export interface ExitRules {
  readonly profile: Profile;
  /** Only with `kube`. */
  readonly purpose?: ProbePurpose | undefined;
  /** With `kube`: WARNING fails. */
  readonly strict?: boolean | undefined;
  /** With `npd`: WARNING is a problem. */
  readonly warningIsProblem?: boolean | undefined;
}

const table: Readonly<Record<Profile, Readonly<Record<Status | "usage", number>>>> = {
  nagios: { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3, usage: 3 },
  npd: { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 2, usage: 2 },
  kube: { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 1, usage: 1 },
};

// What a restart of the container can help with: its view of the node is stale.
const restartHelps: readonly Code[] = ["SocketDead", "SocketMissing", "SocketNotASocket", "Timeout"];

/**
 * The exit status of a verdict.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { exitStatus } from "./mod.ts";
 *
 * const verdict = { status: "WARNING", code: "Initializing" } as const;
 * assert.equal(exitStatus(verdict, { profile: "nagios" }), 1);
 * assert.equal(exitStatus(verdict, { profile: "kube", purpose: "readiness" }), 1);
 * assert.equal(exitStatus(verdict, { profile: "kube", purpose: "liveness" }), 0);
 * ```
 */
export function exitStatus(verdict: { readonly status: Status; readonly code: Code }, rules: ExitRules): number {
  const { status, code } = verdict;
  if (code === "BadUsage") return usageExit(rules.profile);
  if (rules.profile === "kube" && rules.purpose !== undefined) {
    return passes(rules.purpose, verdict, rules.strict === true) ? 0 : 1;
  }
  if (rules.profile === "kube" && rules.strict && status === "WARNING") return 1;
  if (rules.profile === "npd" && rules.warningIsProblem && status === "WARNING") return 1;
  return table[rules.profile][status];
}

function passes(
  purpose: ProbePurpose,
  { status, code }: { readonly status: Status; readonly code: Code },
  strict: boolean,
): boolean {
  if (purpose === "liveness") return !restartHelps.includes(code);
  if (code === "Ready") return true;
  // Ready, only slower than was asked for.
  if (code === "ThresholdExceeded") return status === "OK" || (status === "WARNING" && !strict);
  return purpose === "readiness" && code === "RateLimited";
}

/** The exit status for a command line that cannot be used. */
export function usageExit(profile: Profile): number {
  return table[profile].usage;
}

/** The exit status of `--help` and `--version`; `spelledOut` if the profile was asked for and is not the default. */
export function helpExit(profile: Profile, spelledOut: boolean): number {
  // The guidelines want UNKNOWN from a plugin that was asked for help.
  return profile === "nagios" && spelledOut ? table.nagios.UNKNOWN : 0;
}

/** How long a run may take by default, in ms. */
export function defaultTimeoutMs(profile: Profile): number {
  return { nagios: 10_000, npd: 4_000, kube: 900 }[profile];
}
