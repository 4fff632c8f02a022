import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createBackoff, pause } from "../lib/backoff.ts";

const take = (count: number, next: () => number) => Array.from({ length: count }, next);

describe("pauses", () => {
  test("double up to the longest, each between half and all of its length", () => {
    for (const [random, expected] of [
      [0, [25, 50, 100, 200, 200]],
      [0.999999, [50, 100, 200, 400, 400]],
    ] as const) {
      const backoff = createBackoff({ firstMs: 50, mostMs: 400 }, () => random);
      assert.deepEqual(take(5, backoff.next).map(Math.round), expected);
    }
  });

  test("begin anew", () => {
    const backoff = createBackoff({ firstMs: 10 }, () => 0);
    take(4, backoff.next);
    backoff.reset();
    assert.equal(backoff.next(), 5);
  });

  test("by default from 50 ms to 5 s, and never over the longest", () => {
    const backoff = createBackoff();
    const all = take(30, backoff.next);
    assert.ok(all[0]! >= 25 && all[0]! <= 50);
    assert.ok(Math.max(...all) <= 5000);
    assert.ok(createBackoff({ mostMs: 10 }).next() <= 10);
  });
});

describe("pause", () => {
  test("ends by itself, or with the signal's reason", async () => {
    await pause(1);
    const stop = new AbortController();
    const waiting = pause(3_600_000, stop.signal);
    stop.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    await assert.rejects(pause(3_600_000, stop.signal), /enough/);
  });
});
