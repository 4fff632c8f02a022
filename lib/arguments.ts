// Turns a command line and the environment into the values of an option schema. Which options there are, and what they
// accept, is known from the schema alone.

import * as v from "valibot";
import type { OptionEntries, OptionValues } from "./check.ts";
import { Fault } from "./fault.ts";
import { notes } from "./option.ts";
import { plain } from "./plain.ts";

/** `--init-grace` for `initGrace`. */
export function optionName(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `KUBELET_PROBE_INIT_GRACE` for `initGrace`. */
export function variableName(key: string): string {
  return `KUBELET_PROBE_${key.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
}

/** The values of the options, and the words that are none. */
export interface Arguments<T extends OptionEntries> {
  readonly values: OptionValues<T>;
  /** `--name` or `NAME` for each value that was given. */
  readonly from: Readonly<Partial<Record<keyof T & string, string>>>;
}

interface Given {
  readonly text: string;
  readonly from: string;
}

/**
 * @param words What follows the check's name.
 * @param environment Gives a value to an option that the words do not; an empty one counts as none.
 * @throws Fault BadUsage, one line that names the option, its value and what is accepted.
 */
export function parseArguments<T extends OptionEntries>(
  entries: T,
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Arguments<T> {
  const given = readWords(entries, words);
  for (const key in entries) {
    if (notes(entries[key]!).noVariable) continue;
    const from = variableName(key);
    const text = environment[from];
    if (text !== undefined && text !== "" && !given.has(key)) given.set(key, { text, from });
  }

  const values: Record<string, unknown> = {};
  const from: Record<string, string> = {};
  for (const key in entries) {
    const found = given.get(key);
    const result = v.safeParse(entries[key]!, found?.text);
    if (!result.success) {
      const what = found?.from.startsWith("--") ? "Option" : "Environment variable";
      throw usage(`${what} ${found?.from} is ${quote(found?.text ?? "")}: accepted is ${result.issues[0].message}`);
    }
    values[key] = result.output;
    if (found !== undefined) from[key] = found.from;
  }
  return { values: values as OptionValues<T>, from: from as Arguments<T>["from"] };
}

function readWords(entries: OptionEntries, words: readonly string[]): Map<string, Given> {
  const byName = new Map<string, string>();
  for (const key in entries) {
    byName.set(optionName(key), key);
    const { short } = notes(entries[key]!);
    if (short !== undefined) byName.set(`-${short}`, key);
  }
  const given = new Map<string, Given>();
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    // `--name`, `--name=value`, `-n`, `-nvalue`, `-n=value`.
    const [, long, short, attached] = /^(?:(--[^=]*)=|(-[a-zA-Z])(?=[\s\S])=?)([\s\S]*)$/.exec(word) ?? [];
    const name = long ?? short ?? word;
    const hasValue = attached !== undefined;
    const key = byName.get(name);
    if (key === undefined) {
      if (!word.startsWith("-") || word === "-")
        throw usage(`Unknown argument ${quote(word)}: only options follow the check`);
      throw usage(
        `Unknown option ${quote(name)}: accepted are ${[...byName.keys()].filter((n) => n.startsWith("--")).join(", ")}`,
      );
    }
    // Flags of one letter may stand together, as `-vv` does in the guidelines.
    if (hasValue && !name.startsWith("--") && notes(entries[key]!).value === undefined && word[2] !== "=") {
      rest.unshift(`-${attached}`);
      given.set(key, { text: "true", from: optionName(key) });
      continue;
    }
    const { value, list } = notes(entries[key]!);
    let text: string;
    if (hasValue) text = attached ?? "";
    else if (value === undefined) text = "true";
    else {
      const next = rest.shift();
      if (next === undefined) throw usage(`Option ${name} has no value: it takes ${value}`);
      text = next;
    }
    const before = given.get(key);
    if (before !== undefined && list) text = `${before.text},${text}`;
    given.set(key, { text, from: optionName(key) });
  }
  return given;
}

function quote(text: string): string {
  return `"${plain(text, 100)}"`;
}

function usage(message: string): Fault {
  return new Fault("BadUsage", message);
}
