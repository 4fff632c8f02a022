// Reads protobuf's wire format (protobuf.dev "Encoding") field by field, without a description of the message: reading
// descriptors takes longer than a whole probe may.

/** Thrown for bytes that are not valid protobuf. */
export class ProtobufError extends Error {
  override readonly name = "ProtobufError";
}

/** A place in a message. */
export interface Cursor {
  readonly bytes: Uint8Array;
  at: number;
}

/** Wire type 2, of texts, bytes and messages. */
export const lengthDelimited = 2;

/**
 * Reads a tag (field number times eight, plus wire type), a length, or a value of which the low 53 bits count.
 * @param end Where the message ends.
 */
export function readVarint(cursor: Cursor, end: number): number {
  const { bytes } = cursor;
  let at = cursor.at;
  let byte = at < end ? bytes[at++]! : fail("it ends early");
  let value = byte & 127;
  for (let factor = 128; byte >= 128; factor *= 128) {
    if (at >= end) fail("it ends early");
    if (at - cursor.at >= 10) fail("a varint of more than ten bytes");
    byte = bytes[at++]!;
    value += (byte & 127) * factor;
  }
  cursor.at = at;
  return value;
}

/** Reads a varint as the signed 32-bit number it stands for. */
export function readInt32(cursor: Cursor, end: number): number {
  const { bytes } = cursor;
  let value = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    if (cursor.at >= end) fail("it ends early");
    const byte = bytes[cursor.at++]!;
    if (shift < 32) value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  return fail("a varint of more than ten bytes");
}

/** Reads the length of a text, bytes or a message, and returns where it ends. */
export function readEnd(cursor: Cursor, end: number): number {
  const length = readVarint(cursor, end);
  const inner = cursor.at + length;
  if (inner > end) fail("a field over the end of its message");
  return inner;
}

/** Reads a text; what is not UTF-8 becomes U+FFFD. */
export function readText(cursor: Cursor, end: number): string {
  const inner = readEnd(cursor, end);
  const { bytes, at } = cursor;
  cursor.at = inner;
  return Buffer.from(bytes.buffer, bytes.byteOffset + at, inner - at).toString("utf8");
}

/** Steps over the value behind a tag. */
export function skipField(cursor: Cursor, tag: number, end: number): void {
  if (tag < 8) fail("a field with number 0");
  switch (tag & 7) {
    case 0:
      readVarint(cursor, end);
      return;
    case 1:
      cursor.at += 8;
      break;
    case lengthDelimited:
      cursor.at = readEnd(cursor, end);
      return;
    case 5:
      cursor.at += 4;
      break;
    default:
      fail(`a field of wire type ${tag & 7}`);
  }
  if (cursor.at > end) fail("it ends early");
}

function fail(what: string): never {
  throw new ProtobufError(what);
}
