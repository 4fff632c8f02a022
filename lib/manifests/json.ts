import { type Fields, maxDepth, type NumberText, type Tick, type Value } from "./value.ts";

const quote = 0x22;
const backslash = 0x5c;
const literals = /true|false|null/y;
const numbers = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const plain = /[^"\\\u0000-\u001f]*/y;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** Values are never written to, so what is small and frequent can be shared; 10 MiB of numbers would take 1 GB. */
const emptyItems: readonly Value[] = [];
const emptyFields: Fields = { fields: [] };
const small = new Map<string, NumberText>();

function numberText(number: string): NumberText {
  if (number.length > 3) return { number };
  let shared = small.get(number);
  if (shared === undefined) {
    shared = { number };
    small.set(number, shared);
  }
  return shared;
}

/**
 * Reads one JSON text as Go's encoding/json does: RFC 8259, no deeper than {@link maxDepth}, nothing after the value.
 * An unpaired surrogate escape becomes U+FFFD. JSON.parse will not do: it drops repeated keys and the spelling of
 * numbers. It keeps its own stack, so depth costs memory and not the call stack. Throws SyntaxError.
 */
export function parseJson(text: string, tick: Tick = () => {}): Value {
  let at = 0;
  const open: ({ items: Value[] } | { fields: [string, Value][]; key: string })[] = [];

  const refuse = (what: string): never => {
    const line = text.slice(0, at).split("\n").length;
    throw new SyntaxError(`line ${line}: ${what}`);
  };
  const blank = (): void => {
    for (;;) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      at++;
    }
  };
  const match = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };
  const string = (): string => {
    at++;
    let result = "";
    for (;;) {
      result += match(plain);
      const code = text.charCodeAt(at);
      if (code === quote) {
        at++;
        return result.isWellFormed() ? result : result.toWellFormed();
      }
      if (code !== backslash)
        return refuse(at < text.length ? "a control character in a string" : "a string does not end");
      const letter = text[at + 1] ?? "";
      if (letter === "u") {
        const digits = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) return refuse("a \\u escape without four hexadecimal digits");
        result += String.fromCharCode(Number.parseInt(digits, 16));
        at += 6;
        continue;
      }
      const meant = escapes[letter];
      if (meant === undefined) return refuse("an escape that JSON does not know");
      result += meant;
      at += 2;
    }
  };
  const key = (): string => {
    blank();
    if (text.charCodeAt(at) !== quote) return refuse("a key in quotes is expected");
    const name = string();
    blank();
    if (text[at] !== ":") return refuse("a colon is expected after a key");
    at++;
    return name;
  };

  for (;;) {
    tick();
    blank();
    let value: Value;
    const first = text[at];
    if (first === "{" || first === "[") {
      at++;
      blank();
      if (open.length >= maxDepth) refuse("nested deeper than 10000");
      if (first === "{") {
        if (text[at] !== "}") {
          open.push({ fields: [], key: key() });
          continue;
        }
        value = emptyFields;
      } else {
        if (text[at] !== "]") {
          open.push({ items: [] });
          continue;
        }
        value = emptyItems;
      }
      at++;
    } else if (first === '"') {
      value = string();
    } else {
      const literal = match(literals);
      if (literal !== "") {
        value = literal === "null" ? null : literal === "true";
      } else {
        const number = match(numbers);
        if (number === "") refuse(at < text.length ? "a value is expected" : "the text ends too early");
        value = numberText(number);
      }
    }
    for (;;) {
      const parent = open.at(-1);
      blank();
      if (parent === undefined) {
        if (at < text.length) refuse("something follows the value");
        return value;
      }
      if ("items" in parent) {
        parent.items.push(value);
        if (text[at] === "]") value = parent.items;
        else if (text[at] !== ",") refuse("a comma or ] is expected");
        else {
          at++;
          break;
        }
      } else {
        parent.fields.push([parent.key, value]);
        if (text[at] === "}") value = { fields: parent.fields };
        else if (text[at] !== ",") refuse("a comma or } is expected");
        else {
          at++;
          parent.key = key();
          break;
        }
      }
      open.pop();
      at++;
    }
  }
}
