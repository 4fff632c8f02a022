import { isWorse, type Status } from "./status.ts";

/**
 * A range of the Monitoring Plugins guidelines ("Threshold and ranges"). A value alerts outside of it:
 *
 * | notation | alerts if the value is |
 * | --- | --- |
 * | `10` | under 0 or over 10 |
 * | `10:` | under 10 |
 * | `~:10` | over 10 |
 * | `10:20` | under 10 or over 20 |
 * | `@10:20` | from 10 to 20, both included |
 */
export interface Range {
  /** As it was written. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** Alerts inside and not outside. */
  readonly inside: boolean;
}

/** What `parseRange` accepts, for messages. */
export const rangeForm = "a range such as 10, 10:, ~:10, 10:20 or @10:20";

const bound = String.raw`-?\d{1,15}(?:\.\d{1,9})?`;
const form = new RegExp(`^(@)?(?:(~|${bound})?:)?(${bound})?$`);

/**
 * @returns The range, or undefined where the text is none, its start is over its end, or it is empty.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { parseRange } from "./mod.ts";
 *
 * assert.equal(parseRange("10:20")?.end, 20);
 * assert.equal(parseRange("20:10"), undefined);
 * ```
 */
export function parseRange(text: string): Range | undefined {
  const match = form.exec(text);
  if (match === null || text === "" || text === "@" || text === ":" || text === "@:") return undefined;
  const [, at, first, last] = match;
  const start = first === undefined ? 0 : first === "~" ? Number.NEGATIVE_INFINITY : Number(first);
  const end = last === undefined ? Number.POSITIVE_INFINITY : Number(last);
  if (start > end) return undefined;
  return { text, start, end, inside: at !== undefined };
}

/**
 * Whether a value raises an alert.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { alerts, parseRange } from "./mod.ts";
 *
 * assert.ok(alerts(parseRange("~:10")!, 11));
 * assert.ok(!alerts(parseRange("@10:20")!, 9));
 * ```
 */
export function alerts({ start, end, inside }: Range, value: number): boolean {
  return (value >= start && value <= end) === inside;
}

/** How many more of something a range of counts asks for: 0 where there are enough, or where fewer would do. */
export function shortfall(range: Range, count: number): number {
  const { start, end, inside } = range;
  if (!alerts(range, count)) return 0;
  if (!inside) return Math.max(0, Math.ceil(start) - count);
  // Below a range that begins above zero, fewer would do.
  return start > 0 || end === Number.POSITIVE_INFINITY ? 0 : Math.floor(end) + 1 - count;
}

/** What a range of counts asks for, behind "demanded are". */
export function demand({ text, inside }: Range): string {
  return inside ? `numbers outside of ${text.slice(1)}` : text;
}

/** The ranges of one metric; each may be missing. */
export interface Thresholds {
  readonly warning?: Range | undefined;
  readonly critical?: Range | undefined;
}

/**
 * The status a value has by its ranges.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { evaluate, parseRange } from "./mod.ts";
 *
 * const thresholds = { warning: parseRange("1:"), critical: parseRange("0:") };
 * assert.equal(evaluate(thresholds, 0.5), "WARNING");
 * ```
 */
export function evaluate({ warning, critical }: Thresholds, value: number): Status {
  let status: Status = "OK";
  if (warning !== undefined && alerts(warning, value)) status = "WARNING";
  if (critical !== undefined && alerts(critical, value) && isWorse("CRITICAL", status)) status = "CRITICAL";
  return status;
}
