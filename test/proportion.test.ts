import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { shareOf } from "../lib/proportion.ts";

const near = (value: number, expected: number) =>
  assert.ok(Math.abs(value - expected) < 5e-5, `${value}, not ${expected}`);

describe("an exact interval", () => {
  // R: binom.test(hits, samples)$conf.int
  for (const [hits, samples, low, high] of [
    [0, 10, 0, 0.3084971],
    [1, 10, 0.002528579, 0.4450161],
    [5, 10, 0.187086, 0.812914],
    [10, 10, 0.6915029, 1],
    [1, 1, 0.025, 1],
    [7, 20, 0.1539092, 0.5921885],
    [3, 100, 0.006229972, 0.0851758],
    [99, 100, 0.9455406, 0.9997468],
  ] as const) {
    test(`of ${hits} in ${samples}`, () => {
      const share = shareOf(hits, samples);
      assert.equal(share.value, hits / samples);
      near(share.low, low);
      near(share.high, high);
    });
  }

  test("covers each true share at least as often as it says", () => {
    const samples = 20;
    for (let step = 1; step < 100; step++) {
      const truth = step / 100;
      let covered = 0;
      let chance = (1 - truth) ** samples;
      for (let hits = 0; hits <= samples; hits++) {
        const { low, high } = shareOf(hits, samples);
        if (truth >= low && truth <= high) covered += chance;
        chance *= ((samples - hits) / (hits + 1)) * (truth / (1 - truth));
      }
      assert.ok(covered >= 0.95 - 1e-9, `${covered} at ${truth}`);
    }
  });

  test("is wider where it is to be surer", () => {
    assert.ok(shareOf(5, 20, 0.99).high > shareOf(5, 20).high);
  });
});
