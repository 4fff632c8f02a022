// A client's own share of the kubelet's rate limit: one bucket of 100 tokens a second serves every client of the node, so
// one that keeps to a share leaves the others theirs.

import { pause } from "./backoff.ts";
import { Fault } from "./fault.ts";

/** A share of the kubelet's 100 tokens a second. */
export interface BudgetOptions {
  /** Tokens that come back each second; more than 0. */
  readonly perSecond: number;
  /** The most tokens that may be spent at once; at least 1. Default 1; the kubelet's own bucket holds 10. */
  readonly burst?: number | undefined;
}

/** How long a call may wait for its token. */
export interface BudgetLimit {
  /** Until when, in ms as performance.now() counts. */
  readonly atMs: number;
  /** How long that was from the start of the call, for the message. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A bucket of tokens that calls take turns at. */
export interface Budget {
  /**
   * Waits for a token and takes it; in the order of the calls.
   * @throws Fault RateLimited, at once, where there is none within the limit; the reason of the signal.
   */
  take(limit: BudgetLimit): Promise<void>;
}

/** @throws RangeError for a share that would never let a call through. */
export function createBudget({ perSecond, burst = 1 }: BudgetOptions): Budget {
  if (!(perSecond > 0)) throw new RangeError(`Cannot keep to ${perSecond} tokens a second: more than 0 are needed`);
  if (!(burst >= 1)) throw new RangeError(`Cannot keep to a burst of ${burst} tokens: at least 1 is needed`);
  let tokens = burst;
  let lastMs = performance.now();

  /** Adds what has come back since, and `change`. */
  function add(change: number): void {
    const nowMs = performance.now();
    tokens = Math.min(burst, tokens + ((nowMs - lastMs) * perSecond) / 1000 + change);
    lastMs = nowMs;
  }

  return {
    async take({ atMs, timeoutMs, signal }) {
      add(-1);
      // Below zero are the tokens of those that wait already: each waits for its own.
      const waitMs = tokens >= 0 ? 0 : (-tokens * 1000) / perSecond;
      if (waitMs === 0) return;
      if (waitMs >= atMs - performance.now()) {
        add(1);
        const share = `${perSecond} tokens a second and ${burst} at once`;
        const what = `The client's own budget of ${share} allows no call within ${Math.round(timeoutMs)} ms`;
        throw new Fault("RateLimited", what, { own: true });
      }
      try {
        await pause(waitMs, signal);
      } catch (error) {
        add(1);
        throw error;
      }
    },
  };
}
