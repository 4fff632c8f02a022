/**
 * A YAML stream's characters. `ends` are the character positions up to which the text is known after each further read
 * of 512 bytes; it is null unless the stream holds something for which that matters (see {@link decodeYaml}).
 */
export interface YamlText {
  readonly text: string;
  readonly ends: readonly number[] | null;
  /** What is wrong with the character after the last of `ends`; null when the stream is sound to its end. */
  readonly fault: string | null;
}

const chunk = 512;

/**
 * Decodes a YAML stream as libyaml does: UTF-16 with a byte order mark, UTF-8 otherwise, no control characters. libyaml
 * reads 512 bytes at a time and only as far as the first document needs, so a bad byte far behind the first document
 * does no harm, and one in the same 512 bytes does. Only for such a stream (and one with a byte order mark inside, which
 * libyaml treats by its place in that buffer) are the borders kept.
 */
export function decodeYaml(bytes: Uint8Array): YamlText {
  if (bytes.length === 0) return { text: "\n", ends: null, fault: null };
  const utf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (!utf16) {
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      const start = text.charCodeAt(0) === 0xfeff ? 1 : 0;
      if (!/[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]/u.test(text.slice(start))) {
        return { text: text.slice(start), ends: null, fault: null };
      }
    } catch {
      // Not UTF-8: read on with care.
    }
  }
  return decodeChunks(bytes, utf16 ? (bytes[0] === 0xff ? "le" : "be") : "utf8");
}

function decodeChunks(bytes: Uint8Array, encoding: "utf8" | "le" | "be"): YamlText {
  const ends: number[] = [];
  const parts: string[] = [];
  let length = 0;
  let at = encoding !== "utf8" ? 2 : bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  for (let end = Math.min(chunk, bytes.length); ; end = Math.min(at + chunk, bytes.length)) {
    const last = end === bytes.length;
    let part = "";
    while (at < end) {
      const [value, width] = encoding === "utf8" ? utf8(bytes, at, end, last) : utf16(bytes, at, end, last, encoding);
      if (width === 0) break;
      if (typeof value === "string") return { text: parts.join(""), ends, fault: value };
      if (!allowed(value)) return { text: parts.join(""), ends, fault: "a control character" };
      part += String.fromCodePoint(value);
      at += width;
    }
    parts.push(part);
    length += part.length;
    if (last) break;
    ends.push(length);
  }
  return { text: parts.join(""), ends, fault: null };
}

function allowed(value: number): boolean {
  return (
    value === 0x09 ||
    value === 0x0a ||
    value === 0x0d ||
    (value >= 0x20 && value <= 0x7e) ||
    value === 0x85 ||
    (value >= 0xa0 && value <= 0xd7ff) ||
    (value >= 0xe000 && value <= 0xfffd) ||
    (value >= 0x10000 && value <= 0x10ffff)
  );
}

/** One character and its width; width 0 where the rest of it is in the next chunk; a text where it is none. */
type Decoded = readonly [number | string, number];

const short: Decoded = [0, 0];

function utf8(bytes: Uint8Array, at: number, end: number, last: boolean): Decoded {
  const first = bytes[at]!;
  if (first < 0x80) return [first, 1];
  const width = first >> 5 === 6 ? 2 : first >> 4 === 14 ? 3 : first >> 3 === 30 ? 4 : 0;
  if (width === 0) return ["bytes that are no UTF-8", 1];
  if (at + width > end) return last ? ["bytes that are no UTF-8", 1] : short;
  let value = first & (0xff >> (width + 1));
  for (let i = 1; i < width; i++) {
    const next = bytes[at + i]!;
    if ((next & 0xc0) !== 0x80) return ["bytes that are no UTF-8", 1];
    value = (value << 6) | (next & 0x3f);
  }
  const least = width === 2 ? 0x80 : width === 3 ? 0x800 : 0x10000;
  if (value < least || (value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff) return ["bytes that are no UTF-8", 1];
  return [value, width];
}

function utf16(bytes: Uint8Array, at: number, end: number, last: boolean, order: "le" | "be"): Decoded {
  const unit = (i: number): number =>
    order === "le" ? bytes[i]! | (bytes[i + 1]! << 8) : (bytes[i]! << 8) | bytes[i + 1]!;
  if (at + 2 > end) return last ? ["half a UTF-16 character", 1] : short;
  const value = unit(at);
  if ((value & 0xfc00) === 0xdc00) return ["an unpaired UTF-16 surrogate", 2];
  if ((value & 0xfc00) !== 0xd800) return [value, 2];
  if (at + 4 > end) return last ? ["an unpaired UTF-16 surrogate", 2] : short;
  const low = unit(at + 2);
  if ((low & 0xfc00) !== 0xdc00) return ["an unpaired UTF-16 surrogate", 2];
  return [0x10000 + ((value & 0x3ff) << 10) + (low & 0x3ff), 4];
}
