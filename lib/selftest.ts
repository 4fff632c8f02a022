// The command `selftest`: every code in every profile, by the program itself against simulated nodes, so that it can be
// seen on the node it is to run on, by the user and under the restrictions it is to run with. Loaded only when asked for.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArguments } from "./arguments.ts";
import type { Check } from "./check.ts";
import { plan } from "./cli.ts";
import { type Code, codes } from "./codes.ts";
import { exitStatus, type Profile, profiles, usageExit } from "./exit.ts";
import { Fault } from "./fault.ts";
import { formatText } from "./format_text.ts";
import { optionLines } from "./help.ts";
import { absolutePath, flag, option } from "./option.ts";
import { run } from "./probe.ts";
import type { Scenario, SimulatorOptions } from "./simulator.ts";
import type { Status } from "./status.ts";

const options = {
  dir: option(...absolutePath, {
    value: "DIR",
    description:
      "where a folder with the sockets is made, and removed at the end (default: the folder for temporary files)",
  }),
  verbose: flag("say of every case which command line it was", "v"),
};

/** The simulator, which the binary loads from a file of its own. */
export interface SimulatorModule {
  readonly scenarios: readonly Scenario[];
  startSimulator(options: SimulatorOptions): Promise<{
    readonly expect: readonly string[];
    readonly manifests: Readonly<Record<string, string>>;
    close(): Promise<void>;
  }>;
}

/** What `selftest --help` prints. */
export function selftestHelp(): string {
  return `Usage: kubelet-probe selftest [OPTION...]

Runs the checks against simulated nodes, one for each code, in every profile, and prints what came of it.
Ends with 0 if every code and every exit status was right, else with 1. Asks no kubelet.
What takes another user, a minute or a fault of the program itself is not tried, and is named.

Options:
${optionLines(options)}
`;
}

/** One simulated state, and what a probe has to make of it. */
interface Case {
  readonly name: string;
  readonly code: Code;
  /** The words of the command line that lead to it; the rest is the same for all. */
  readonly words: readonly string[];
  readonly scenario?: string;
  readonly needsManifests?: boolean;
}

// Nobody's answer comes in this time where one is waited for in vain, and every other one does, on a busy machine too.
const hangingMs = 400;
// So many nodes at once: most of them do nothing but wait.
const atOnce = 6;

const pod = (name: string, containers = "[{name: c, image: i}]") =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: kube-system}\nspec: {containers: ${containers}}\n`;

/** Folders of manifests, each with the code it stands for. */
const folders: Readonly<Record<string, readonly [Code, Readonly<Record<string, string>>]>> = {
  clean: ["ManifestsClean", { "a.yaml": pod("a") }],
  refused: ["ManifestRefused", { "a.yaml": pod("a", "[]") }],
  ignored: ["ManifestIgnored", { "a.yaml": pod("a"), "b.txt": "kind: ConfigMap\n" }],
  shadowed: ["ManifestShadowed", { "a.yaml": pod("a"), "b.yaml": pod("a") }],
};

/**
 * @returns A table with a line for each case, and the exit status: 0 if all were right, else 1.
 * @throws Fault BadUsage
 */
export async function selftest(
  checks: readonly Check[],
  simulator: SimulatorModule,
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly text: string; readonly status: number }> {
  const { values } = parseArguments(options, words, environment);
  const home = mkdtempSync(join(values.dir ?? tmpdir(), "kp-"));
  try {
    const { cases, untried } = casesFor(checks, simulator.scenarios, home);
    const results = await inTurns(cases, (each, at) => tryCase(each, checks, simulator, join(home, String(at))));
    return summarize(results, untried, values.verbose);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function casesFor(checks: readonly Check[], scenarios: readonly Scenario[], home: string) {
  const known = (name: string) => checks.some((check) => check.name === name);
  const isRoot = process.geteuid?.() === 0;
  const cases: Case[] = [];
  for (const { name, code, check, hint, needs } of scenarios) {
    // Root is refused nothing, and a manifest counts as changed only half a minute after it was written.
    if (!known(check) || (needs === "other-user" && isRoot) || code === "StaticPodStale") continue;
    // Another client takes part of the limit there, now more and now less.
    if (name === "rate-shared") continue;
    const timing = ["--timeout", code === "Timeout" ? `${hangingMs}ms` : "10s"];
    const extra = hint === "--wait" ? ["--wait"] : [];
    // What is held for long is held for a moment first.
    if (check === "watch") extra.push("--hold", "50ms");
    cases.push({
      name,
      code,
      scenario: name,
      words: [check, ...extra, ...timing],
      needsManifests: needs === "manifests",
    });
  }
  if (known("manifests")) {
    for (const [name, [code, files]] of Object.entries(folders)) {
      const path = join(home, `manifests-${name}`);
      mkdirSync(path);
      for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
      cases.push({ name: `manifests ${name}`, code, words: ["manifests", "--manifests", path] });
    }
    const through = join(home, "manifests-clean", "a.yaml", "b");
    cases.push({
      name: "manifests behind a file",
      code: "ManifestsUnreadable",
      words: ["manifests", "--manifests", through],
    });
  }
  cases.push(
    { name: "a quiet node", code: "RateLimitHeadroom", scenario: "healthy", words: ["rate-limit"] },
    { name: "a long path", code: "PathTooLong", words: ["ready", "--socket", `/${"x".repeat(200)}`] },
    {
      name: "a narrow range",
      code: "ThresholdExceeded",
      scenario: "healthy",
      words: ["ready", "--critical", "@0:1000"],
    },
    { name: "a wrong option", code: "BadUsage", words: ["ready", "--timeout", "soon"] },
  );
  const tried = new Set(cases.map(({ code }) => code));
  return { cases, untried: (Object.keys(codes) as Code[]).filter((code) => !tried.has(code)) };
}

async function inTurns<T, R>(all: readonly T[], work: (each: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < all.length; at = next++) results[at] = await work(all[at]!, at);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

interface Result {
  readonly name: string;
  readonly wanted: Code;
  readonly command: string;
  readonly found: string;
  readonly exits: readonly string[];
  readonly wrong: readonly string[];
}

async function tryCase(
  each: Case,
  checks: readonly Check[],
  simulator: SimulatorModule,
  home: string,
): Promise<Result> {
  mkdirSync(home);
  const socket = join(home, "s");
  const words = [...each.words, "--node-name", "node-1"];
  if (!words.includes("--socket")) words.push("--socket", socket);
  if (words[0] === "socket") words.push("--owner", String(process.geteuid?.() ?? 0));
  const node =
    each.scenario === undefined ? undefined : await simulator.startSimulator({ socket, scenario: each.scenario });
  try {
    if (words[0] === "static-pods" && node !== undefined) {
      if (each.needsManifests) {
        const path = join(home, "m");
        mkdirSync(path);
        for (const [file, text] of Object.entries(node.manifests)) writeFileSync(join(path, file), text);
        words.push("--manifests", path);
      } else words.push("--expect", node.expect.join(","));
    }
    const outcomes = [];
    for (const profile of profiles) outcomes.push(await tryProfile(profile, words, each.code, checks));
    return {
      name: each.name,
      wanted: each.code,
      command: words.join(" "),
      found: [...new Set(outcomes.map(({ code }) => code))].join(","),
      exits: outcomes.map(({ exit }) => String(exit)),
      wrong: outcomes.flatMap(({ wrong }) => wrong),
    };
  } finally {
    await node?.close();
  }
}

/** One run as the command line would have it, without the process around it. */
async function tryProfile(profile: Profile, words: readonly string[], wanted: Code, checks: readonly Check[]) {
  const wrong: string[] = [];
  try {
    const planned = plan(checks, { name: "kubelet-probe", words: [...words, "--profile", profile], environment: {} });
    if (planned.kind !== "run") throw new Error(`a plan to ${planned.kind}`);
    const report = await run(planned.run);
    const exit = exitStatus(report, planned.rules);
    const line = formatText(report, { profile, exitStatus: exit, verbose: false });
    if (report.code !== wanted) wrong.push(`${profile}: ${report.code}`);
    if (exit !== expectedExit(profile, report.status))
      wrong.push(`${profile}: exit status ${exit} for ${report.status}`);
    if (!line.includes(wanted)) wrong.push(`${profile}: the line does not name the code`);
    if (profile === "npd" && Buffer.byteLength(line.trim()) > 80) wrong.push("npd: the line is longer than 80 bytes");
    return { code: report.code, exit, wrong };
  } catch (error) {
    const code = error instanceof Fault ? error.code : "InternalError";
    if (code !== wanted) wrong.push(`${profile}: ${error instanceof Error ? error.message : String(error)}`);
    return { code, exit: usageExit(profile), wrong };
  }
}

// Written down once more, on purpose: a table that is compared with itself is always right.
function expectedExit(profile: Profile, status: Status): number {
  const at = ["OK", "WARNING", "CRITICAL", "UNKNOWN"].indexOf(status);
  return Number({ nagios: "0123", npd: "0012", kube: "0011" }[profile][at]);
}

function summarize(results: readonly Result[], untried: readonly Code[], verbose: boolean) {
  const rows = [
    ["code", "simulated node", ...profiles, ""],
    ...results.map(({ name, wanted, exits, wrong }) => [wanted, name, ...exits, wrong.length === 0 ? "" : "WRONG"]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines: string[] = [];
  rows.forEach((row, at) => {
    lines.push(
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    );
    const result = results[at - 1];
    if (result === undefined) return;
    for (const wrong of result.wrong) lines.push(`  ${wrong}`);
    if (verbose || result.wrong.length > 0) lines.push(`  kubelet-probe ${result.command}`);
  });
  if (untried.length > 0) lines.push("", `Not tried: ${untried.join(", ")}`);
  const failed = results.filter(({ wrong }) => wrong.length > 0).length;
  const tried = new Set(results.map(({ wanted }) => wanted)).size;
  lines.push(
    "",
    `${results.length} nodes, ${tried} codes, ${profiles.length} profiles: ${failed === 0 ? "all right" : `${failed} wrong`}`,
  );
  return { text: `${lines.join("\n")}\n`, status: failed === 0 ? 0 : 1 };
}
