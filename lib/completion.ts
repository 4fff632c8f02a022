// The command `completion`: what a shell needs to complete command lines, made from the checks and their option schemas.
// Loaded only when asked for.

import { optionName } from "./arguments.ts";
import type { Check, OptionEntries } from "./check.ts";
import { commandSummaries, optionsOf, optionsOfAll } from "./cli.ts";
import { codes } from "./codes.ts";
import { Fault } from "./fault.ts";
import { notes, type OptionNotes } from "./option.ts";
import { plain } from "./plain.ts";

/** The shells there is a completion for. */
export const shells = ["bash", "zsh", "fish"] as const;

interface Option {
  /** `--timeout`, and `-t` where it has a short form. */
  readonly long: string;
  readonly short: string | undefined;
  readonly description: string;
  /** The word for its value, such as DURATION; undefined for a flag. */
  readonly value: string | undefined;
  /** The words it takes, where these are all. */
  readonly choices: readonly string[];
}

interface Command {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly Option[];
  /** Words behind the command that are no options. */
  readonly operands: readonly string[];
}

/**
 * @param words The shell.
 * @param simulateNotes Of the options of `simulate`, which the binary loads from a file of its own.
 * @throws Fault BadUsage
 */
export function completion(
  words: readonly string[],
  checks: readonly Check[],
  simulateNotes: Readonly<Record<string, OptionNotes>>,
): string {
  const [shell, ...more] = words;
  if (more.length > 0 || !shells.some((known) => known === shell)) {
    throw new Fault("BadUsage", `Unknown shell "${plain(words.join(" "), 100)}": accepted are ${shells.join(", ")}`);
  }
  const commands = commandsOf(checks, simulateNotes);
  return { bash, zsh, fish }[shell as (typeof shells)[number]](commands);
}

function commandsOf(checks: readonly Check[], simulateNotes: Readonly<Record<string, OptionNotes>>): Command[] {
  const operands: Readonly<Record<string, readonly string[]>> = { explain: Object.keys(codes), completion: shells };
  return [
    ...checks.map((check) => ({
      name: check.name,
      summary: check.summary,
      options: optionsFrom(notesOf(optionsOf(check))),
      operands: [],
    })),
    ...Object.entries(commandSummaries).map(([name, summary]) => ({
      name,
      summary,
      options:
        name === "all"
          ? optionsFrom(notesOf(optionsOfAll(checks)))
          : name === "simulate"
            ? optionsFrom(simulateNotes)
            : [],
      operands: operands[name] ?? [],
    })),
  ];
}

function notesOf(entries: OptionEntries): Record<string, OptionNotes> {
  return Object.fromEntries(Object.entries(entries).map(([key, schema]) => [key, notes(schema)]));
}

function optionsFrom(entries: Readonly<Record<string, OptionNotes>>): Option[] {
  return Object.entries(entries).map(([key, { value, short, description }]) => {
    const isChoice = value !== undefined && /^[a-z-]+(\|[a-z-]+)+$/.test(value);
    return {
      long: optionName(key),
      short: short && `-${short}`,
      description,
      value,
      choices: isChoice ? value.split("|") : [],
    };
  });
}

const isPath = ({ value }: Option) => value === "PATH" || value === "FILE" || value === "DIR";

/** Quotes for the three shells: names and texts are ours, and have no single quote. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "")}'`;
}

function bash(commands: readonly Command[]): string {
  const cases = commands.map(({ name, options, operands }) => {
    const words = [
      ...options.flatMap(({ long, short }) => (short === undefined ? [long] : [long, short])),
      ...operands,
    ];
    return `    ${name}) words=${quoted(words.join(" "))} ;;`;
  });
  const byValue = new Map<string, Set<string>>();
  const paths = new Set<string>();
  for (const option of commands.flatMap(({ options }) => options)) {
    if (option.choices.length > 0) {
      const key = option.choices.join(" ");
      byValue.set(key, (byValue.get(key) ?? new Set()).add(option.long));
    } else if (isPath(option)) paths.add(option.long);
  }
  const values = [...byValue].map(
    ([choices, names]) =>
      `    ${[...names].join("|")}) COMPREPLY=($(compgen -W ${quoted(choices)} -- "$current")); return ;;`,
  );
  return `# bash completion of kubelet-probe: source <(kubelet-probe completion bash)
_kubelet_probe() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} words=
  # --name=value comes as three words.
  if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quoted(commands.map(({ name }) => name).join(" "))} -- "$current"))
    return
  fi
  case $previous in
${values.join("\n")}
    ${[...paths].join("|")}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _kubelet_probe kubelet-probe
`;
}

function zsh(commands: readonly Command[]): string {
  // In a specification of _arguments a colon ends a field, and brackets end the description.
  const text = (description: string) => description.replace(/[[\]:]/g, "\\$&");
  const specification = (option: Option) => {
    const { long, short, value, choices } = option;
    const description = text(option.description);
    const action = choices.length > 0 ? `(${choices.join(" ")})` : isPath(option) ? "_files" : " ";
    const rest = value === undefined ? "" : `:${value.replaceAll("|", " or ").replace(/[:[\]]/g, "")}:${action}`;
    const names =
      short === undefined
        ? [`${long}${value === undefined ? "" : "="}`]
        : [`${long}${value === undefined ? "" : "="}`, short];
    return names.map((name) => quoted(`*${name}[${description}]${rest}`));
  };
  const cases = commands.map(({ name, options, operands }) => {
    const words = operands.length === 0 ? [] : [quoted(`*:argument:(${operands.join(" ")})`)];
    return `    ${name}) _arguments ${[...options.flatMap(specification), ...words].join(" \\\n        ") || "':'"} ;;`;
  });
  const names = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(":", "\\:")}`)}`);
  return `#compdef kubelet-probe
# zsh completion of kubelet-probe: in a folder of fpath as _kubelet-probe
_kubelet_probe() {
  local -a commands=(
${names.join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${cases.join("\n")}
  esac
}
if [[ $funcstack[1] == _kubelet-probe ]]; then _kubelet_probe "$@"; else compdef _kubelet_probe kubelet-probe; fi
`;
}

function fish(commands: readonly Command[]): string {
  const lines = [
    "# fish completion of kubelet-probe: kubelet-probe completion fish | source",
    "complete -c kubelet-probe -f",
    ...commands.map(
      ({ name, summary }) => `complete -c kubelet-probe -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
    ),
  ];
  for (const { name, options, operands } of commands) {
    const when = `-n ${quoted(`__fish_seen_subcommand_from ${name}`)}`;
    for (const option of options) {
      const parts = [`complete -c kubelet-probe ${when} -l ${option.long.slice(2)}`];
      if (option.short !== undefined) parts.push(`-s ${option.short.slice(1)}`);
      if (option.choices.length > 0) parts.push(`-x -a ${quoted(option.choices.join(" "))}`);
      else if (isPath(option)) parts.push("-r -F");
      else if (option.value !== undefined) parts.push("-x");
      lines.push([...parts, `-d ${quoted(option.description)}`].join(" "));
    }
    if (operands.length > 0) lines.push(`complete -c kubelet-probe ${when} -a ${quoted(operands.join(" "))}`);
  }
  return `${lines.join("\n")}\n`;
}
