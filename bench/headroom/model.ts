// Agents of known behaviour, the kubelet's limiter on a clock of its own, and the share of the time in which it refuses.

import { estimate, refillMs, type Sample, type SamplingOptions, sampleTimes } from "../../lib/headroom.ts";
import { kubeletLimit } from "../../lib/simulator/limiter.ts";

/** A client that calls again and again. */
export interface Agent {
  /** When it calls first, in ms from the start. */
  readonly firstMs: number;
  /** How many calls it makes at once. */
  readonly atOnce: number;
  /** When it calls next, after its calls at `nowMs` were all admitted or not. */
  next(nowMs: number, admitted: boolean): number;
}

type Random = () => number;
const exponential = (meanMs: number, random: Random) => -Math.log(1 - random()) * meanMs;

/** Calls at random moments, so many a second: many users of one library, say. */
export function irregular(perSecond: number, random: Random): Agent {
  const meanMs = 1000 / perSecond;
  const next = (nowMs: number) => nowMs + exponential(meanMs, random);
  return { firstMs: next(0), atOnce: 1, next };
}

/** Asks so many times at once, every so often: for each pod without waiting, and without minding a refusal. */
export function inBursts(size: number, everyMs: number, random: Random): Agent {
  return { firstMs: random() * everyMs, atOnce: size, next: (nowMs) => nowMs + everyMs };
}

/** Every so often lists, then gets each pod in turn, 2 ms a call, and repeats what was refused after 10 ms. */
export function inTurn(pods: number, everyMs: number, random: Random): Agent {
  const firstMs = random() * everyMs;
  let startMs = firstMs;
  let left = pods + 1;
  return {
    firstMs,
    atOnce: 1,
    next(nowMs, admitted) {
      if (!admitted) return nowMs + 10;
      if (--left > 0) return nowMs + 2;
      left = pods + 1;
      startMs = Math.max(startMs + everyMs, nowMs);
      return startMs;
    },
  };
}

/** As many agents of a node, of differing behaviour: light ones first. */
export function agentsOf(count: number, random: Random): Agent[] {
  const kinds: ((random: Random) => Agent)[] = [
    (random) => irregular(5 + random() * 10, random),
    (random) => inTurn(30 + random() * 60, 2000, random),
    (random) => inBursts(10, 400 + random() * 400, random),
  ];
  return Array.from({ length: count }, (_, index) => kinds[index % kinds.length]!(random));
}

/** The kubelet's bucket, with how long it has refused a call. */
export function createBucket() {
  const { rate, burst } = kubeletLimit;
  let tokens = burst;
  let lastMs = 0;
  let emptyMs = 0;
  return {
    /** Lets time pass. */
    advance(nowMs: number): void {
      // Refused is who comes before the next token is whole.
      emptyMs += Math.min(nowMs - lastMs, Math.max(0, ((1 - tokens) * 1000) / rate));
      tokens = Math.min(burst, tokens + ((nowMs - lastMs) * rate) / 1000);
      lastMs = nowMs;
    },
    /** Whether one call is let through. */
    allow(): boolean {
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
    get emptyMs() {
      return emptyMs;
    },
  };
}

/** The share of the time in which a call is refused, and what a probe meets in it. */
export function simulate(
  agents: readonly Agent[],
  sampling: SamplingOptions | undefined,
  lengthMs: number,
  random: Random,
) {
  const bucket = createBucket();
  const actors: { atMs: number; act(): number }[] = agents.map((agent) => ({
    atMs: agent.firstMs,
    act() {
      let admitted = true;
      for (let call = 0; call < agent.atOnce; call++) admitted = bucket.allow() && admitted;
      return agent.next(this.atMs, admitted);
    },
  }));
  const samples: Sample[] = [];
  let tokens = 0;
  if (sampling !== undefined) {
    const times = sampleTimes(sampling, random);
    let missed: number | undefined;
    const allow = () => {
      const admitted = bucket.allow();
      if (admitted) tokens++;
      return admitted;
    };
    actors.push({
      atMs: times.shift()!,
      act() {
        const following = () => times.shift() ?? Number.POSITIVE_INFINITY;
        if (missed !== undefined) {
          samples.push({ admitted: missed, again: !allow() });
          missed = undefined;
          return following();
        }
        const admitted = Array.from({ length: sampling.burst }, allow).filter(Boolean).length;
        if (admitted < sampling.burst) {
          missed = admitted;
          return this.atMs + refillMs;
        }
        samples.push({ admitted, again: undefined });
        return following();
      },
    });
  }
  for (;;) {
    const next = actors.reduce((a, b) => (b.atMs < a.atMs ? b : a));
    if (next.atMs >= lengthMs) break;
    bucket.advance(next.atMs);
    next.atMs = next.act();
  }
  bucket.advance(lengthMs);
  return { share: bucket.emptyMs / lengthMs, samples, tokens };
}

/** One run: what is true without a probe, and what a probe makes of it. */
export interface Run {
  readonly agents: number;
  readonly truth: number;
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
  readonly isWithin: boolean;
  readonly tokens: number;
}

/** @param createRandom Gives the same numbers each time, so that the agents are the same with a probe and without. */
export function simulateRun(agents: number, sampling: SamplingOptions, createRandom: () => Random): Run {
  const lengthMs = sampling.samples * sampling.interval;
  const without = createRandom();
  const truth = simulate(agentsOf(agents, without), undefined, lengthMs, without).share;
  const random = createRandom();
  const { samples, tokens } = simulate(agentsOf(agents, random), sampling, lengthMs, random);
  return judge(agents, truth, samples, sampling.burst, tokens);
}

export function judge(agents: number, truth: number, samples: readonly Sample[], burst: number, tokens: number): Run {
  const { value, low, high } = estimate(samples, burst).refused;
  return { agents, truth, estimate: value, low, high, isWithin: truth >= low && truth <= high, tokens };
}

/** One line of the table for runs with the same number of agents. */
export function summarize(runs: readonly Run[]) {
  const mean = (of: (run: Run) => number) => runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
  return {
    agents: runs[0]!.agents,
    runs: runs.length,
    truth: mean((run) => run.truth),
    estimate: mean((run) => run.estimate),
    off: mean((run) => Math.abs(run.estimate - run.truth)),
    width: mean((run) => run.high - run.low),
    within: runs.filter(({ isWithin }) => isWithin).length,
    tokens: mean((run) => run.tokens),
  };
}
