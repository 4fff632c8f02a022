// How an option is declared: one entry of a valibot schema says how its text becomes a value, and what help, flags,
// environment variables, JSON and documentation say of it.

import * as v from "valibot";
import { durationForm, parseDuration } from "./duration.ts";
import { parseRange, rangeForm } from "./range.ts";

/** What is said of an option besides its schema. */
export interface OptionNotes {
  /** The word for its value in help, such as DURATION; undefined for a flag. */
  readonly value?: string | undefined;
  readonly description: string;
  /** A one-letter form. */
  readonly short?: string | undefined;
  /** Given several times, its values are joined by commas. */
  readonly list?: boolean | undefined;
  /** Only taken where the check is run by itself, not in `all`. */
  readonly alone?: boolean | undefined;
  /** Only taken from the command line: a variable that tells probes where to read must not tell others where to write. */
  readonly noVariable?: boolean | undefined;
  /** What stands for it where it is not given. */
  readonly fallback?: string | undefined;
}

/** A valibot schema from an option's text to its value. */
export type OptionSchema<T> = v.GenericSchema<string | undefined, T>;

const notesOf = new WeakMap<object, OptionNotes>();

/** What was said of an option when it was declared. */
export function notes(schema: object): OptionNotes {
  return notesOf.get(schema)!;
}

type Parse<T> = (text: string) => T | undefined;

function textSchema<T>(parse: Parse<T>, accepted: string) {
  return v.pipe(
    v.string(),
    v.rawTransform<string, T>(({ dataset, addIssue, NEVER }) => {
      const value = parse(dataset.value);
      if (value !== undefined) return value;
      addIssue({ message: accepted });
      return NEVER;
    }),
  );
}

/**
 * An option that may be left out.
 * @param parse Gives undefined for a text that is not accepted.
 * @param accepted What is, for the error message.
 */
export function option<T>(parse: Parse<T>, accepted: string, about: OptionNotes): OptionSchema<T | undefined> {
  const schema = v.optional(textSchema(parse, accepted));
  notesOf.set(schema, about);
  return schema;
}

/** An option that has a value where it is left out: `fallback`, read as if it were given. */
export function optionWithDefault<T>(
  parse: Parse<T>,
  accepted: string,
  about: OptionNotes & { readonly fallback: string },
): OptionSchema<T> {
  const schema = v.optional(textSchema(parse, accepted), about.fallback);
  notesOf.set(schema, about);
  return schema;
}

const flagWords: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["yes", true],
  ["1", true],
  ["false", false],
  ["no", false],
  ["0", false],
]);

/** An option without a value on the command line; `=false` or an environment variable can switch it off. */
export function flag(description: string, short?: string): OptionSchema<boolean> {
  const schema = v.optional(
    textSchema((text) => flagWords.get(text.toLowerCase()), "true or false"),
    "false",
  );
  notesOf.set(schema, { description, short });
  return schema;
}

/** A text that is not empty. */
export const anyText: Parse<string> = (text) => text || undefined;

/** A path that does not depend on the current folder, which plays no part in what the binary does. */
export const absolutePath: [Parse<string>, string] = [
  (text) => (text.startsWith("/") ? text : undefined),
  "an absolute path",
];

/** One of some words. */
export function oneOf<T extends string>(...words: readonly T[]): [Parse<T>, string] {
  return [(text) => words.find((word) => word === text), words.join(", ")];
}

/** A duration in ms. */
export const duration: [Parse<number>, string] = [parseDuration, durationForm];

const longestMs = 500 * 3_600_000;

/** A duration of at least one millisecond. */
export const positiveDuration: [Parse<number>, string] = [
  (text) => {
    const ms = parseDuration(text);
    // A timer of the runtime counts in 31 bits of ms, which are 596 hours, and what comes after the deadline needs its own.
    return ms !== undefined && ms >= 1 && ms <= longestMs ? ms : undefined;
  },
  `${durationForm}, from 1ms to 500h`,
];

/** A range of the Monitoring Plugins guidelines. */
export const range: [Parse<ReturnType<typeof parseRange>>, string] = [parseRange, rangeForm];

/** A whole number in decimal, both ends included. */
export function wholeNumber(least: number, most: number): [Parse<number>, string] {
  return [
    (text) => {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      return value >= least && value <= most ? value : undefined;
    },
    `a whole number from ${least} to ${most}`,
  ];
}

/** A list of at least one item, separated by commas; empty items and spaces around them do not count. */
export function listOf<T>([parse, accepted]: [Parse<T>, string]): [Parse<T[]>, string] {
  return [
    (text) => {
      const items = text
        .split(",")
        .map((item) => item.trim())
        .filter((item) => item !== "");
      const values = items.map(parse);
      return values.length > 0 && values.every((value) => value !== undefined) ? (values as T[]) : undefined;
    },
    `${accepted}; several with commas between`,
  ];
}
