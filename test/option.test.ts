import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as v from "valibot";
import {
  absolutePath,
  anyText,
  duration,
  flag,
  listOf,
  notes,
  type OptionSchema,
  oneOf,
  option,
  optionWithDefault,
  positiveDuration,
  range,
  wholeNumber,
} from "../lib/option.ts";

/** The value a text becomes, or what is accepted instead. */
function read<T>(schema: OptionSchema<T>, text: string | undefined): T | { readonly accepted: string } {
  const result = v.safeParse(schema, text);
  return result.success ? result.output : { accepted: result.issues[0].message };
}

const about = { description: "x" };

describe("an option", () => {
  test("may be left out", () => {
    assert.equal(read(option(anyText, "a path", about), undefined), undefined);
    assert.equal(read(option(anyText, "a path", about), "/s"), "/s");
  });

  test("says what is accepted", () => {
    assert.deepEqual(read(option(anyText, "a path", about), ""), { accepted: "a path" });
  });

  test("has its default read as if it were given", () => {
    const schema = optionWithDefault(...duration, { ...about, fallback: "5m" });
    assert.equal(read(schema, undefined), 300_000);
    assert.equal(read(schema, "1s"), 1000);
  });

  test("keeps what is said of it", () => {
    const schema = optionWithDefault(...duration, { value: "DURATION", description: "how long", fallback: "5m" });
    assert.deepEqual(notes(schema), { value: "DURATION", description: "how long", fallback: "5m" });
  });
});

describe("a flag", () => {
  const schema = flag("does it", "d");

  test("is off unless it is given", () => assert.equal(read(schema, undefined), false));
  for (const text of ["true", "yes", "1", "TRUE", "Yes"]) test(text, () => assert.equal(read(schema, text), true));
  for (const text of ["false", "no", "0", "False"]) test(text, () => assert.equal(read(schema, text), false));
  // The names of Object.prototype's members are no words either.
  for (const text of ["", "on", "2", "constructor", "__proto__", "toString", "hasOwnProperty"]) {
    test(`${JSON.stringify(text)} is not accepted`, () =>
      assert.deepEqual(read(schema, text), { accepted: "true or false" }));
  }
  test("takes no value, and has a short form", () => {
    assert.equal(notes(schema).value, undefined);
    assert.equal(notes(schema).short, "d");
  });
});

describe("kinds of values", () => {
  test("one of some words, by their spelling", () => {
    const schema = option(...oneOf("list", "watch"), about);
    assert.equal(read(schema, "watch"), "watch");
    for (const text of ["Watch", "lis", "list,watch", ""]) {
      assert.deepEqual(read(schema, text), { accepted: "list, watch" });
    }
  });

  test("a whole number, both ends included", () => {
    const schema = option(...wholeNumber(1, 10), about);
    for (const [text, value] of [
      ["1", 1],
      ["10", 10],
      ["007", 7],
    ] as const)
      assert.equal(read(schema, text), value);
    for (const text of ["0", "11", "-1", "1.5", "1e1", "0x5", "", " 5", "5 ", "५", "99999999999999999999"]) {
      assert.deepEqual(read(schema, text), { accepted: "a whole number from 1 to 10" }, text);
    }
  });

  test("a deadline is at least a millisecond, and what a timer can count", () => {
    const schema = option(...positiveDuration, about);
    assert.equal(read(schema, "1ms"), 1);
    assert.equal(read(schema, "500h"), 500 * 3_600_000);
    for (const text of ["0s", "0.5ms", "500h1ms", "596h31m23s600ms", "10", "-1s"]) {
      assert.deepEqual(read(schema, text), {
        accepted: "a duration such as 900ms, 10s, 1m30s or 1h, from 1ms to 500h",
      });
    }
  });

  test("a range", () => {
    const schema = option(...range, about);
    assert.deepEqual(read(schema, "10:20"), { text: "10:20", start: 10, end: 20, inside: false });
    assert.deepEqual(read(schema, "20:10"), { accepted: "a range such as 10, 10:, ~:10, 10:20 or @10:20" });
  });

  test("an absolute path", () => {
    const schema = option(...absolutePath, about);
    for (const text of ["/", "/a b", "/../x"]) assert.equal(read(schema, text), text);
    for (const text of ["", "a", "./a", "~/a", "unix:/a"]) {
      assert.deepEqual(read(schema, text), { accepted: "an absolute path" }, text);
    }
  });

  test("a list, with spaces and empty items that do not count", () => {
    const schema = option(...listOf(wholeNumber(0, 100)), about);
    assert.deepEqual(read(schema, "1"), [1]);
    assert.deepEqual(read(schema, " 1, 2,,3 ,"), [1, 2, 3]);
    for (const text of ["", ",", " , ", "1,x", "101"]) {
      assert.deepEqual(read(schema, text), {
        accepted: "a whole number from 0 to 100; several with commas between",
      });
    }
  });
});
