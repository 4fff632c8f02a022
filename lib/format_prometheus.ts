// The text exposition format of Prometheus, for the textfile collector of node_exporter. What the metrics mean, and which
// of them stay, is in docs/prometheus.md.

import { decimal } from "./format_text.ts";
import { plain } from "./plain.ts";
import type { CheckReport, JudgedMetric, Report } from "./probe.ts";
import { version } from "./version.ts";

// A path on Linux may have 4096 bytes; a label of that length helps nobody.
const labelLimit = 256;

type Labels = Readonly<Record<string, string>>;

/** Everything of one name stands together, and no series twice: either would cost the collector the whole file. */
interface Family {
  readonly help: string;
  readonly samples: Map<string, string>;
}

const units = { "": "", s: "_seconds", B: "_bytes" } as const;

/** @returns The exposition: gauges only, since every run begins anew and nothing is counted between runs. */
export function formatPrometheus(report: Report): string {
  const families = new Map<string, Family>();
  // Two files of one node, of two runs, may stand side by side only where no series is in both.
  const run = { run: report.name };
  const add = (name: string, help: string, labels: Labels, value: number): void => {
    const full = `kubelet_probe_${name}`;
    const family = families.get(full) ?? { help, samples: new Map() };
    families.set(full, family);
    family.samples.set(labelSet({ ...run, ...labels }), decimal(value));
  };

  const { node, socket } = report;
  add("info", "Which kubelet-probe ran, and what it asked.", { version, node, socket }, 1);
  add("ok", "Whether the verdict of the run is OK.", {}, Number(report.status === "OK"));
  add("status", "The verdict of the run, as labels.", { status: report.status, code: report.code }, 1);
  for (const check of report.checks) addCheck(check, add);
  for (const check of report.checks) for (const metric of check.metrics) addMetric(check, metric, add);
  add("last_run_timestamp_seconds", "When the run started.", {}, report.startedMs / 1000);
  add("run_duration_seconds", "How long the run took.", {}, report.durationMs / 1000);
  add("run_tokens", "Calls of the run that count on the rate limit of the kubelet.", {}, report.tokensSpent);
  add("run_received_bytes", "Bytes the run received from the kubelet.", {}, report.bytesReceived);

  return [...families].map(([name, family]) => exposition(name, family)).join("");
}

type Add = (name: string, help: string, labels: Labels, value: number) => void;

function addCheck({ check, status, code, skipped, findings }: CheckReport, add: Add): void {
  if (skipped !== undefined) {
    const help = "Set for a check that could not run because of a fault that another one reports.";
    return add("check_skipped", help, { check, cause: skipped.cause }, 1);
  }
  add("check_ok", "Whether the verdict of the check is OK.", { check }, Number(status === "OK"));
  add("check_status", "The verdict of the check, as labels.", { check, status, code }, 1);
  const counts = new Map<string, { readonly labels: Labels; count: number }>();
  for (const finding of findings) {
    const labels = { check, status: finding.status, code: finding.code };
    const found = counts.get(labelSet(labels)) ?? { labels, count: 0 };
    found.count += 1;
    counts.set(labelSet(labels), found);
  }
  // No pod or file is a label: their names are the node's, and would make series without a bound.
  for (const { labels, count } of counts.values()) add("findings", "What the check found, by code.", labels, count);
}

function addMetric({ check }: CheckReport, { name, value, unit }: JudgedMetric, add: Add): void {
  const prefix = check.replaceAll("-", "_");
  add(`${prefix}_${name}${units[unit]}`, `The metric ${name} of the check ${check}.`, {}, value);
}

/** Names are ours and need no escape; values have a backslash before `\`, `"` and a line feed, of which plain leaves none. */
function labelSet(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${plain(value, labelLimit).replace(/["\\]/g, "\\$&")}"`)
    .join(",");
}

function exposition(name: string, { help, samples }: Family): string {
  const lines = [...samples].map(([labels, value]) => `${name}{${labels}} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
}
