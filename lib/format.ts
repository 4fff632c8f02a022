// What is printed of a report, in every form there is. Formats show a verdict; they never decide one.

import { formatCheckmk } from "./format_checkmk.ts";
import { toJson } from "./format_json.ts";
import { formatPrometheus } from "./format_prometheus.ts";
import { type FormatOptions, formatText, type Output } from "./format_text.ts";
import { safeJson } from "./plain.ts";
import type { Report } from "./probe.ts";

export { toJson } from "./format_json.ts";
export { type FormatOptions, type Output, outputs } from "./format_text.ts";

/**
 * @returns The output, with a line end.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { checks, format, run } from "./mod.ts";
 *
 * const check = checks.find(({ name }) => name === "socket")!;
 * const socket = "/nonexistent/pods-api.sock";
 * const report = await run({ name: "socket", runs: [{ check, options: {} }], socket, nodeName: "n", timeoutMs: 1000 });
 * const text = format(report, "text", { profile: "npd", exitStatus: 1, verbose: false });
 * assert.match(text, /^SocketMissing: .*\n$/);
 * ```
 */
export function format(report: Report, output: Output, options: FormatOptions): string {
  switch (output) {
    case "text":
      return formatText(report, options);
    case "json":
      return `${safeJson(toJson(report, options))}\n`;
    case "prometheus":
      return formatPrometheus(report);
    case "checkmk":
      return formatCheckmk(report);
  }
}
