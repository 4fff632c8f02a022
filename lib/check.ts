// What a check is: a plain object that asks one question and returns what it found. It never exits, never prints, and
// never turns a fault into a status: the runner does that.

import type * as v from "valibot";
import type { Listing, PodsClient } from "./client.ts";
import type { Code } from "./codes.ts";
import type { KubeletProcess } from "./kubelet_process.ts";
import type { Thresholds } from "./range.ts";
import type { SocketFile } from "./socket.ts";
import type { Status } from "./status.ts";

/** One thing that is wrong, or worth saying. */
export interface Finding {
  readonly code: Code;
  /** Where this one differs from the code's own status. */
  readonly status?: Status | undefined;
  /** What it is about: a pod as namespace/name, a file, a path; "" for the check as a whole. */
  readonly subject: string;
  /** One clause, without the subject. Text of the node may stand in it as it is: outputs make it plain. */
  readonly message: string;
  /** For InventoryUnavailable: the code of what was in the way. */
  readonly cause?: Code | undefined;
}

/** A number with its unit, for performance data. */
export interface Metric {
  /** Letters, digits and underscores. */
  readonly name: string;
  readonly value: number;
  /** As the Monitoring Plugins guidelines have them: "" for a count, s, B. */
  readonly unit: "" | "s" | "B";
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

/** What a check found. */
export interface Outcome {
  /** What is said where no finding is worse than OK. */
  readonly summary: string;
  readonly findings: readonly Finding[];
  /** The main metric first. */
  readonly metrics: readonly Metric[];
  /** Lines for `--verbose`. */
  readonly details?: readonly string[];
  /** For the JSON output; no environment, arguments or annotations of a pod. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** What checks share during one run: one connection, one listing. */
export interface Context {
  readonly client: PodsClient;
  readonly socketPath: string;
  readonly nodeName: string;
  /** Of `--kubelet-root`. */
  readonly kubeletRoot: string | undefined;
  /** The kubelet that runs here and that is asked, where its command line was looked for and found. */
  readonly kubelet: KubeletProcess | undefined;
  /** The time it is, ms since the epoch: a check may have waited for minutes. A clock that is set meanwhile plays no part. */
  readonly nowMs: number;
  /** What is left of the deadline, in ms. */
  remainingMs(): number;
  /**
   * The socket file as it is now: that of a kubelet which has restarted meanwhile, too.
   * @throws Fault
   */
  socket(): SocketFile;
  /**
   * The pods, listed once whoever asks, and the same fault for whoever asks where they cannot be; those that are not
   * static have their source and nothing else. Calls that the rate limit refuses are made again for as long as the
   * deadline allows, at most three times.
   * @param how With `again` the kubelet is asked once more, whatever came of it before.
   * @throws Fault
   */
  listing(how?: { readonly again?: boolean }): Promise<Listing>;
  /** What a check before this one listed; asks nobody. */
  listed(): Listing | undefined;
}

/** The entries of an option schema. */
export type OptionEntries = Readonly<Record<string, v.GenericSchema<string | undefined, unknown>>>;

/** The values of an option schema. */
export type OptionValues<T extends OptionEntries> = { readonly [K in keyof T]: v.InferOutput<T[K]> };

/** The metric a check is judged by where ranges are given. */
export interface CheckMetric<T = never> {
  readonly name: string;
  /** For help: its name and unit. */
  readonly description: string;
  /** Codes that have the status of the metric where ranges are given. */
  readonly codes: readonly Code[];
  /** The ranges where none are given. */
  readonly defaults?: (options: T) => Thresholds;
}

/** A check; `defineCheck` ties the options that `run` gets to the schema. */
export interface Check {
  /** As on the command line. */
  readonly name: string;
  /** The question it asks, for help. */
  readonly summary: string;
  /** The code where nothing is wrong. */
  readonly okCode: Code;
  /** What `--warning` and `--critical` speak of; a check without it takes neither. */
  readonly metric?: CheckMetric;
  readonly options: OptionEntries;
  /** Asks the kubelet nothing: where its socket is plays no part. */
  readonly offline?: boolean;
  /** Not run by `all` unless it is named. */
  readonly onRequest?: boolean;
  /** Whether it goes by the node's static pod manifests, and so by the node's name. */
  readonly readsManifests?: (options: never) => boolean;
  /** What is wrong with options that are each right, in one line; undefined where nothing is. */
  readonly misuse?: (options: never, timeoutMs: number) => string | undefined;
  run(context: Context, options: never): Promise<Outcome>;
}

/**
 * Declares a check.
 * @param check What it throws as a `Fault` becomes the code of its report; anything else `InternalError`.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineCheck, run } from "./mod.ts";
 *
 * const crowded = defineCheck({
 *   name: "crowded",
 *   summary: "are there over 110 pods",
 *   okCode: "Ready",
 *   options: {},
 *   async run(context) {
 *     const { pods } = await context.listing();
 *     const value = pods.length;
 *     return { summary: `${value} pods`, findings: [], metrics: [{ name: "pods", value, unit: "", min: 0 }] };
 *   },
 * });
 * const socket = "/var/lib/kubelet/pods-api/pods-api.sock";
 * const runs = [{ check: crowded, options: {} }];
 * const { status } = await run({ name: "crowded", runs, socket, nodeName: "node-1", timeoutMs: 2000 });
 * assert.equal(status, "OK");
 * ```
 */
export function defineCheck<T extends OptionEntries>(
  check: Omit<Check, "options" | "run" | "metric" | "readsManifests" | "misuse"> & {
    readonly options: T;
    readonly readsManifests?: (options: OptionValues<T>) => boolean;
    readonly misuse?: (options: OptionValues<T>, timeoutMs: number) => string | undefined;
    readonly metric?: CheckMetric<OptionValues<T>>;
    run(context: Context, options: OptionValues<T>): Promise<Outcome>;
  },
): Check {
  return check as Check;
}
