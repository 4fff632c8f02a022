/**
 * A manifest between its text and the typed pod: what JSON can say, with nothing lost that the typed decoding looks at.
 * Numbers keep their spelling (`1e3` is no integer to Go), objects their order and their repeated keys (the last counts,
 * but an object under a repeated key is decoded INTO the one before it).
 */
export type Value = null | boolean | string | NumberText | readonly Value[] | Fields;

/** A number as JSON spells it. */
export interface NumberText {
  readonly number: string;
}

/** An object's keys and values as they came. */
export interface Fields {
  readonly fields: readonly (readonly [string, Value])[];
}

/** Whether a value is an object. */
export function isFields(value: Value): value is Fields {
  return value !== null && typeof value === "object" && "fields" in value;
}

/** Whether a value is a number. */
export function isNumber(value: Value): value is NumberText {
  return value !== null && typeof value === "object" && "number" in value;
}

/** Whether a value is an array. */
export function isArray(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** How deep Go's JSON reader goes (encoding/json, maxNestingDepth). */
export const maxDepth = 10_000;

/** Called for every step of reading a text; throws when the time for it is over. */
export type Tick = () => void;
