// The help texts, made from the checks and their option schemas. Loaded only when asked for.

import { optionName, variableName } from "./arguments.ts";
import type { Check, OptionEntries } from "./check.ts";
import { commandSummaries, optionsOf, optionsOfAll } from "./cli.ts";
import { notes } from "./option.ts";

/** @param about A check or command; the program as a whole if undefined. */
export function helpText(checks: readonly Check[], about: string | undefined): string {
  const check = checks.find(({ name }) => name === about);
  if (check !== undefined) return checkHelp(check);
  if (about === "all") return allHelp(checks);
  return programHelp(checks);
}

function programHelp(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const { all, ...others } = commandSummaries;
  return `Usage: kubelet-probe CHECK [OPTION...]
       kubelet-probe explain CODE
       kubelet-probe simulate --socket PATH --scenario NAME

Asks the kubelet's Pods API on this node one question, and answers with an exit status.

Checks:
${checks.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join("\n")}
  ${"all".padEnd(width)}  ${all}

Commands:
${Object.entries(others)
  .map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`)
  .join("\n")}

Exit status:  OK  WARNING  CRITICAL  UNKNOWN  wrong usage
  nagios       0        1         2        3            3
  npd          0        0         1        2            2
  kube         0        0         1        1            1

Every option has an environment variable KUBELET_PROBE_<OPTION>; the option wins.
See 'kubelet-probe CHECK --help' for the options of a check.
`;
}

function checkHelp(check: Check): string {
  const metric =
    check.metric === undefined ? "" : `\nMain metric, of --warning and --critical: ${check.metric.description}\n`;
  return `Usage: kubelet-probe ${check.name} [OPTION...]

${capitalized(check.summary)}.
${metric}
Options:
${optionLines(optionsOf(check))}
`;
}

function allHelp(checks: readonly Check[]): string {
  return `Usage: kubelet-probe all [OPTION...]

Runs ${checks.map(({ name }) => name).join(", ")} over one connection and one listing; the worst status wins.
A check that cannot run because of a fault which another one reports is skipped, and does not count.

Options:
${optionLines(optionsOfAll(checks))}
`;
}

/** Two lines an option: how it is written, and what it does. */
export function optionLines(entries: OptionEntries): string {
  return Object.keys(entries)
    .map((key) => {
      const { value, short, fallback, description, noVariable } = notes(entries[key]!);
      const forms = [...(short === undefined ? [] : [`-${short}`]), optionName(key)].join(", ");
      const standard = fallback === undefined || fallback === "" ? "" : ` (default: ${fallback})`;
      const variable = noVariable ? "" : ` [${variableName(key)}]`;
      return `  ${forms}${value === undefined ? "" : ` ${value}`}\n      ${description}${standard}${variable}`;
    })
    .join("\n");
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
