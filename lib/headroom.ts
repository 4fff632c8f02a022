// Estimates from small bursts, spread over a while, how much of the time the rate limit refuses a client.

import { pause } from "./backoff.ts";
import type { Context, Finding, Outcome } from "./check.ts";
import { isUrl, type MetricsCredentials } from "./metrics_url.ts";
import { type Share, shareOf } from "./proportion.ts";
import { type Rates, ratesBetween, readScrape, type Scrape, scrapeUrl } from "./scrape.ts";

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

// The bucket lets 10 calls more through than come back in the time: over less than this, that is no rate.
const leastSeconds = 1;

/** Calls of either kind that were let through. */
function perSecond({ listsPerSecond, getsPerSecond }: Rates): number | undefined {
  return listsPerSecond === undefined ? undefined : listsPerSecond + (getsPerSecond ?? 0);
}

/** @param rates What the kubelet let through, where that is known. */
export function estimate(samples: readonly Sample[], burst: number, rates?: Rates): Headroom {
  const refused = samples.filter(({ admitted }) => admitted === 0).length;
  const short = samples.filter(({ admitted }) => admitted < burst).length;
  const steady = samples.filter(({ again }) => again === true).length;
  const isFull = rates !== undefined && rates.seconds >= leastSeconds && (perSecond(rates) ?? 0) >= fullShare * 100;
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
export interface HeadroomOptions extends SamplingOptions, MetricsCredentials {
  /** One file or URL that is read before and after, or two files. */
  readonly metrics: readonly string[] | undefined;
}

/** Of the time that is left, what each scrape of a URL may take; the bursts have to fit between. */
export const scrapeShare = 0.2;

/** The check `rate-limit` with `--samples` or `--metrics`. */
export async function headroom(context: Context, options: HeadroomOptions, call: Call): Promise<Outcome> {
  const { samples: count, burst, interval } = options;
  const { client } = context;
  const sources = options.metrics ?? [];
  const scrapeMs = context.remainingMs() * scrapeShare;
  const scrape = (source: string) => {
    if (!isUrl(source)) return readScrape(source);
    // A verdict comes before what is said beside it.
    const timeoutMs = Math.min(scrapeMs, context.remainingMs() / 2);
    return scrapeUrl({ ...options, url: source, nodeName: context.nodeName, timeoutMs });
  };
  const first = sources.length === 0 ? undefined : await scrape(sources[0]!);
  await client.connect({ timeoutMs: context.remainingMs() });
  const tokensBefore = client.tokensSpent;
  const startMs = performance.now();
  const samples = await takeSamples(options, call);
  const seconds = (performance.now() - startMs) / 1000;
  const second = first === undefined || typeof first === "string" ? first : await scrape(sources.at(-1)!);
  const rates = typeof second === "object" ? ratesBetween(first as Scrape, second) : second;
  const problem = typeof rates === "string" ? rates : undefined;
  const measured = typeof rates === "object" ? rates : undefined;
  const admittedRate = measured === undefined ? undefined : perSecond(measured);

  const tokens = client.tokensSpent - tokensBefore;
  const { refused, short, binding } = estimate(samples, burst, measured);
  const admitted = samples.reduce((sum, sample) => sum + sample.admitted, 0);
  const rejected = count * burst - admitted;
  const findings: Finding[] = [];
  if (rejected > 0) {
    const limit = binding === "rate" ? "the rate of 100 a second binds" : "the burst of 10 binds";
    const message = `a client is refused in ${percent(refused.value)} of the time (${interval95(refused)}); ${limit}`;
    findings.push({ code: "RateLimited", subject: "", message });
  }
  const summary =
    rejected === 0
      ? `all of ${count} bursts of ${burst} were admitted: a client is refused in at most ${percent(refused.high)} of the time`
      : `${admitted} of ${count * burst} calls in ${count} bursts were admitted: a client is refused in ${percent(refused.value)} of the time (${interval95(refused)})`;
  return {
    summary,
    findings,
    metrics: [
      { name: "admitted", value: admitted / count, unit: "", min: 0, max: burst },
      { name: "rejected", value: rejected / count, unit: "", min: 0, max: burst },
      { name: "tokens", value: tokens, unit: "", min: 0 },
      { name: "refused_share", value: refused.value, unit: "", min: 0, max: 1 },
      { name: "refused_share_low", value: refused.low, unit: "", min: 0, max: 1 },
      { name: "refused_share_high", value: refused.high, unit: "", min: 0, max: 1 },
      ...(admittedRate === undefined
        ? []
        : [{ name: "limit_share", value: admittedRate / 100, unit: "" as const, min: 0 }]),
      ...(measured?.drops === undefined
        ? []
        : [{ name: "watch_drops", value: measured.drops, unit: "" as const, min: 0 }]),
    ],
    details: [
      `${count} bursts of ${burst}, one in each ${interval} ms: none of a burst was admitted in ${interval95(refused)} of the time, not all of it in ${interval95(short)}`,
      ...advice(binding),
      ...(problem === undefined ? [] : [`--metrics ${sources[0]}: ${problem}`]),
      ...(measured === undefined ? [] : [describe(measured, tokens)]),
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
        ratesProblem: problem ?? null,
      },
    },
  };
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

function describe({ seconds, listsPerSecond: lists, getsPerSecond: gets = 0, drops }: Rates, own: number): string {
  const calls =
    lists === undefined
      ? "this kubelet does not count calls"
      : `${oneDigit(lists)} lists and ${oneDigit(gets)} gets a second were admitted, ` +
        `${percent(lists / 100)} and ${percent(gets / 100)} of the limit, ${own} gets of the probe among them`;
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
