import type { Decoded, Struct } from "./decode.ts";
import type { Quantity } from "./quantity.ts";

/** Reads decoded fields with Go's zero values for the missing ones. */

export function text(struct: Struct, field: string): string {
  const value = struct[field];
  return typeof value === "string" ? value : "";
}

export function integer(struct: Struct, field: string): number {
  const value = struct[field];
  return typeof value === "number" ? value : 0;
}

export function flag(struct: Struct, field: string): boolean {
  return struct[field] === true;
}

/** Whether a pointer, slice or map is set. */
export function isSet(struct: Struct, field: string): boolean {
  return struct[field] !== undefined;
}

/** A struct under a pointer; null for none. Decoding leaves nothing else in a field that the schema has as a struct. */
export function part(struct: Struct, field: string): Struct | null {
  const value = struct[field];
  return typeof value === "object" ? (value as Struct) : null;
}

const none: readonly never[] = [];

/** A list of structs; as with {@link part}, nothing else is in it. */
export function parts(struct: Struct, field: string): readonly Struct[] {
  const value = struct[field];
  return Array.isArray(value) ? (value as Struct[]) : none;
}

/** A list of texts. */
export function texts(struct: Struct, field: string): string[] {
  const value = struct[field];
  return Array.isArray(value) ? value.map((item) => (typeof item === "string" ? item : "")) : [];
}

/** A list of integers. */
export function integers(struct: Struct, field: string): number[] {
  const value = struct[field];
  return Array.isArray(value) ? value.map((item) => (typeof item === "number" ? item : 0)) : [];
}

/** A map from texts to texts. */
export function table(struct: Struct, field: string): ReadonlyMap<string, string> {
  const value = struct[field];
  const result = new Map<string, string>();
  if (value instanceof Map) for (const [key, item] of value) result.set(key, typeof item === "string" ? item : "");
  return result;
}

/** A map from texts to quantities. */
export function quantities(struct: Struct, field: string): ReadonlyMap<string, Quantity> {
  const value = struct[field];
  const result = new Map<string, Quantity>();
  if (value instanceof Map) for (const [key, item] of value) if (isQuantity(item)) result.set(key, item);
  return result;
}

export function quantity(struct: Struct, field: string): Quantity | null {
  const value = struct[field];
  return isQuantity(value) ? value : null;
}

function isQuantity(value: Decoded): value is Quantity {
  return (
    typeof value === "object" && !Array.isArray(value) && !(value instanceof Map) && typeof value.nano === "bigint"
  );
}

/** Told of each rule a pod breaks: the field, and what is wrong with it. Never with a value the field holds. */
export type Problem = (path: string, what: string) => void;
