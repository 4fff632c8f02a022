// The JSON output: the whole verdict. Its schema is in docs/json.md.

import type { FormatOptions } from "./format_text.ts";
import { plain } from "./plain.ts";
import { type Report, round } from "./probe.ts";
import { version } from "./version.ts";

// A container's message may have a megabyte, and is told in full by nobody.
const textLimit = 1000;

/** The JSON output's value; the schema is in docs/json.md. */
export function toJson(report: Report, { profile, exitStatus }: FormatOptions): Record<string, unknown> {
  return {
    schema: "kubelet-probe/v1",
    version,
    profile,
    status: report.status,
    code: report.code,
    summary: plain(report.summary, textLimit),
    exitStatus,
    socket: report.socket,
    node: report.node,
    startedAt: new Date(report.startedMs).toISOString(),
    durationMs: Math.round(report.durationMs),
    tokensSpent: report.tokensSpent,
    checks: report.checks.map((check) => ({
      check: check.check,
      status: check.status,
      code: check.code,
      summary: plain(check.summary, textLimit),
      ...(check.skipped === undefined ? {} : { skipped: check.skipped }),
      findings: check.findings.map(({ code, status, subject, message, cause }) => ({
        code,
        status,
        subject: plain(subject, textLimit),
        message: plain(message, textLimit),
        ...(cause === undefined ? {} : { cause }),
      })),
      metrics: check.metrics.map(({ name, value, unit, warning, critical, min, max }) => ({
        name,
        value: round(value),
        unit,
        ...(warning === undefined ? {} : { warning }),
        ...(critical === undefined ? {} : { critical }),
        ...(min === undefined ? {} : { min }),
        ...(max === undefined ? {} : { max }),
      })),
      data: check.data,
    })),
  };
}
