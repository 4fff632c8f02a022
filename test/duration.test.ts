import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { formatDuration, parseDuration } from "../lib/duration.ts";

describe("parseDuration, as Go's time.ParseDuration has it", () => {
  const right: readonly (readonly [string, number])[] = [
    ["900ms", 900],
    ["10s", 10_000],
    ["1.5s", 1500],
    ["1m30s", 90_000],
    ["1h", 3_600_000],
    ["1h2m3s4ms", 3_723_004],
    ["0s", 0],
    ["0.5ms", 0.5],
    ["5m", 300_000],
    ["5m5ms", 300_005],
  ];
  for (const [text, ms] of right) test(text, () => assert.equal(parseDuration(text), ms));

  const wrong = [
    "",
    "10",
    "s",
    "-1s",
    "+1s",
    "1 s",
    "1d",
    "1S",
    "1s ",
    "1e3s",
    ".5s",
    "1.s",
    "1,5s",
    "1s\n",
    "١s",
    "1sm",
  ];
  for (const text of wrong) {
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseDuration(text), undefined));
  }

  test("a long text is refused in no time", () => {
    assert.equal(parseDuration(`${"1".repeat(100_000)}s`), undefined);
    assert.equal(parseDuration(`${"1s".repeat(50_000)}x`), undefined);
  });
});

describe("formatDuration", () => {
  const shown: readonly (readonly [number, string])[] = [
    [0, "0 ms"],
    [0.4, "0 ms"],
    [350, "350 ms"],
    [999.4, "999 ms"],
    [999.6, "1 s"],
    [1000, "1 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [303_000, "5 min 3 s"],
    [3_600_000, "1 h"],
    [7_500_000, "2 h 5 min"],
    [86_400_000, "1 d"],
    [273_600_000, "3 d 4 h"],
  ];
  for (const [ms, text] of shown) test(text, () => assert.equal(formatDuration(ms), text));

  test("two units at the most, whatever the time", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e13, noNaN: true }), (ms) => {
        assert.match(
          formatDuration(ms),
          /^(\d{1,3} ms|\d{1,2} s|\d{1,2} min( \d{1,2} s)?|\d{1,2} h( \d{1,2} min)?|\d+ d( \d{1,2} h)?)$/,
        );
      }),
    );
  });
});
