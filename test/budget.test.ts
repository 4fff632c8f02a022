import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createBudget } from "../lib/budget.ts";
import { Fault } from "../lib/fault.ts";

const within = (timeoutMs: number, signal?: AbortSignal) => ({
  atMs: performance.now() + timeoutMs,
  timeoutMs,
  signal,
});

describe("a budget", () => {
  test("lets a burst through at once, then one call at a time, in their order", async () => {
    const budget = createBudget({ perSecond: 50, burst: 2 });
    const order: number[] = [];
    await Promise.all([0, 1, 2, 3, 4].map((n) => budget.take(within(60_000)).then(() => order.push(n))));
    assert.deepEqual(order, [0, 1, 2, 3, 4]);
  });

  test("refuses at once what it cannot let through in time, and that costs nothing", async () => {
    const budget = createBudget({ perSecond: 0.001 });
    await budget.take(within(10));
    for (let n = 0; n < 3; n++) {
      await assert.rejects(budget.take(within(1000)), (error) => {
        assert.ok(error instanceof Fault);
        assert.deepEqual([error.code, error.details.own], ["RateLimited", true]);
        assert.match(error.message, /own budget of 0\.001 tokens a second and 1 at once allows no call within 1000 ms/);
        return true;
      });
    }
  });

  test("a call that is given up gives its token back", async () => {
    const budget = createBudget({ perSecond: 0.001 });
    await budget.take(within(10));
    for (let n = 0; n < 50; n++) {
      const stop = new AbortController();
      const taking = budget.take(within(2_000_000, stop.signal));
      stop.abort(new Error("given up"));
      await assert.rejects(taking, /given up/);
    }
    // A thousand seconds for the one token: had the others been kept, it would be fifty thousand.
    const stop = new AbortController();
    const taking = budget.take(within(1_100_000, stop.signal));
    stop.abort(new Error("in time"));
    await assert.rejects(taking, /in time/);
  });

  test("a share that lets nothing through is refused", () => {
    for (const options of [{ perSecond: 0 }, { perSecond: Number.NaN }, { perSecond: 1, burst: 0.5 }]) {
      assert.throws(() => createBudget(options), RangeError);
    }
  });
});
