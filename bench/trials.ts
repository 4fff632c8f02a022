// Runs commands in alternating turns and says what each whole process cost: dist/measure (bench/measure) does the running.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A program to measure. */
export interface Command {
  readonly name: string;
  readonly argv: readonly string[];
}

/** What one run of it cost. */
export interface Sample {
  readonly wallNs: number;
  readonly cpuNs: number;
  readonly maxRssKiB: number;
  readonly exitStatus: number;
}

/** All runs of one command. */
export interface Measured {
  readonly name: string;
  readonly samples: readonly Sample[];
  /** What the last run printed. */
  readonly stdout: string;
  readonly stderr: string;
}

/** Median, and the tenth and ninetieth percentile. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** One row of a table: costs, and their ratios to the first command of the trial. */
export interface Cost {
  readonly name: string;
  readonly wallMs: Spread;
  readonly cpuMs: Spread;
  readonly peakMiB: Spread;
  readonly wallRatio: number;
  readonly cpuRatio: number;
  readonly peakRatio: number;
}

export const root: string = dirname(dirname(fileURLToPath(import.meta.url)));
export const dist: string = join(root, "dist");

/** What kubelet-probe is measured against. */
export const peer: string = join(dist, "peer");

const warmups = 3;
// Each run spends up to five tokens of the server's 100 a second: a pause gives them back and lets the cores settle.
const pauseMs = 40;

/**
 * Measures commands in turns, so that a slower machine is slower for all of them.
 * @param commands The first is what the others are compared with.
 * @throws Error for a run that did not exit 0: its numbers would mean nothing.
 */
export function measure(commands: readonly Command[], runs: number): Cost[] {
  const plan = JSON.stringify({ warmups: Math.min(warmups, runs), runs, pauseMs, commands });
  const result = spawnSync(join(dist, "measure"), { input: plan, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (result.status !== 0) throw new Error(result.error?.message ?? result.stderr);
  const { results } = JSON.parse(result.stdout) as { readonly results: readonly Measured[] };
  for (const { name, samples, stdout, stderr } of results) {
    const bad = samples.filter(({ exitStatus }) => exitStatus !== 0).length;
    if (bad > 0)
      throw new Error(`${name}: ${bad} of ${runs} runs did not exit 0; the last one said: ${stdout}${stderr}`);
  }
  const base = results[0]!;
  return results.map((one) => ({
    name: one.name,
    wallMs: spread(one, ({ wallNs }) => wallNs / 1e6),
    cpuMs: spread(one, ({ cpuNs }) => cpuNs / 1e6),
    peakMiB: spread(one, ({ maxRssKiB }) => maxRssKiB / 1024),
    wallRatio: ratio(one, base, ({ wallNs }) => wallNs),
    cpuRatio: ratio(one, base, ({ cpuNs }) => cpuNs),
    peakRatio: ratio(one, base, ({ maxRssKiB }) => maxRssKiB),
  }));
}

function spread({ samples }: Measured, figure: (sample: Sample) => number): Spread {
  const figures = samples.map(figure);
  return { median: percentile(figures, 0.5), low: percentile(figures, 0.1), high: percentile(figures, 0.9) };
}

/** The median of the ratios turn by turn: what disturbs a turn disturbs both of its runs. */
function ratio(one: Measured, base: Measured, figure: (sample: Sample) => number): number {
  const ratios = one.samples.map((sample, turn) => figure(sample) / figure(base.samples[turn]!));
  return percentile(ratios, 0.5);
}

function percentile(figures: readonly number[], share: number): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)]!;
  return below + (sorted[Math.ceil(place)]! - below) * (place - Math.floor(place));
}

/** @throws Error naming the first program that is not there, and the command that makes it. */
export function requirePrograms(): void {
  for (const name of ["kubelet-probe", "kubelet-server", "peer", "measure"]) {
    const command = name === "kubelet-probe" ? "npm run build" : "npm run build:kubelet";
    if (!existsSync(join(dist, name))) throw new Error(`dist/${name} is missing; ${command} makes it`);
  }
}
