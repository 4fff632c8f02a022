// The command `explain`: what a code means, likely causes, and what to do. Loaded only when asked for.

import { type Code, codes, isCode } from "./codes.ts";
import { type ExitRules, exitStatus, type ProbePurpose, profiles } from "./exit.ts";
import { explanations } from "./explanations.ts";
import { Fault } from "./fault.ts";
import { plain } from "./plain.ts";
import { type Status, statuses } from "./status.ts";

// What a terminal of 80 columns and a mail quoted once still show whole.
const columns = 78;

const purposes: readonly ProbePurpose[] = ["startup", "readiness", "liveness"];

/**
 * @param words Codes, in any case; none for the list of all codes.
 * @returns ASCII text of at most 78 columns, with a line end.
 * @throws Fault BadUsage for a word that is no code, with the codes that it may stand for.
 */
export function explain(words: readonly string[]): string {
  if (words.length === 0) return listing();
  return words.map((word) => explainCode(findCode(word))).join("\n");
}

function listing(): string {
  const all = Object.keys(codes) as Code[];
  const width = Math.max(...all.map((code) => code.length));
  const groups = statuses.toReversed().map((status) => {
    const lines = all
      .filter((code) => codes[code].status === status)
      .map((code) => `  ${code.padEnd(width)}  ${codes[code].brief}`);
    return `${status}\n${lines.join("\n")}\n`;
  });
  return `${groups.join("\n")}\nSee 'kubelet-probe explain CODE' for causes and what to do.\n`;
}

function findCode(word: string): Code {
  if (isCode(word)) return word;
  const all = Object.keys(codes) as Code[];
  const wanted = word.toLowerCase();
  const same = all.find((code) => code.toLowerCase() === wanted);
  if (same !== undefined) return same;
  const close = all.filter((code) => isClose(wanted, code.toLowerCase()));
  const hint =
    close.length === 0
      ? "'explain' without a code lists them"
      : `did you mean ${close.join(", ")}? 'explain' lists all`;
  throw new Fault("BadUsage", `Unknown code "${plain(word, 100)}": ${hint}`);
}

function isClose(wanted: string, code: string): boolean {
  if (wanted.length > 40) return false;
  if (wanted.length >= 4 && code.includes(wanted)) return true;
  return distance(wanted, code) <= Math.min(3, Math.floor(code.length / 3));
}

/** How many letters have to be put in, taken out or changed (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + (a[i] === b[j] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}

function explainCode(code: Code): string {
  const { meaning, causes, actions, otherStatus } = explanations[code];
  const { brief, status } = codes[code];
  const lines = [`${code}: ${brief}`, "", ...wrap(meaning)];
  if (causes.length > 0) lines.push("", "Likely causes, the most likely first:");
  causes.forEach((cause, at) => {
    lines.push(...wrap(cause, `  ${at + 1}. `));
  });
  if (actions.length > 0) lines.push("", "What to do:");
  for (const [what, ...commands] of actions) {
    lines.push(...wrap(what, "  - "), ...commands.map((command) => `      ${command}`));
  }
  lines.push("", `Status: ${status}`);
  if (otherStatus !== undefined) lines.push(...wrap(`${otherStatus.status} ${otherStatus.when}.`, "        "));
  lines.push("", ...exitLines(code), "", ...wrap(reportedBy(code)));
  const advice = overrideAdvice(code);
  if (advice !== "") lines.push(...wrap(advice));
  lines.push("", `The same with links: docs/codes.md#${code.toLowerCase()}`);
  return `${lines.join("\n")}\n`;
}

/** The exit statuses of one code: a column for each status it may have, a row for each set of rules. */
export interface ExitTable {
  readonly columns: readonly Status[];
  readonly rows: readonly { readonly options: string; readonly exits: readonly number[] }[];
}

/** Computed by the rules that the program itself ends by. */
export function exitTable(code: Code): ExitTable {
  const { otherStatus, checks } = explanations[code];
  const own = codes[code].status;
  const columns = otherStatus === undefined ? [own] : [own, otherStatus.status];
  const rules: [string, ExitRules][] = [];
  for (const profile of profiles) {
    rules.push([profile, { profile }]);
    // What only changes what WARNING means is told where there is one.
    if (profile === "npd" && columns.includes("WARNING")) {
      rules.push(["npd --npd-warning problem", { profile, warningIsProblem: true }]);
    }
    if (profile === "kube" && columns.includes("WARNING")) rules.push(["kube --strict", { profile, strict: true }]);
  }
  // Only `ready` takes --for.
  if (checks.includes("ready")) {
    for (const purpose of purposes) rules.push([`kube --for ${purpose}`, { profile: "kube", purpose }]);
  }
  const rows = rules.map(([options, each]) => ({
    options,
    exits: columns.map((status) => exitStatus({ status, code }, each)),
  }));
  return { columns, rows };
}

function exitLines(code: Code): string[] {
  const { columns, rows } = exitTable(code);
  const title = "Exit status by --profile:";
  const width = Math.max(title.length, ...rows.map(({ options }) => options.length + 2));
  const line = (start: string, cells: readonly (string | number)[]) =>
    start.padEnd(width) + cells.map((cell) => String(cell).padStart(10)).join("");
  return [line(title, columns), ...rows.map(({ options, exits }) => line(`  ${options}`, exits))];
}

/** Which checks report a code, as one sentence. */
export function reportedBy(code: Code): string {
  const { checks } = explanations[code];
  if (code === "BadUsage") return "Reported before any check runs.";
  if (checks.length === 0) return "No check of this version reports it.";
  const all = checks.length === 1 ? `the check ${checks[0]}` : `the checks ${checks.join(", ")}`;
  const cause = checks.includes("ready") && !checks.includes("static-pods") && codes[code].status !== "OK";
  return `Reported by ${all}${cause ? "; by static-pods as the cause of InventoryUnavailable" : ""}.`;
}

/** How a code gets another status, as one sentence; empty for a code that cannot. */
export function overrideAdvice(code: Code): string {
  if (codes[code].status === "OK" || code === "BadUsage") return "";
  const other = codes[code].status === "WARNING" ? "CRITICAL" : "WARNING";
  return `To give it another status: --severity ${code}=${other}, or the same in KUBELET_PROBE_SEVERITY.`;
}

/** Lines of at most 78 columns; those behind the first are indented by as much as `start` has. */
function wrap(text: string, start = ""): string[] {
  const indent = " ".repeat(start.length);
  const lines: string[] = [];
  let line = start;
  for (const word of text.split(" ")) {
    const isFirst = line === start || line === indent;
    if (!isFirst && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = indent;
    }
    line += (line === start || line === indent ? "" : " ") + word;
  }
  return [...lines, line];
}
