import type { Fields, Tick, Value } from "./value.ts";
import { floatText, resolvePlain } from "./yaml-scalar.ts";

/**
 * A line of which nearly every manifest is made: its indentation, a dash, a key, a value, a comment, all but the first
 * optional. A value is `{}`, `[]`, a quoted text without escapes or a plain one; in it are neither a colon nor a # that
 * could mean something. Everything is printable ASCII but what a comment says.
 */
const line = ((): RegExp => {
  const comment = "#[^\\n\\r\\x85\\u2028\\u2029]*";
  // Longer keys may run into the limit of 1024 characters.
  const key = "[\\w./][\\w./-]{0,255}";
  const solid = "[!-9;-~]";
  const colons = `(?::+${solid}+)*`;
  const plain = `(?:[$()+./0-9;<=A-Z\\\\^_a-z~]|-(?=[!-~]))${solid}*${colons}(?: +[!"$-9;-~]${solid}*${colons})*`;
  const value = `\\{\\}|\\[\\]|"[ !#-\\[\\]-~]*"|'[ -&(-~]*'|${plain}`;
  // All blanks or none: a file of nothing but them takes time by its length, not by the square of it.
  const blanks = " +(?! )";
  return new RegExp(
    `( *)(?! )(-${blanks})?(?:(${key}):(?:${blanks}|(?=\\n)))?(?:(${value})(?: +${comment}| *)|${comment})?\\n`,
    "y",
  );
})();

/** Bounds what a line, and how deep a file, can be; a manifest has a few KiB. */
const longest = 64 * 1024;

/** A collection whose lines are not over yet: a mapping or a sequence. */
interface Open {
  readonly column: number;
  readonly fields: [string, Value][] | null;
  readonly items: Value[] | null;
  /** A mapping's keys so far. */
  readonly keys: Set<string> | null;
  readonly under: Open | null;
}

/**
 * Reads a YAML document line by line that is nothing but block mappings and sequences of scalars on one line, in a tenth
 * of the time the whole language takes. What it gives is what {@link parseYaml} and {@link yamlValue} make of the same
 * text, with nothing behind the first document; null for a text that is more than that, or wrong, which is not for it
 * to say.
 */
export function readQuickly(text: string, tick: Tick): Fields | null {
  if (text.length > longest) return null;
  const lines = text.endsWith("\n") ? text : `${text}\n`;
  let root: Fields | null = null;
  let top: Open | null = null;
  /** The key of the innermost mapping whose value has not come; it stays null when none comes. */
  let waiting: [string, Value] | null = null;
  let marked = false;
  line.lastIndex = 0;
  while (line.lastIndex < lines.length) {
    tick();
    const found = line.exec(lines);
    if (found === null) return null;
    const column = found[1]!.length;
    const dash = found[2];
    const key = found[3];
    const spelled = found[4];
    if (dash === undefined) {
      if (key === undefined) {
        if (spelled === undefined) continue;
        // The rest of a plain text that goes on, or a document's mark; one may stand before everything.
        if (spelled !== "---" || column > 0 || marked || root !== null) return null;
        marked = true;
        continue;
      }
      if (root === null) {
        const fields: [string, Value][] = [];
        root = { fields };
        top = { column, fields, items: null, keys: new Set(), under: null };
      } else if (waiting !== null && column > top!.column) {
        const fields: [string, Value][] = [];
        waiting[1] = { fields };
        top = { column, fields, items: null, keys: new Set(), under: top };
      } else {
        while (top !== null && (top.column > column || (top.column === column && top.items !== null))) top = top.under;
        if (top === null || top.column < column) return null;
      }
    } else {
      if (waiting !== null && column >= top!.column) {
        const items: Value[] = [];
        waiting[1] = items;
        top = { column, fields: null, items, keys: null, under: top };
      } else {
        while (top !== null && top.column > column) top = top.under;
        if (top === null || top.column < column || top.items === null) return null;
      }
      if (key === undefined) {
        const value = spelled === undefined ? undefined : readValue(spelled);
        if (value === undefined) return null;
        top.items!.push(value);
        waiting = null;
        continue;
      }
      const fields: [string, Value][] = [];
      top.items!.push({ fields });
      top = { column: column + dash.length, fields, items: null, keys: new Set(), under: top };
    }
    const value = spelled === undefined ? null : readValue(spelled);
    const keys = top!.keys!;
    if (value === undefined || keys.has(key) || typeof resolvePlain(key) !== "string") return null;
    keys.add(key);
    const field: [string, Value] = [key, value];
    top!.fields!.push(field);
    waiting = spelled === undefined ? field : null;
  }
  return root;
}

/** What a value stands for; undefined for one that JSON cannot say. */
function readValue(spelled: string): Value | undefined {
  switch (spelled.charCodeAt(0)) {
    case 0x22:
    case 0x27:
      return spelled.slice(1, -1);
    case 0x7b:
      return { fields: [] };
    case 0x5b:
      return [];
  }
  const scalar = resolvePlain(spelled);
  if (typeof scalar === "bigint") return { number: scalar.toString() };
  if (typeof scalar !== "number") return scalar;
  const number = floatText(scalar);
  return number === null ? undefined : { number };
}
