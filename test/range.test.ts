// Against "Threshold and ranges" of the Monitoring Plugins Development Guidelines: "generate an alert if x ..." is typed
// here by hand from their table.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { alerts, demand, evaluate, parseRange, shortfall } from "../lib/range.ts";

function read(text: string) {
  const range = parseRange(text);
  assert.ok(range, `${text} is a range`);
  return range;
}

function check(text: string, values: { readonly alert: readonly number[]; readonly fine: readonly number[] }) {
  const range = read(text);
  for (const value of values.alert) assert.ok(alerts(range, value), `${value} alerts with ${text}`);
  for (const value of values.fine) assert.ok(!alerts(range, value), `${value} is fine with ${text}`);
}

describe("ranges of the guidelines", () => {
  test("10: under 0 or over 10, outside of the range of {0 .. 10}", () => {
    check("10", { alert: [-1, -0.001, 10.001, 11], fine: [0, 5, 10] });
  });
  test("10: with a colon, under 10, outside of {10 .. inf}", () => {
    check("10:", { alert: [-1, 0, 9.999], fine: [10, 11, 1e15] });
  });
  test("~:10: over 10, outside of {-inf .. 10}", () => {
    check("~:10", { alert: [10.001, 11], fine: [-1e15, -1, 0, 10] });
  });
  test("10:20: under 10 or over 20, outside of {10 .. 20}", () => {
    check("10:20", { alert: [9, 9.999, 20.001, 21], fine: [10, 15, 20] });
  });
  test("@10:20: from 10 to 20, inside of {10 .. 20}", () => {
    check("@10:20", { alert: [10, 15, 20], fine: [9, 9.999, 20.001, 21] });
  });
});

describe("what else their grammar [@]start:end allows", () => {
  test("@ before one number: from 0 to it", () => {
    check("@10", { alert: [0, 10], fine: [-0.1, 10.1] });
  });
  test("@ before an open end", () => {
    check("@10:", { alert: [10, 1e9], fine: [9] });
    check("@~:10", { alert: [-1e9, 10], fine: [10.5] });
  });
  test("no start before the colon: 0", () => {
    check(":10", { alert: [-1, 11], fine: [0, 10] });
  });
  test("negative bounds", () => {
    check("-20:-10", { alert: [-20.5, -9.5, 0], fine: [-20, -15, -10] });
    check("-10:10", { alert: [-11, 11], fine: [-10, 0, 10] });
    check("~:-5", { alert: [-4.9, 0], fine: [-5, -6] });
  });
  test("decimals, exactly", () => {
    check("0.5:1.25", { alert: [0.49, 1.26], fine: [0.5, 1, 1.25] });
    check("0.000001:", { alert: [0], fine: [0.000001] });
  });
  test("a range of one value", () => {
    check("4:4", { alert: [3, 5], fine: [4] });
    check("0", { alert: [1], fine: [0] });
  });
});

describe("what is no range", () => {
  const wrong = [
    "",
    "@",
    ":",
    "@:",
    "~",
    "10:~",
    "~:~",
    "20:10",
    "-5",
    "a",
    "10:b",
    "1e3",
    "1,5",
    "10,20",
    "0x10",
    "+10",
    "10.",
    ".5",
    " 10",
    "10 ",
    "10\n",
    "10:20:30",
    "@@10",
    "10@",
    "--10",
    "Infinity",
    "NaN",
    "１０",
    "10%",
    "10s",
    "1234567890123456",
  ];
  for (const text of wrong) {
    test(JSON.stringify(text), () => assert.equal(parseRange(text), undefined));
  }

  test("whatever else there is, it is read or refused, and keeps its spelling", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-@~:.0-9]{0,12}$/)), (text) => {
        const range = parseRange(text);
        if (range === undefined) return;
        assert.equal(range.text, text);
        assert.ok(range.start <= range.end);
        // It stands in performance data as it was written.
        assert.match(text, /^[-@~:.0-9]+$/);
      }),
    );
  });
});

describe("warning and critical together", () => {
  test("critical wins, warning is next", () => {
    const thresholds = { warning: read("10"), critical: read("20") };
    assert.deepEqual(
      [5, 15, 25].map((value) => evaluate(thresholds, value)),
      ["OK", "WARNING", "CRITICAL"],
    );
  });
  test("each may be missing", () => {
    assert.equal(evaluate({}, 1e9), "OK");
    assert.equal(evaluate({ warning: read("10") }, 11), "WARNING");
    assert.equal(evaluate({ critical: read("10") }, 11), "CRITICAL");
  });
  test("critical does not need warning to alert", () => {
    assert.equal(evaluate({ warning: read("30"), critical: read("20") }, 25), "CRITICAL");
  });
});

describe("a number that is demanded", () => {
  const short = (text: string, count: number) => shortfall(parseRange(text)!, count);
  test("how many are lacking", () => {
    assert.deepEqual(
      [0, 3, 4, 5].map((count) => short("4:", count)),
      [4, 1, 0, 0],
    );
    assert.deepEqual([short("2:3", 1), short("2:3", 4), short("3.5:", 3), short("4", 5)], [1, 0, 1, 0]);
  });
  test("inside: more than its end would do, unless fewer than its start or nothing would", () => {
    assert.deepEqual(
      [0, 3, 4].map((count) => short("@3", count)),
      [4, 1, 0],
    );
    assert.deepEqual([short("@~:3.5", 2), short("@2:3", 2), short("@5:", 7)], [2, 0, 0]);
  });
  test("in words", () => {
    assert.deepEqual(
      ["4:", "@0:3"].map((text) => demand(parseRange(text)!)),
      ["4:", "numbers outside of 0:3"],
    );
  });
});
