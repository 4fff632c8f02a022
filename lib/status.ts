/** The four statuses of the Monitoring Plugins guidelines. */
export type Status = "OK" | "WARNING" | "UNKNOWN" | "CRITICAL";

/** From best to worst: a fault nobody could look into outweighs a warning, a proven fault outweighs both. */
export const statuses: readonly Status[] = Object.freeze(["OK", "WARNING", "UNKNOWN", "CRITICAL"]);

/**
 * Whether `a` is worse than `b`.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { isWorse } from "./mod.ts";
 *
 * assert.ok(isWorse("CRITICAL", "UNKNOWN"));
 * assert.ok(!isWorse("OK", "OK"));
 * ```
 */
export function isWorse(a: Status, b: Status): boolean {
  return statuses.indexOf(a) > statuses.indexOf(b);
}

/**
 * The worst of the given statuses; OK for none.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { worst } from "./mod.ts";
 *
 * assert.equal(worst(["OK", "UNKNOWN", "WARNING"]), "UNKNOWN");
 * assert.equal(worst([]), "OK");
 * ```
 */
export function worst(all: Iterable<Status>): Status {
  let result: Status = "OK";
  for (const status of all) if (isWorse(status, result)) result = status;
  return result;
}

/** Whether `text` is a status, spelled as here. */
export function isStatus(text: string): text is Status {
  return (statuses as readonly string[]).includes(text);
}
