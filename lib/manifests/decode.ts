import { podSchema } from "./pod-schema.ts";
import { parseQuantity, type Quantity } from "./quantity.ts";
import { isArray, isFields, isNumber, type Value } from "./value.ts";

/** A decoded struct: the fields that were given, by their JSON names. A zero value and a missing field are alike. */
export interface Struct {
  [field: string]: Decoded;
}

/** A decoded map from texts. */
export type Table = Map<string, Decoded>;

/** What a field holds. An `@IntOrString` is a number or a text, an `@Time` true, an `@FieldsV1` true. */
export type Decoded = undefined | string | number | boolean | Quantity | Struct | Table | Decoded[];

/** The first thing that kept a value from being a Pod. */
export interface TypeFault {
  /** Such as `spec.containers[0].image`. */
  readonly path: string;
  /** Such as `is a number, but has to be a text`. */
  readonly what: string;
}

interface Type {
  readonly kind: "string" | "bool" | "int32" | "int64" | "bytes" | "slice" | "map" | "struct" | "pointer" | "own";
  /** The element of a slice, map or pointer. */
  readonly of: Type | null;
  /** The name of a struct or of a type that reads its own JSON. */
  readonly name: string;
}

const types = new Map<string, Type>();
const structs = new Map<string, ReadonlyMap<string, Type>>();
let lines: ReadonlyMap<string, string> | undefined;

/** The fields of a struct of {@link podSchema}, read when they are first asked for. */
function fieldsOf(struct: string): ReadonlyMap<string, Type> {
  const known = structs.get(struct);
  if (known !== undefined) return known;
  lines ??= new Map(
    podSchema
      .trim()
      .split("\n")
      .map((line): [string, string] => [line.slice(0, line.indexOf(" ")), line]),
  );
  const fields = new Map<string, Type>();
  for (const field of (lines.get(struct) ?? "").split(" ").slice(1)) {
    const colon = field.indexOf(":");
    fields.set(field.slice(0, colon), typeOf(field.slice(colon + 1)));
  }
  structs.set(struct, fields);
  return fields;
}

function typeOf(spelled: string): Type {
  const known = types.get(spelled);
  if (known !== undefined) return known;
  let type: Type;
  if (spelled.startsWith("*")) type = { kind: "pointer", of: typeOf(spelled.slice(1)), name: "" };
  else if (spelled.startsWith("[]")) type = { kind: "slice", of: typeOf(spelled.slice(2)), name: "" };
  else if (spelled.startsWith("{}")) type = { kind: "map", of: typeOf(spelled.slice(2)), name: "" };
  else if (spelled.startsWith("@")) type = { kind: "own", of: null, name: spelled.slice(1) };
  else if (/^[A-Z]/.test(spelled)) type = { kind: "struct", of: null, name: spelled };
  else type = { kind: spelled as Type["kind"], of: null, name: "" };
  types.set(spelled, type);
  return type;
}

/**
 * What a slice holds beyond its length: Go decodes a repeated key's array into the elements of the one before it, also
 * into those a shorter array in between had cut off.
 */
const backing = new WeakMap<Decoded[], Decoded[]>();

/**
 * Decodes a value into a v1.Pod as sigs.k8s.io/json does: keys by their exact case, unknown ones dropped, null leaves
 * zero values, a repeated key decodes into what the first gave. The fault is the first value of a wrong type; the
 * kubelet then has no Pod, but what could be decoded is returned for the sake of a name to report.
 */
export function decodePod(value: Value): { readonly pod: Struct; readonly fault: TypeFault | null } {
  const trail: Trail = { at: [], fault: null };
  const pod: Struct = {};
  if (isFields(value)) decodeStruct(value.fields, "Pod", pod, trail);
  return { pod, fault: trail.fault };
}

/** Where the decoding is, and the first fault it met. */
interface Trail {
  /** Field names and indexes; null stands for a map's key, which may be the name of an annotation. */
  readonly at: (string | number | null)[];
  fault: TypeFault | null;
}

function pathOf(trail: Trail): string {
  let path = "";
  for (const step of trail.at) {
    if (typeof step === "string") path += path === "" ? step : `.${step}`;
    else path += `[${step ?? "…"}]`;
  }
  return path;
}

function decodeStruct(fields: readonly (readonly [string, Value])[], name: string, into: Struct, trail: Trail): void {
  const known = fieldsOf(name);
  const depth = trail.at.length;
  for (let i = 0; i < fields.length; i++) {
    const key = fields[i]![0];
    const type = known.get(key);
    if (type === undefined) continue;
    trail.at[depth] = key;
    const before = into[key];
    const decoded = decode(fields[i]![1], type, before, trail);
    if (decoded !== undefined) into[key] = decoded;
    else if (before !== undefined) delete into[key];
  }
  trail.at.length = depth;
}

/** Notes that a value is of a wrong type; what its field then holds. */
function refuse(value: Value, expected: string, before: Decoded, trail: Trail): Decoded {
  trail.fault ??= { path: pathOf(trail), what: `is ${describe(value)}, but has to be ${expected}` };
  return before;
}

/** Decodes a value into what a field held; that which it then holds. */
function decode(value: Value, type: Type, before: Decoded, trail: Trail): Decoded {
  switch (type.kind) {
    case "pointer":
      return value === null ? undefined : decode(value, type.of!, before ?? fresh(type.of!), trail);
    case "string":
      if (typeof value === "string") return value;
      return value === null ? before : refuse(value, "a text", before, trail);
    case "bool":
      if (typeof value === "boolean") return value;
      return value === null ? before : refuse(value, "true or false", before, trail);
    case "int32":
    case "int64": {
      if (value === null) return before;
      const integer = isNumber(value) ? wholeNumber(value.number, type.kind === "int32" ? 32 : 64) : null;
      return integer ?? refuse(value, "a whole number", before, trail);
    }
    case "bytes":
      if (value === null) return undefined;
      return typeof value === "string" || isArray(value) ? true : refuse(value, "a text", before, trail);
    case "slice": {
      if (value === null) return undefined;
      if (!isArray(value)) return refuse(value, "a list", before, trail);
      if (value.length === 0) return [];
      const of = type.of!;
      const held = Array.isArray(before) ? (backing.get(before) ?? before) : none;
      const result: Decoded[] = [];
      const depth = trail.at.length;
      for (let i = 0; i < value.length; i++) {
        trail.at[depth] = i;
        result.push(decode(value[i]!, of, i < held.length ? held[i] : fresh(of), trail));
      }
      trail.at.length = depth;
      if (held.length > result.length) backing.set(result, [...result, ...held.slice(result.length)]);
      return result;
    }
    case "map": {
      if (value === null) return undefined;
      if (!isFields(value)) return refuse(value, "an object", before, trail);
      const result: Table = before instanceof Map ? before : new Map();
      for (const [key, item] of value.fields) {
        trail.at.push(null);
        result.set(key, decode(item, type.of!, fresh(type.of!), trail));
        trail.at.pop();
      }
      return result;
    }
    case "struct": {
      if (value === null) return before;
      if (!isFields(value)) return refuse(value, "an object", before, trail);
      const result: Struct = isStruct(before) ? before : {};
      decodeStruct(value.fields, type.name, result, trail);
      return result;
    }
    case "own":
      return decodeOwn(value, type.name, before, trail);
  }
}

const none: readonly Decoded[] = [];

/** A value of a type that reads its JSON itself. */
function decodeOwn(value: Value, name: string, before: Decoded, trail: Trail): Decoded {
  switch (name) {
    case "Quantity": {
      if (value === null) return { nano: 0n, text: "0" };
      // It looks at the JSON text, so a character JSON must escape never fits.
      const text = isNumber(value) ? value.number : typeof value === "string" ? trimmed(value) : null;
      return (text === null ? null : parseQuantity(text)) ?? refuse(value, "a quantity", before, trail);
    }
    case "IntOrString": {
      if (typeof value === "string") return value;
      if (value === null) return typeof before === "number" ? before : 0;
      const integer = isNumber(value) ? wholeNumber(value.number, 32) : null;
      return integer ?? refuse(value, "a whole number or a text", before, trail);
    }
    case "Time":
      if (value === null) return undefined;
      if (typeof value === "string" && isTime(value)) return true;
      return refuse(value, "a time such as 2006-01-02T15:04:05Z", before, trail);
    default:
      return true;
  }
}

function trimmed(text: string): string | null {
  return /[\u0000-\u001f"\\<>&\u2028\u2029]/.test(text) ? null : text.replace(/^[\s\x85]+|[\s\x85]+$/g, "");
}

/** RFC 3339 as Go's time.Parse takes it: hours of one digit and a comma before the fraction are fine. */
function isTime(text: string): boolean {
  const found =
    /^(\d{4})-(0[1-9]|1[0-2])-(\d{2})T(\d{1,2}):([0-5]\d):([0-5]\d)(?:[.,]\d+)?(?:Z|[-+](\d{2}):([0-5]\d))$/.exec(text);
  if (found === null) return false;
  const [year = 0, month = 0, day = 0, hour = 0] = found.slice(1, 5).map(Number);
  const last = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  return day >= 1 && day <= last && hour < 24 && Number(found[7] ?? 0) <= 24;
}

function wholeNumber(text: string, bits: 32 | 64): number | null {
  if (!/^-?[0-9]+$/.test(text)) return null;
  if (text.length < 10) return Number(text);
  const value = BigInt(text);
  return BigInt.asIntN(bits, value) === value ? Number(value) : null;
}

function fresh(type: Type): Decoded {
  return type.kind === "struct" ? {} : type.kind === "string" ? "" : undefined;
}

function describe(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "string") return "a text";
  if (typeof value === "boolean") return `the boolean ${value}`;
  if (isNumber(value)) return "a number";
  return isArray(value) ? "a list" : "an object";
}

/** Whether a decoded value is a struct. */
export function isStruct(value: Decoded): value is Struct {
  return typeof value === "object" && !Array.isArray(value) && !(value instanceof Map) && !("nano" in value);
}
