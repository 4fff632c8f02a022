// Reads a command line into what is to be done. Nothing is done here: main.ts is the only place that acts and exits.

import { existsSync } from "node:fs";
import { basename } from "node:path";
import { parseArguments } from "./arguments.ts";
import type { Check, OptionEntries } from "./check.ts";
import type { ApiVersion } from "./client.ts";
import type { Code } from "./codes.ts";
import { commonOptions, thresholdOptions } from "./common_options.ts";
import { defaultTimeoutMs, type ExitRules, helpExit, type Profile, profiles } from "./exit.ts";
import { Fault } from "./fault.ts";
import type { Output } from "./format_text.ts";
import { findNodeName, findSocket } from "./node.ts";
import { listOf, notes, oneOf, option } from "./option.ts";
import { ascii, plain } from "./plain.ts";
import type { RunOptions } from "./probe.ts";
import type { Range } from "./range.ts";
import type { Status } from "./status.ts";

/** How the program was called. */
export interface Invocation {
  /** The name it was called by, a link's name too. */
  readonly name: string;
  /** The words behind the name. */
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** What is to be done. */
export type Plan =
  | {
      readonly kind: "run";
      readonly rules: ExitRules;
      readonly run: RunOptions;
      readonly output: Output;
      /** Where the output goes, in place of the standard output. */
      readonly outputFile: string | undefined;
      readonly verbose: boolean;
      readonly quiet: boolean;
      /** Lines that say where the values came from: `socket: `, but for offline checks, `node: ` and others. */
      readonly origins: readonly string[];
      /** Which values nobody gave. */
      readonly defaults: { readonly socket: boolean; readonly node: boolean };
      /** Whether the command line of the kubelet that runs may tell better than the defaults do. */
      readonly consult: boolean;
    }
  | { readonly kind: "help"; readonly about: string | undefined; readonly exitStatus: number }
  | { readonly kind: "version"; readonly exitStatus: number }
  | { readonly kind: (typeof helpers)[number]; readonly words: readonly string[] };

// Commands that ask no kubelet.
const helpers = ["explain", "simulate", "selftest", "completion", "install"] as const;

/** Words that are commands and no check, each with what it does. */
export const commandSummaries: Readonly<Record<"all" | (typeof helpers)[number], string>> = {
  all: "all of these over one connection and one listing; the worst status wins",
  explain: "what a code means, likely causes, what to do; without a code the list of codes",
  simulate: "serve the Pods API of a healthy or broken node, for trying things out",
  selftest: "every code in every profile against simulated nodes, on this machine",
  completion: "print the completion for bash, zsh or fish",
  install: "copy this binary to a path, from an image without a shell",
};

/** Words that are commands and no check. */
export const commands: readonly string[] = Object.keys(commandSummaries);

/** The name of a link that stands for the profile nagios and may name a check: `check_kubelet_static_pods`. */
const linkName = /^check_kubelet_(\w+)$/;

function linkOf({ name }: Invocation): string | undefined {
  return linkName.exec(basename(name))?.[1]?.replaceAll("_", "-");
}

/**
 * The profile, found before anything else is read: it decides how even a wrong command line ends.
 * @returns It, and whether it was asked for.
 */
export function findProfile(invocation: Invocation): { readonly profile: Profile; readonly spelledOut: boolean } {
  const { words, environment } = invocation;
  let text: string | undefined;
  words.forEach((word, at) => {
    if (word === "--profile") text = words[at + 1];
    else if (word.startsWith("--profile=")) text = word.slice("--profile=".length);
  });
  if (text === undefined && linkOf(invocation) !== undefined) text = "nagios";
  text ??= environment.KUBELET_PROBE_PROFILE;
  const profile = profiles.find((known) => known === text);
  return { profile: profile ?? "nagios", spelledOut: profile !== undefined };
}

/** The options a check takes, its own and the common ones. */
export function optionsOf(check: Check): OptionEntries {
  return {
    ...check.options,
    ...(check.metric === undefined ? {} : thresholdOptions),
    ...commonOptions,
  };
}

/** The options of `all`: those of every check, and which checks to run. */
export function optionsOfAll(checks: readonly Check[]): OptionEntries {
  const names = checks.map(({ name }) => name);
  const usual = checks.filter(({ onRequest }) => onRequest !== true).map(({ name }) => name);
  return {
    checks: option(...listOf(oneOf(...names)), {
      value: "CHECK,...",
      list: true,
      description: `which checks to run (default: ${usual.join(",")})`,
    }),
    ...Object.fromEntries(
      checks.flatMap(({ options }) => Object.entries(options)).filter(([, schema]) => notes(schema).alone !== true),
    ),
    ...commonOptions,
  };
}

/** @throws Fault BadUsage */
export function plan(checks: readonly Check[], invocation: Invocation): Plan {
  const { profile, spelledOut } = findProfile(invocation);
  const names = [...checks.map(({ name }) => name), ...commands];
  const linked = linkOf(invocation);
  let [name, ...words] = invocation.words;
  // A link may say the check: then what follows is options.
  if (linked !== undefined && names.includes(linked) && (name === undefined || name.startsWith("-"))) {
    name = linked;
    words = [...invocation.words];
  }

  if (words.includes("--help") || words.includes("-h") || name === "--help" || name === "-h" || name === "help") {
    const about = name === "help" ? words[0] : name;
    return { kind: "help", about: names.find((known) => known === about), exitStatus: helpExit(profile, spelledOut) };
  }
  if (name === "--version" || name === "-V" || words.includes("--version") || words.includes("-V")) {
    return { kind: "version", exitStatus: helpExit(profile, spelledOut) };
  }
  const helper = helpers.find((known) => known === name);
  if (helper !== undefined) return { kind: helper, words };

  const check = checks.find((known) => known.name === name);
  if (check === undefined && name !== "all") {
    const given = name?.startsWith("-") ? "No check before" : "Unknown check";
    const what = name === undefined ? "No check given" : `${given} "${plain(name, 100)}"`;
    throw new Fault("BadUsage", `${what}: accepted are ${names.join(", ")}; see --help`);
  }
  return planRun(checks, check, words, invocation, profile);
}

/** The values of the options that the plan itself looks at. */
interface CommonValues {
  readonly socket?: string;
  readonly kubeletRoot?: string;
  readonly nodeName?: string;
  readonly timeout?: number;
  readonly profile?: Profile;
  readonly output: Output;
  readonly outputFile?: string;
  readonly severity?: readonly (readonly [Code, Status])[];
  readonly apiVersion: ApiVersion | "auto";
  readonly maxBytes: number;
  readonly npdWarning: "ok" | "problem";
  readonly strict: boolean;
  readonly verbose: boolean;
  readonly quiet: boolean;
  readonly warning?: Range;
  readonly critical?: Range;
  readonly for?: ExitRules["purpose"];
  readonly checks?: readonly string[];
  readonly manifests?: string;
}

function planRun(
  checks: readonly Check[],
  check: Check | undefined,
  words: readonly string[],
  { environment }: Invocation,
  profile: Profile,
): Plan {
  const entries = check === undefined ? optionsOfAll(checks) : optionsOf(check);
  const { values, from } = parseArguments(entries, words, environment);
  const common = values as unknown as CommonValues;
  if (common.for !== undefined && profile !== "kube") {
    throw new Fault("BadUsage", `${from.for} goes with --profile kube, and the profile is ${profile}`);
  }
  const wanted =
    check === undefined
      ? checks.filter(({ name, onRequest }) => common.checks?.includes(name) ?? onRequest !== true)
      : [check];
  const timeoutMs = common.timeout ?? defaultTimeoutMs(profile);
  for (const each of wanted) {
    const misuse = each.misuse?.(values as never, timeoutMs);
    if (misuse !== undefined) throw new Fault("BadUsage", misuse);
  }
  const socket = findSocket(common.socket, common.kubeletRoot);
  const node = findNodeName(common.nodeName, environment);
  const defaults = {
    socket: common.socket === undefined && common.kubeletRoot === undefined,
    node: node.from === "host name",
  };
  const readsManifests = wanted.some((each) => each.readsManifests?.(values as never));
  const seeksManifests = readsManifests && (defaults.node || common.manifests === undefined);
  // Looking through /proc takes longer than asking the kubelet: what is where it should be needs no looking for.
  const isOffline = wanted.every(({ offline }) => offline);
  const seeksSocket = defaults.socket && !isOffline && !existsSync(socket.value);
  return {
    kind: "run",
    rules: {
      profile,
      purpose: common.for,
      strict: common.strict,
      warningIsProblem: common.npdWarning === "problem",
    },
    run: {
      runs: wanted.map((each) => ({ check: each, options: values })),
      name: check?.name ?? "all",
      socket: socket.value,
      nodeName: node.value,
      kubeletRoot: common.kubeletRoot,
      timeoutMs,
      maxBytes: common.maxBytes,
      apiVersion: common.apiVersion,
      thresholds: { warning: common.warning, critical: common.critical },
      severity: new Map(common.severity ?? []),
    },
    output: common.output,
    outputFile: common.outputFile,
    verbose: common.verbose,
    quiet: common.quiet,
    origins: [
      ...(isOffline ? [] : [`socket: ${socket.value} (${from.socket ?? from.kubeletRoot ?? socket.from})`]),
      `node: ${node.value} (${from.nodeName ?? node.from})`,
    ],
    defaults,
    consult: seeksManifests || seeksSocket,
  };
}

/** One line for a failure that no report tells of: a command line that cannot be used, or a fault of our own. */
export function failureLine(profile: Profile, code: "BadUsage" | "InternalError" | "Timeout", message: string): string {
  switch (profile) {
    case "nagios": {
      const status = code === "Timeout" ? "CRITICAL" : "UNKNOWN";
      return `${plain(`KUBELET-PROBE ${status} - ${code}: ${message}`, 700).replaceAll("|", "/")}\n`;
    }
    case "npd":
      return `${ascii(`${code}: ${message}`, 80)}\n`;
    case "kube":
      return `${plain(`${code}: ${message}`, 700)}\n`;
  }
}
