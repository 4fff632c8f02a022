// Estimates from small bursts, spread over a while, how much of the time the rate limit refuses a client.

import { pause } from "./backoff.ts";
import type { Context, Finding, Outcome } from "./check.ts";
import { type Share, shareOf } from "./proportion.ts";
import { type Rates, ratesBetween, readScrape, type Scrape } from "./scrape.ts";

/** How the limit is sampled. */
export interface SamplingOptions {
  /** How many bursts. */
  readonly samples: number;
  /** One burst in each such stretch of time, in ms, at a random moment of it. */
  readonly interval: number;
  /** Calls of a burst. */
  readonly burst: number;
}

/** What one burst met. */
export interface Sample {
  /** How many of its calls were let through. */
  readonly admitted: number;
  /**
   * Where some were not: whether one more, after a time in which the whole bucket comes back, was refused as well. Then the
   * refusals come from steady use, else from a passing burst.
   */
  readonly again: boolean | undefined;
}

/** At 100 tokens a second the bucket of ten is full again after this, if nobody takes any. */
export const refillMs = 100;

// Of each interval its last part holds no burst: so the one more call has its time, and two bursts do not meet.
const guardMs = 150;

/**
 * When the bursts are made, in ms from the start. One at random in each interval: the moments are spread evenly, and are
 * in step with nobody who calls at regular times.
 */
export function sampleTimes({ samples, interval }: SamplingOptions, random: () => number = Math.random): number[] {
  return Array.from({ length: samples }, (_, index) => interval * index + random() * (interval - guardMs));
}

/** What the samples come to. */
export interface Headroom {
  /** Share of the time in which a client that makes one call is refused: of the bursts that got nothing through. */
  readonly refused: Share;
  /** Share of the time in which one that makes the whole burst at once is refused some of it. */
  readonly short: Share;
  /** Which limit refuses: the rate of 100 a second, or the burst of 10; neither where nothing was refused. */
  readonly binding: "rate" | "burst" | undefined;
}

/** Whoever is let through at this share of the limit is close enough to it for it to be what refuses. */
const fullShare = 0.9;

/** @param admittedPerSecond What the kubelet let through, where that is known. */
export function estimate(samples: readonly Sample[], burst: number, admittedPerSecond?: number): Headroom {
  const refused = samples.filter(({ admitted }) => admitted === 0).length;
  const short = samples.filter(({ admitted }) => admitted < burst).length;
  const steady = samples.filter(({ again }) => again === true).length;
  const isFull = (admittedPerSecond ?? 0) >= fullShare * 100;
  return {
    refused: shareOf(refused, samples.length),
    short: shareOf(short, samples.length),
    binding: short === 0 ? undefined : isFull || steady * 2 > short ? "rate" : "burst",
  };
}

/** How a burst is made, and one more call: how many of so many calls at once were let through. */
export type Call = (count: number) => Promise<number>;

/** Makes the bursts. Takes as many tokens as `samples` times `burst` at the most: a refused call takes none. */
export async function takeSamples(options: SamplingOptions, call: Call): Promise<Sample[]> {
  const startMs = performance.now();
  const samples: Sample[] = [];
  for (const atMs of sampleTimes(options)) {
    await pause(Math.max(0, startMs + atMs - performance.now()));
    const admitted = await call(options.burst);
    let again: boolean | undefined;
    if (admitted < options.burst) {
      await pause(refillMs);
      again = (await call(1)) === 0;
    }
    samples.push({ admitted, again });
  }
  return samples;
}

/** Options of the check that matter here. */
export interface HeadroomOptions extends SamplingOptions {
  /** One file that is read before and after, or two. */
  readonly metrics: readonly string[] | undefined;
}

/** The check `rate-limit` with `--samples` or `--metrics`. */
export async function headroom(context: Context, options: HeadroomOptions, call: Call): Promise<Outcome> {
  const { samples: count, burst, interval } = options;
  const { client } = context;
  const paths = options.metrics ?? [];
  const first = paths.length === 0 ? undefined : await readScrape(paths[0]!);
  await client.connect({ timeoutMs: context.remainingMs() });
  const tokensBefore = client.tokensSpent;
  const startMs = performance.now();
  const samples = await takeSamples(options, call);
  const seconds = (performance.now() - startMs) / 1000;
  const rates = first === undefined ? undefined : ratesBetween(first, await secondScrape(paths));
  const measured = typeof rates === "object" ? rates : undefined;
  const perSecond =
    measured?.listsPerSecond === undefined ? undefined : measured.listsPerSecond + (measured.getsPerSecond ?? 0);

  const tokens = client.tokensSpent - tokensBefore;
  const { refused, short, binding } = estimate(samples, burst, perSecond);
  const admitted = samples.reduce((sum, sample) => sum + sample.admitted, 0);
  const rejected = count * burst - admitted;
  const findings: Finding[] = [];
  if (rejected > 0) {
    const limit = binding === "rate" ? "the rate of 100 a second binds" : "the burst of 10 binds";
    const message = `a client is refused in ${percent(refused.value)} of the time (${interval95(refused)}); ${limit}`;
    findings.push({ code: "RateLimited", subject: "", message });
  }
  return {
    summary: `all of ${count} bursts of ${burst} were admitted: a client is refused in at most ${percent(refused.high)} of the time`,
    findings,
    metrics: [
      { name: "admitted", value: admitted / count, unit: "", min: 0, max: burst },
      { name: "rejected", value: rejected / count, unit: "", min: 0, max: burst },
      { name: "tokens", value: tokens, unit: "", min: 0 },
      { name: "refused_share", value: refused.value, unit: "", min: 0, max: 1 },
      { name: "refused_share_low", value: refused.low, unit: "", min: 0, max: 1 },
      { name: "refused_share_high", value: refused.high, unit: "", min: 0, max: 1 },
      ...(perSecond === undefined ? [] : [{ name: "limit_share", value: perSecond / 100, unit: "" as const, min: 0 }]),
      ...(measured?.drops === undefined
        ? []
        : [{ name: "watch_drops", value: measured.drops, unit: "" as const, min: 0 }]),
    ],
    details: [
      `${count} bursts of ${burst}, one in each ${interval} ms: none of a burst was admitted in ${interval95(refused)} of the time, not all of it in ${interval95(short)}`,
      ...advice(binding),
      ...(typeof rates === "string" ? [rates] : measured === undefined ? [] : [describe(measured)]),
      `this took ${tokens} tokens of the ${Math.round(seconds * 100)} that came back meanwhile`,
    ],
    data: {
      burst,
      admitted,
      rejected,
      rounds: count,
      headroom: {
        intervalMs: interval,
        refused,
        short,
        binding: binding ?? null,
        rates: measured === undefined ? null : withNulls(measured),
      },
    },
  };
}

async function secondScrape(paths: readonly string[]): Promise<Scrape> {
  return readScrape(paths.at(-1)!);
}

function advice(binding: Headroom["binding"]): string[] {
  if (binding === undefined) return [];
  return binding === "rate"
    ? [
        "refused again 100 ms later: clients use the limit up all the time; one that polls should follow a watch, which costs no token",
      ]
    : [
        "admitted 100 ms later: clients call at the same moment; each should spread its calls and wait a random while before it repeats one",
      ];
}

function describe({ seconds, listsPerSecond, getsPerSecond, drops }: Rates): string {
  const calls =
    listsPerSecond === undefined
      ? "this kubelet does not count calls"
      : `${oneDigit(listsPerSecond)} lists and ${oneDigit(getsPerSecond ?? 0)} gets a second were admitted, ` +
        `${percent((listsPerSecond + (getsPerSecond ?? 0)) / 100)} of the limit`;
  return `over ${oneDigit(seconds)} s of metrics: ${calls}, ${drops ?? "unknown"} watchers dropped`;
}

function withNulls({ seconds, listsPerSecond, getsPerSecond, drops }: Rates) {
  return {
    seconds,
    listsPerSecond: listsPerSecond ?? null,
    getsPerSecond: getsPerSecond ?? null,
    drops: drops ?? null,
  };
}

function percent(share: number): string {
  return `${oneDigit(share * 100)} %`;
}

function interval95({ low, high }: Share): string {
  return `${percent(low)} to ${percent(high)}`;
}

function oneDigit(value: number): string {
  return String(Math.round(value * 10) / 10);
}
