// The line of a Checkmk local check: status, service name, metrics, text. One run is one service.

import { exitStatus } from "./exit.ts";
import { decimal, metricLabel, noPipe } from "./format_text.ts";
import { plain } from "./plain.ts";
import type { CheckReport, JudgedMetric, Report } from "./probe.ts";
import { parseRange } from "./range.ts";

const lineLimit = 400;

/** @returns One line; what else was found follows in it behind `\n`, as Checkmk has it. */
export function formatCheckmk(report: Report): string {
  const { name, status, code, checks } = report;
  const prefixed = name === "all";
  const service = prefixed ? "Kubelet Pods API" : `Kubelet Pods API ${name}`;
  const metrics = checks.flatMap((check) => check.metrics.map((metric) => metricOf(check, metric, prefixed)));
  const findings = checks
    .filter(({ skipped }) => skipped === undefined)
    .flatMap(({ findings }) => findings.filter((finding) => finding.status !== "OK"));
  const more = findings.length < 2 ? [] : findings.map((each) => `${each.status} ${each.code} ${textOf(each)}`);
  const text = [`${code}: ${report.summary}`, ...more].map(inOneLine).join("\\n");
  // Checkmk counts statuses as Nagios does, whatever profile the run has.
  const state = exitStatus({ status, code }, { profile: "nagios" });
  return `${state} "${service}" ${metrics.join("|") || "-"} ${text}\n`;
}

function textOf({ subject, message }: { readonly subject: string; readonly message: string }): string {
  return subject === "" ? message : `${subject}: ${message}`;
}

/** A backslash of the node's could begin a line break of its own. */
function inOneLine(text: string): string {
  return noPipe(plain(text, lineLimit)).replaceAll("\\", "/");
}

/** `name=value;warn;crit;min;max`, without the levels that Checkmk has no notation for. */
function metricOf(check: CheckReport, metric: JudgedMetric, prefixed: boolean): string {
  const parts = [
    `${metricLabel(check, metric, prefixed)}=${decimal(metric.value)}`,
    upperLevel(metric.warning),
    upperLevel(metric.critical),
    metric.min === undefined ? "" : decimal(metric.min),
    metric.max === undefined ? "" : decimal(metric.max),
  ];
  return parts.join(";").replace(/;+$/, "");
}

/** A level there is what a value may reach; a range whose only bound is a lower one cannot be said. */
function upperLevel(text: string | undefined): string {
  const range = text === undefined ? undefined : parseRange(text);
  if (range === undefined || range.inside || !Number.isFinite(range.end)) return "";
  return range.start > 0 ? `${decimal(range.start)}:${decimal(range.end)}` : decimal(range.end);
}
