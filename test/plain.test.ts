import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ascii, plain, safeJson } from "../lib/plain.ts";

// Typed by code point, not by the properties the code goes by: C0 and C1 controls, what ends a line, what changes the
// direction of text (Trojan Source, CVE-2021-42574), what is not drawn, and lone surrogates.
const unsafe =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: single code points, in ranges
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|[\ud800-\udfff]/u;

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) }),
  fc.string({
    unit: fc.constantFrom("\n", "\r", "\t", "\u001b", "\u009b", "\u202e", "\ud83d", "\udca5", "a", " ", "\u2028"),
  }),
);

describe("plain", () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ["line ends are spaces", "a\nb\r\nc\u2028d\u2029e", "a b c d e"],
    ["runs of spaces are one", "  a \t\v\f  b\u00a0\u3000c ", "a b c"],
    ["a terminal escape", "\u001b[31mred\u001b[0m", "[31mred [0m"],
    ["the one-byte form of it", "\u009b2J", "?2J"],
    ["a title of the window", "\u001b]0;x\u0007y", "]0;x y"],
    ["bidi controls", "a\u202eb\u2066c\u200fd", "a?b?c?d"],
    ["what is not drawn", "a\u200bb\u00adc\u2060d\u{e0041}e\u3164f", "a?b?c?d?e?f"],
    ["lone surrogates", "a\ud83d b\udca5", "a? b?"],
    ["letters of the world stay", "Zürich 東京 \u{1f4a5}", "Zürich 東京 \u{1f4a5}"],
    ["a bar is no matter here", "a|b", "a|b"],
  ];
  for (const [name, text, shown] of cases) test(name, () => assert.equal(plain(text), shown));

  test("what is cut says so, and never inside a character", () => {
    assert.equal(plain("x".repeat(200)), "x".repeat(200));
    assert.equal(plain("x".repeat(201)), `${"x".repeat(197)}...`);
    assert.equal(plain("abcdefghij", 8), "abcde...");
    assert.equal(plain("abcd\u{1f4a5}fghij", 8), "abcd...");
    assert.equal(plain(" ".repeat(1000), 8), "...");
  });

  test("a megabyte is cut before it is cleaned", () => {
    assert.equal(plain("\n\u202e".repeat(500_000), 20).length <= 20, true);
  });

  test("any text becomes one safe line within the limit", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 3, max: 60 }), (text, limit) => {
        const line = plain(text, limit);
        assert.doesNotMatch(line, unsafe);
        assert.ok(line.length <= limit);
        assert.ok(line.isWellFormed());
        assert.equal(plain(line, limit), line, "a plain line stays as it is");
      }),
      { numRuns: 2000 },
    );
  });
});

describe("ascii", () => {
  test("a run of other characters is one question mark", () => {
    assert.equal(ascii("Zürich 東京\u{1f4a5}!"), "Z?rich ?!");
  });
  test("any text becomes printable ASCII within the limit, which then is in bytes", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 3, max: 60 }), (text, limit) => {
        const line = ascii(text, limit);
        assert.match(line, /^[ -~]*$/);
        assert.ok(Buffer.byteLength(line) <= limit);
      }),
    );
  });
});

describe("safeJson", () => {
  test("is the same value, and has nothing raw that plain takes out but its own line ends", () => {
    fc.assert(
      fc.property(fc.dictionary(anyText, anyText), (value) => {
        const text = safeJson(value);
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
        assert.doesNotMatch(text.replaceAll("\n", ""), unsafe);
      }),
      { numRuns: 1000 },
    );
  });
  test("an escape is one of JSON, also for two code units", () => {
    assert.equal(safeJson("\u001b\u202e\u{e0041}"), '"\\u001b\\u202e\\udb40\\udc41"');
  });
});
