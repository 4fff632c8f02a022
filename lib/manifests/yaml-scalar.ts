import type { ScalarNode } from "./yaml-parse.ts";

/** What a scalar stands for. Integers are kept whole; go-yaml tells int from uint64, which only a key shows. */
export type Scalar = null | boolean | string | bigint | number;

const standard = "tag:yaml.org,2002:";
const words = new Map<string, null | boolean | number>([
  ...["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"].map((word) => [word, true] as const),
  ...["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"].map((word) => [word, false] as const),
  ...["", "~", "null", "Null", "NULL"].map((word) => [word, null] as const),
  ...[".nan", ".NaN", ".NAN"].map((word) => [word, Number.NaN] as const),
  ...[".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"].map((word) => [word, Number.POSITIVE_INFINITY] as const),
  ...["-.inf", "-.Inf", "-.INF"].map((word) => [word, Number.NEGATIVE_INFINITY] as const),
]);
const int64 = { least: -(2n ** 63n), most: 2n ** 63n - 1n };
const uint64 = 2n ** 64n - 1n;

/**
 * Resolves a scalar as go-yaml v2 does for `interface{}`: YAML 1.1 booleans with y and n, integers in base 2, 8 (also
 * without the o), 10 and 16 with underscores anywhere, no base 60, and a date stays a text. Throws SyntaxError where
 * the text does not fit its tag.
 */
export function resolveScalar(node: ScalarNode): Scalar {
  const { value, tag } = node;
  if (tag === "" && !node.implicit) return value;
  const refuse = (): never => {
    throw new SyntaxError(`line ${node.line}: a value that does not fit its tag`);
  };
  if (tag === "") return fromText(value, true);
  if (!tag.startsWith(standard)) return value;
  switch (tag.slice(standard.length)) {
    case "str":
      return value;
    case "binary":
      return fromBase64(value) ?? refuse();
    case "null":
      return fromText(value, false) === null ? null : refuse();
    case "bool": {
      const found = fromText(value, false);
      return typeof found === "boolean" ? found : refuse();
    }
    case "int": {
      const found = fromText(value, false);
      return typeof found === "bigint" ? found : refuse();
    }
    case "float": {
      const found = fromText(value, false);
      if (typeof found === "bigint") return found <= int64.most ? Number(found) : refuse();
      return typeof found === "number" ? found : refuse();
    }
    case "timestamp":
      return isTimestamp(value) ? value : refuse();
    default:
      return value;
  }
}

/** Whether a key is YAML 1.1's merge key. */
export function isMergeKey(node: ScalarNode): boolean {
  return node.value === "<<" && (node.implicit || node.tag === `${standard}merge`);
}

/** What a plain scalar without a tag stands for. */
export function resolvePlain(text: string): Scalar {
  return fromText(text, true);
}

/** Longer than every one of {@link words}. */
const longWord = 6;
/** How everything begins that is no word and may still be something else than a text. */
const unlikeText = /^(?:[0-9]|[-+][0-9._]|\.)/;
/** An integer in Go's own spelling that surely fits into 64 bits. */
const ordinary = /^(?:0|-?[1-9][0-9]{0,17})$/;

function fromText(text: string, implicit: boolean): Scalar {
  if (text.length < longWord) {
    const word = words.get(text);
    if (word !== undefined) return word;
  }
  if (!unlikeText.test(text)) return text;
  if (ordinary.test(text)) return BigInt(text);
  if (text.startsWith(".")) {
    const float = decimal(text.replaceAll("_", ""));
    return float === null || !underscoresFit(text) ? text : float;
  }
  if (implicit && isTimestamp(text)) return text;
  const plain = text.replaceAll("_", "");
  const integer = integral(plain);
  if (integer !== null) return integer;
  return decimal(plain) ?? text;
}

/** An integer as Go's ParseInt and ParseUint read it with base 0; null for none, and for one over 64 bits. */
function integral(text: string): bigint | null {
  const [, sign, digits] = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)$/.exec(text) ?? [];
  if (digits === undefined) return null;
  const value = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits}` : digits);
  if (sign === "") return value <= uint64 ? value : null;
  const signed = sign === "-" ? -value : value;
  return signed >= int64.least && signed <= int64.most ? signed : null;
}

function decimal(text: string): number | null {
  if (!/^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(text)) return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

/** Go takes underscores only between digits. */
function underscoresFit(text: string): boolean {
  return !text.includes("_") || !/(^|[^0-9])_|_([^0-9]|$)/.test(text);
}

const date = "[0-9]{4}-(?:1[0-2]|0?[1-9])-(?:3[01]|[12][0-9]|0?[1-9])";
const time = "(?:2[0-3]|[01]?[0-9]):[0-5]?[0-9]:[0-5]?[0-9](?:[.,][0-9]+)?";
const timestamp = new RegExp(`^${date}(?:[Tt]${time}(?:Z|[-+][0-9]{2}:[0-9]{2})| ${time})?$`);

function isTimestamp(text: string): boolean {
  if (!timestamp.test(text)) return false;
  const [year, month, day] = text.split(/[-Tt ]/, 3).map(Number);
  return day! <= new Date(Date.UTC(2000 + (year! % 400), month!, 0)).getUTCDate();
}

function fromBase64(text: string): string | null {
  const joined = text.replaceAll(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(joined)) return null;
  return decodeLossy(Buffer.from(joined, "base64"));
}

/** UTF-8 with one U+FFFD for every byte that belongs to no character, as Go replaces them. */
export function decodeLossy(bytes: Uint8Array): string {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    return decoder.decode(bytes);
  } catch {
    let result = "";
    for (let at = 0; at < bytes.length; ) {
      const first = bytes[at]!;
      const width = first < 0x80 ? 1 : first >> 5 === 6 ? 2 : first >> 4 === 14 ? 3 : first >> 3 === 30 ? 4 : 1;
      try {
        result += decoder.decode(bytes.subarray(at, at + width));
        at += width;
      } catch {
        result += "\ufffd";
        at++;
      }
    }
    return result;
  }
}

/** A float as Go's JSON writer spells it; null for the ones JSON cannot say. */
export function floatText(value: number): string | null {
  if (!Number.isFinite(value)) return null;
  return Object.is(value, -0) ? "-0" : String(value);
}

/** A float as a mapping key: Go's shortest form of the 32-bit float next to it. */
export function floatKey(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  const narrow = Math.fround(value);
  if (!Number.isFinite(narrow)) return narrow > 0 ? ".inf" : "-.inf";
  if (narrow === 0) return Object.is(narrow, -0) ? "-0" : "0";
  let shortest = "";
  for (let digits = 1; digits <= 9 && (shortest === "" || Math.fround(Number(shortest)) !== narrow); digits++) {
    shortest = narrow.toExponential(digits - 1);
  }
  const [mantissa = "", power = "0"] = shortest.split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 6) {
    const size = Math.abs(exponent).toString().padStart(2, "0");
    return `${mantissa.replace(/\.?0+$/, "")}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  return String(Number(shortest));
}
