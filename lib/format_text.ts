// The one line, or with `--verbose` the lines, that a profile's consumer reads. Loaded by every run, so it holds no more than
// that: the other forms of output are loaded when they are asked for.

import { codes } from "./codes.ts";
import { formatDuration } from "./duration.ts";
import type { Profile } from "./exit.ts";
import { ascii, plain } from "./plain.ts";
import { type CheckReport, type JudgedMetric, type Report, round } from "./probe.ts";

/** The forms of output. */
export const outputs = ["text", "json", "prometheus", "checkmk"] as const;
/** One of them. */
export type Output = (typeof outputs)[number];

/** What the formats need to know besides the report. */
export interface FormatOptions {
  readonly profile: Profile;
  readonly exitStatus: number;
  readonly verbose: boolean;
  /** Further lines for `--verbose`: where the values came from. */
  readonly origins?: readonly string[] | undefined;
}

// Long enough for what matters, short enough for every transport: old NRPE cuts at 1024 bytes, all of it.
const lineLimit = 400;
const npdLimit = 80;

/** @returns What the profile's consumer reads, with a line end. */
export function formatText(report: Report, options: FormatOptions): string {
  switch (options.profile) {
    case "nagios":
      return nagiosText(report, options);
    case "npd":
      return `${npdLine(report)}\n`;
    case "kube":
      return `${plain(`${report.code}: ${report.summary}`, lineLimit)}\n`;
  }
}

function nagiosText(report: Report, { verbose, origins }: FormatOptions): string {
  const name = report.name.toUpperCase();
  const text = noPipe(plain(`${name} ${report.status} - ${report.code}: ${report.summary}`, lineLimit));
  const prefixed = report.name === "all";
  const perfdata = report.checks.flatMap((check) =>
    check.metrics.map((metric) => performanceData(check, metric, prefixed)),
  );
  const first = perfdata.length === 0 ? text : `${text} | ${perfdata.join(" ")}`;
  const lines = [first, ...(verbose ? longText(report, origins ?? []) : [])];
  return `${lines.join("\n")}\n`;
}

function longText(report: Report, origins: readonly string[]): string[] {
  const lines: string[] = [];
  for (const check of report.checks) {
    const skipped = check.skipped === undefined ? "" : ", skipped";
    const summary = check.skipped === undefined ? check.summary : check.findings[0]!.message;
    lines.push(`${check.check}: ${check.status}${skipped} ${check.code}: ${summary}`);
    if (check.skipped === undefined) {
      for (const { status, code, subject, message } of check.findings) {
        lines.push(`  ${status} ${code} ${subject === "" ? "" : `${subject}: `}${message}`);
      }
    }
    for (const detail of check.details) lines.push(`  ${detail}`);
  }
  lines.push(...origins);
  if (report.apiVersion !== undefined) lines.push(`api: ${report.apiVersion}`);
  const took = formatDuration(report.durationMs);
  lines.push(`cost: ${report.tokensSpent} tokens, ${took}, ${report.bytesReceived} bytes received`);
  // The indent is ours, whatever stands behind it is not.
  return lines.map((line) =>
    line.replace(/^( {0,2})(.*)$/s, (_, indent, text) => indent + noPipe(plain(text, lineLimit))),
  );
}

/** A bar starts performance data, wherever it stands. */
export function noPipe(text: string): string {
  return text.replaceAll("|", "/");
}

/** A metric's name; of several checks each has its check's name before it. */
export function metricLabel(check: CheckReport, metric: JudgedMetric, prefixed: boolean): string {
  return prefixed ? `${check.check.replaceAll("-", "_")}_${metric.name}` : metric.name;
}

/** `'label'=value[unit];[warning];[critical];[min];[max]`, with a point in every locale and never an exponent. */
function performanceData(check: CheckReport, metric: JudgedMetric, prefixed: boolean): string {
  const label = metricLabel(check, metric, prefixed);
  const parts = [
    `${label}=${decimal(metric.value)}${metric.unit}`,
    metric.warning ?? "",
    metric.critical ?? "",
    metric.min === undefined ? "" : decimal(metric.min),
    metric.max === undefined ? "" : decimal(metric.max),
  ];
  return parts.join(";").replace(/;+$/, "");
}

/** With a point in every locale, at most six digits behind it, and never an exponent. */
export function decimal(value: number): string {
  return round(value)
    .toFixed(6)
    .replace(/\.?0+$/, "");
}

/** The code and what it is about, without a number that changes: a message that differs is a new event. */
function npdLine({ status, code, checks }: Report): string {
  if (status === "OK") return code;
  const worst = checks.find((check) => check.code === code && check.status === status && check.skipped === undefined);
  const bad = worst?.findings.filter((finding) => finding.status !== "OK") ?? [];
  const first = bad.find((finding) => finding.code === code && finding.status === status);
  const subject = first?.subject ?? "";
  const cause = first?.cause === undefined ? "" : ` (${first.cause})`;
  const text = subject === "" ? codes[code].brief : subject;
  const others = bad.some((finding) => finding !== first && finding.subject !== "") ? " and others" : "";
  return ascii(`${code}: ${text}${cause}${others}`, npdLimit);
}
