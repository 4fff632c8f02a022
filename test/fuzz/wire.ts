// `npm run fuzz:wire -- [--runs 100000] [--seed S]`: hostile answers to the client, and what becomes of them. It ends with
// status 1 where one crashes it, holds it up, or is refused though it is valid.

import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { Result } from "./feed.ts";
import type { Input } from "./mutate.ts";

/** What came of so many inputs. */
export interface Tally {
  runs: number;
  /** Runs through a real socket, a check and every output; the others end at the decoders. */
  whole: number;
  readonly outcomes: Record<string, number>;
  readonly wrong: string[];
  /** The longest run, in ms. */
  longestMs: number;
  /** The most memory, in MiB, that the process had at the end of a batch. */
  memoryMiB: number;
}

const batch = 100;
// A real socket costs as much as ten runs without one.
const wholeEvery = 20;
const shownWrong = 20;

/** Runs a number of inputs made from a seed; `progress` is called after each batch. */
export async function fuzzWire(
  runs: number,
  seed: number,
  progress: (tally: Tally) => void = () => {},
): Promise<Tally> {
  const tally: Tally = { runs: 0, whole: 0, outcomes: {}, wrong: [], longestMs: 0, memoryMiB: 0 };
  // Not for the thread that only looks on.
  const { default: fc } = await import("fast-check");
  const { feed } = await import("./feed.ts");
  const { input } = await import("./mutate.ts");
  const { openProbeFeed } = await import("./probe.ts");
  const probeFeed = await openProbeFeed();
  try {
    for (let done = 0; done < runs; done += batch) {
      const numRuns = Math.min(batch, runs - done);
      for (const [index, one] of fc.sample(input, { seed: seed + done, numRuns }).entries()) {
        await take(one, done + index);
      }
      tally.memoryMiB = Math.max(tally.memoryMiB, Math.round(process.memoryUsage().rss / 2 ** 20));
      progress(tally);
    }
  } finally {
    probeFeed.close();
  }
  return tally;

  async function take(one: Input, number: number): Promise<void> {
    const start = performance.now();
    note(await attempt(() => feed(one)), one, number);
    tally.longestMs = Math.max(tally.longestMs, performance.now() - start);
    tally.runs++;
    if (number % wholeEvery !== 0) return;
    tally.whole++;
    note(await attempt(() => probeFeed.run(one)), one, number, "check ");
  }

  function note(result: Result, one: Input, number: number, prefix = ""): void {
    if ("outcome" in result) {
      const key = `${prefix}${result.outcome}`;
      tally.outcomes[key] = (tally.outcomes[key] ?? 0) + 1;
      return;
    }
    tally.wrong.push(`${result.wrong}: ${prefix}run ${number}, ${one.kind} of ${one.method}: ${result.why}`);
  }
}

async function attempt(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    return { wrong: "crash", why: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

// The runtime would rather take memory than collect what the generator leaves behind, and what the client takes would not
// be seen beside it.
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 };

// A run that never ends would hold up whoever looks at the clock, so that happens in another thread.
const silentMs = 60_000;

function watchOver(runs: number, seed: number): void {
  const start = Date.now();
  let last: Tally | undefined;
  const worker = new Worker(new URL(import.meta.url), { workerData: { runs, seed }, resourceLimits });
  const hung = () => {
    const done = last?.runs ?? 0;
    console.log(`hang: no progress for ${silentMs / 1000} s after ${done} runs; seed ${seed + done} makes that batch`);
    process.exit(1);
  };
  let timer = setTimeout(hung, silentMs);
  worker.on("message", (tally: Tally) => {
    last = tally;
    clearTimeout(timer);
    timer = setTimeout(hung, silentMs);
    if (process.stdout.isTTY && tally.runs % 10_000 === 0) console.log(`${tally.runs} runs`);
  });
  worker.on("error", (error) => {
    console.log(`crash: after ${last?.runs ?? 0} runs: ${error.stack ?? error}`);
    process.exitCode = 1;
  });
  worker.on("exit", () => {
    clearTimeout(timer);
    if (last === undefined) return;
    report(last, seed, (Date.now() - start) / 1000);
    if (last.wrong.length > 0 || last.runs < runs) process.exitCode = 1;
  });
}

function report(tally: Tally, seed: number, seconds: number): void {
  const sorted = Object.entries(tally.outcomes).sort(([, a], [, b]) => b - a);
  for (const [outcome, count] of sorted) console.log(`${String(count).padStart(8)}  ${outcome}`);
  for (const wrong of tally.wrong.slice(0, shownWrong)) console.log(wrong);
  const kinds = (kind: string) => tally.wrong.filter((text) => text.startsWith(kind)).length;
  console.log(
    `${tally.runs} answers, ${tally.whole} of them through a check too: ${kinds("crash")} crashes, ${kinds("hang")} hangs, ` +
      `${kinds("refused")} valid ones refused; longest ${tally.longestMs.toFixed(0)} ms, ` +
      `memory ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB, seed ${seed}, ${seconds.toFixed(1)} s`,
  );
}

if (!isMainThread && workerData?.runs !== undefined && parentPort !== null) {
  const port = parentPort;
  await fuzzWire(workerData.runs, workerData.seed, (tally) => port.postMessage(tally));
} else if (import.meta.main) {
  const { values } = parseArgs({
    options: { runs: { type: "string", default: "10000" }, seed: { type: "string", default: "1" } },
  });
  watchOver(Number(values.runs), Number(values.seed));
}
