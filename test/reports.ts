// Reports for the tests of the formats, and readers of the notations they print.

import assert from "node:assert/strict";
import { type Code, codes } from "../lib/codes.ts";
import { exitStatus, type Profile } from "../lib/exit.ts";
import { type FormatOptions, formatText } from "../lib/format_text.ts";
import type { CheckReport, JudgedFinding, JudgedMetric, Report } from "../lib/probe.ts";

export const allCodes = Object.keys(codes) as Code[];

export function checkReport(differs: Partial<CheckReport> = {}): CheckReport {
  return {
    check: "ready",
    status: "OK",
    code: "Ready",
    summary: "the kubelet serves its inventory of 10 pods, 4 of them static",
    findings: [],
    metrics: [],
    details: [],
    data: {},
    ...differs,
  };
}

/** A report of these checks, with the verdict of the first. */
export function report(checks: readonly CheckReport[], differs: Partial<Report> = {}): Report {
  const [{ check: name, status, code, summary }] = checks as [CheckReport];
  return {
    name: checks.length > 1 ? "all" : name,
    status,
    code,
    summary,
    socket: "/s",
    node: "cp-1",
    startedMs: Date.parse("2026-01-01T00:00:00Z"),
    durationMs: 30.6,
    tokensSpent: 1,
    bytesReceived: 13_371,
    checks,
    ...differs,
  };
}

export function finding(code: Code, differs: Partial<JudgedFinding> = {}): JudgedFinding {
  return { code, status: codes[code].status, subject: "", message: "it is so", ...differs };
}

export function failing(
  code: Code,
  subject = "",
  message = "it is so",
  more: readonly JudgedFinding[] = [],
): CheckReport {
  const first = finding(code, { subject, message });
  const summary = subject === "" ? message : `${subject}: ${message}`;
  return checkReport({ status: first.status, code, summary, findings: [first, ...more] });
}

export function text(of: Report, profile: Profile, options: Partial<FormatOptions> = {}): string {
  return formatText(of, { profile, exitStatus: exitStatus(of, { profile }), verbose: false, ...options });
}

export const seconds = (value: number, differs: Partial<JudgedMetric> = {}): JudgedMetric => ({
  name: "time",
  value,
  unit: "s",
  min: 0,
  ...differs,
});

/**
 * Performance data by the guidelines: `'label'=value[UOM];[warn];[crit];[min];[max]`, separated by spaces. The label needs
 * no quotes where it has no space, quote or equals sign; value, min and max are of the class [-0-9.]; warn and crit are
 * ranges; trailing semicolons may be dropped.
 */
export function parsePerformanceData(data: string) {
  return data.split(" ").map((item) => {
    const match = /^([^ ='|;]+)=(-?\d+(?:\.\d+)?)(s|B|)((?:;[-@~:.0-9]*){0,4})$/.exec(item);
    assert.ok(match, `performance data: ${item}`);
    const [, label, value, unit, rest] = match;
    const [, warning = "", critical = "", min = "", max = ""] = rest!.split(";");
    for (const number of [min, max]) assert.match(number, /^(-?\d+(\.\d+)?)?$/);
    return { label: label!, value: Number(value), unit: unit!, warning, critical, min, max };
  });
}

/** One series of an exposition. */
export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * The text exposition format, version 0.0.4, as far as the textfile collector takes it: for each name HELP, TYPE and then
 * all of its series, each of them once, without times.
 */
export function parseExposition(text: string): Series[] {
  assert.match(text, /[^\n]\n$/);
  const all: Series[] = [];
  const seen = new Set<string>();
  let current = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const help = /^# HELP ([a-z_:][a-z0-9_:]*) (\S.*)$/i.exec(line);
    if (help !== null) {
      current = help[1]!;
      assert.ok(!seen.has(current), `${current} stands together`);
      seen.add(current);
      continue;
    }
    const type = /^# TYPE (\S+) gauge$/.exec(line);
    if (type !== null) {
      assert.equal(type[1], current, line);
      continue;
    }
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?\d+(?:\.\d+)?)$/.exec(
      line,
    );
    assert.ok(match, `exposition: ${line}`);
    const [series, name, labels, value] = match as unknown as [string, string, string, string];
    assert.equal(name, current, line);
    const identity = series.replace(/ [^ ]*$/, "");
    assert.ok(!seen.has(identity), `twice: ${identity}`);
    seen.add(identity);
    const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [
      key,
      text!.replace(/\\(.)/g, (_, each) => (each === "n" ? "\n" : each)),
    ]);
    all.push({ name, labels: Object.fromEntries(pairs), value: Number(value) });
  }
  return all;
}

/** A local check's line: state, service in quotes, metrics or a minus sign, text; one space between. */
export function parseCheckmk(line: string) {
  const match = /^([0-3]) "([^"]+)" (\S+) (\S[^\n]*)\n$/.exec(line);
  assert.ok(match, `local check: ${line}`);
  const [, state, service, metrics, text] = match as unknown as [string, string, string, string, string];
  const number = "-?\\d+(?:\\.\\d+)?";
  const level = `(?:${number}(?::${number})?)?`;
  const form = new RegExp(`^(\\w+)=(${number})(?:;${level}){0,2}(?:;(?:${number})?){0,2}$`);
  const names =
    metrics === "-"
      ? []
      : metrics.split("|").map((each) => {
          const found = form.exec(each);
          assert.ok(found, `metric: ${each}`);
          return found[1]!;
        });
  return { state: Number(state), service, metrics, names, text };
}
