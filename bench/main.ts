// `npm run bench`: what one run of the compiled binary costs, beside the Go client of bench/peer that lists and decodes the
// same pods from the same server, in alternating runs. Times are printed and judged by nobody; memory has a budget.
//   npm run bench -- --runs 50 --json FILE
//   npm run bench -- --quick     small, to show that it runs
//   npm run bench -- --write     writes the tables and the plot of docs/performance.md

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { type Panel, plot } from "./plot.ts";
import { expected, nodeName, withServer } from "./server.ts";
import { canTrace, countSystemCalls, type Memory, readMemory } from "./traced.ts";
import { type Command, type Cost, dist, measure, peer, requirePrograms, root, type Spread } from "./trials.ts";

// MiB, for the median. Generous: how a file came into the page cache alone moves the peak by 6 MiB.
const budget = { at110Pods: 48, at64MiB: 96, per1000Pods: 20 };

const podBytes = 1300;
const largePodBytes = 10_000;
// Just below 64 MiB, the longest answer that is taken by default.
const longest = { pods: 3400, podBytes: 19_284 };

const { values } = parseArgs({
  options: {
    runs: { type: "string" },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    json: { type: "string" },
  },
});
const runs = Number(values.runs ?? (values.quick ? 3 : 20));
if (!Number.isInteger(runs) || runs < 1) stop(`--runs is ${values.runs}, accepted is a whole number from 1`);
const growthPods = values.quick ? [10, 110] : [10, 110, 500, 2000];

// Around what --write replaces in docs/performance.md.
const [begin, end] = ["<!-- npm run bench -- --write: begin -->", "<!-- npm run bench -- --write: end -->"];

/** A command, and what else is known of it. */
interface Start {
  readonly cost: Cost;
  readonly tokens: number;
  readonly systemCalls: number | undefined;
  readonly memory: Memory | undefined;
}

interface Growth {
  readonly pods: number;
  readonly podBytes: number;
  readonly answerBytes: number;
  readonly peer: Cost;
  readonly ready: Cost;
}

// A copy, as an installation makes one: what has been read from the disk page by page takes 6 MiB less.
const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const probe = join(folder, "kubelet-probe");

try {
  requirePrograms();
  copyFileSync(join(dist, "kubelet-probe"), probe);
  await bench();
} catch (error) {
  stop(error instanceof Error ? error.message : String(error));
}

async function bench(): Promise<void> {
  const loadBefore = loadavg()[0]!;
  const traces = canTrace();
  if (!traces) console.log("strace is not there or may not trace: system calls and own memory are left out\n");
  const starts = await withServer(110, podBytes, (socket) => measureStarts(socket, traces));
  const growths: Growth[] = [];
  for (const bytes of [podBytes, largePodBytes]) {
    for (const pods of growthPods) growths.push(await measureGrowth(pods, bytes, runs));
  }
  const long = await measureGrowth(longest.pods, longest.podBytes, Math.max(1, Math.round(runs / 4)));
  const per1000Pods = perThousandPods(growths);

  const machine =
    `${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? "an unknown processor"}, ` +
    `${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}; load ${loadBefore.toFixed(1)} before, ${loadavg()[0]!.toFixed(1)} after`;
  const parts = [
    `${machine}. ${runs} runs each, in turns; the median, and in brackets the 10th and 90th percentile; × is the median of ` +
      "the ratios to the Go client turn by turn.",
    `One run with 110 pods of ${kilobytes(podBytes)}:\n\n${table(startRows(starts))}`,
    `\`ready\` and the Go client by the number of pods and their size:\n\n${table(growthRows(growths))}`,
    `A listing of ${mebibytes(long.answerBytes)} MiB (${long.pods} pods of ${kilobytes(longest.podBytes)}):\n\n${table(growthRows([long]))}`,
    per1000Pods === undefined
      ? ""
      : `1,000 pods of ${kilobytes(largePodBytes)} more take ${per1000Pods.toFixed(1)} MiB more at the peak.`,
  ].filter((part) => part !== "");
  console.log(parts.join("\n\n"));

  if (values.json !== undefined) {
    const report = { machine, runs, starts, growths, long, per1000Pods };
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  }
  if (values.write) write(parts, growths);
  refuseExcess(starts, long, per1000Pods);
}

async function measureStarts(socket: string, traces: boolean): Promise<Start[]> {
  const uid = String(process.getuid?.() ?? 0);
  // Where temporary folders are open to others, as they mostly are, is not what is measured.
  const secure = ["--owner", uid, "--severity", "SocketInsecure=OK"];
  const expect = ["--expect", expected, "--node-name", nodeName];
  const check = (name: string, ...options: string[]): Command => ({
    name: [name, ...options.filter((option) => option === "--expect")].join(" "),
    argv: [probe, name, "--socket", socket, ...options],
  });
  const commands: Command[] = [
    { name: "Go client", argv: [peer, socket] },
    check("socket", ...secure),
    check("ready"),
    check("static-pods", ...expect),
    check("rate-limit"),
    check("all", "--checks", "socket,ready,static-pods,rate-limit", ...secure, ...expect),
    // What the runtime alone costs: nothing is opened, nothing asked.
    { name: "--version", argv: [probe, "--version"] },
  ];
  const costs = measure(commands, runs);
  const starts: Start[] = [];
  for (const [at, command] of commands.entries()) {
    starts.push({
      cost: costs[at]!,
      tokens: tokensOf(command),
      systemCalls: traces ? countSystemCalls(command) : undefined,
      memory: traces ? await readMemory(command) : undefined,
    });
  }
  return starts;
}

/** As the run itself says; the peer makes one call. */
function tokensOf({ name, argv }: Command): number {
  if (argv[0] === peer) return 1;
  if (name === "--version") return 0;
  const { tokensSpent } = jsonOf(argv.slice(1));
  return tokensSpent;
}

function jsonOf(words: readonly string[]): {
  readonly tokensSpent: number;
  readonly checks: readonly { readonly data: Readonly<Record<string, unknown>> }[];
} {
  const { stdout, stderr } = spawnSync(probe, [...words, "--output", "json"], { encoding: "utf8" });
  if (stdout === "") throw new Error(`${words[0]} printed no JSON: ${stderr}`);
  return JSON.parse(stdout);
}

function measureGrowth(pods: number, bytes: number, times: number): Promise<Growth> {
  return withServer(pods, bytes, (socket) => {
    const ready = [probe, "ready", "--socket", socket];
    const answerBytes = Number(jsonOf(ready.slice(1)).checks[0]?.data.bytes);
    const [peerCost, readyCost] = measure(
      [
        { name: "Go client", argv: [peer, socket] },
        { name: "ready", argv: ready },
      ],
      times,
    );
    return { pods, podBytes: bytes, answerBytes, peer: peerCost!, ready: readyCost! };
  });
}

/** How much more memory a thousand pods more take, MiB. */
function perThousandPods(growths: readonly Growth[]): number | undefined {
  const large = growths.filter((growth) => growth.podBytes === largePodBytes);
  const [first, last] = [large[0], large.at(-1)];
  if (first === undefined || last === undefined || last.pods < 1000) return undefined;
  return (1000 * (last.ready.peakMiB.median - first.ready.peakMiB.median)) / (last.pods - first.pods);
}

function refuseExcess(starts: readonly Start[], long: Growth, per1000Pods = 0): void {
  const ready = starts.find(({ cost }) => cost.name === "ready")!.cost;
  const found = { at110Pods: ready.peakMiB.median, at64MiB: long.ready.peakMiB.median, per1000Pods };
  for (const name of ["at110Pods", "at64MiB", "per1000Pods"] as const) {
    if (found[name] > budget[name])
      throw new Error(`${name}: ready takes ${found[name].toFixed(1)} MiB, the budget is ${budget[name]} MiB`);
  }
}

function startRows(starts: readonly Start[]): string[][] {
  const rows = starts.map(({ cost, tokens, systemCalls, memory }) => [
    cost.name,
    ...costCells(cost),
    memory === undefined ? "-" : memory.ownMiB.toFixed(1),
    systemCalls === undefined ? "-" : String(systemCalls),
    String(tokens),
  ]);
  return [["", "wall ms", "×", "CPU ms", "×", "peak MiB", "×", "own MiB", "system calls", "tokens"], ...rows];
}

function growthRows(growths: readonly Growth[]): string[][] {
  const rows = growths.flatMap((growth) =>
    [growth.peer, growth.ready].map((cost) => [
      growth.pods.toLocaleString("en-US"),
      kilobytes(growth.podBytes),
      cost.name,
      ...costCells(cost),
    ]),
  );
  return [["pods", "size", "", "wall ms", "×", "CPU ms", "×", "peak MiB", "×"], ...rows];
}

function costCells({ wallMs, wallRatio, cpuMs, cpuRatio, peakMiB, peakRatio }: Cost): string[] {
  const pair = ({ median, low, high }: Spread, ratio: number) => [
    `${median.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)})`,
    ratio.toFixed(2),
  ];
  return [...pair(wallMs, wallRatio), ...pair(cpuMs, cpuRatio), ...pair(peakMiB, peakRatio)];
}

/** A Markdown table that can be read as it is: the first column left-aligned, figures right-aligned. */
function table(rows: readonly (readonly string[])[]): string {
  const isText = rows[0]!.map((_, column) => rows.slice(1).some((row) => /^[^\d-]|^--/.test(row[column]!)));
  const widths = rows[0]!.map((_, column) => Math.max(3, ...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => (isText[column] ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `| ${widths.map((width, column) => (isText[column] ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(rows[0]!), rule, ...rows.slice(1).map(line)].join("\n");
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1).replace(/\.0$/, "")} KB`;
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

/** Puts the tables between their marks in docs/performance.md, and the plot beside it. */
function write(parts: readonly string[], growths: readonly Growth[]): void {
  const image = "![Wall time and peak memory by the number of pods, for ready and for the Go client](performance.svg)";
  const written = [parts[0], size(), ...parts.slice(1), image].join("\n\n");
  // Read after the compressing, which takes minutes.
  const page = join(root, "docs", "performance.md");
  const text = readFileSync(page, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/performance.md lacks the lines ${begin} and ${end}`);
  writeFileSync(page, `${text.slice(0, from + begin.length)}\n\n${written}\n\n${text.slice(to)}`);
  writeFileSync(join(root, "docs", "performance.svg"), drawGrowth(growths));
  console.log("\nwritten: docs/performance.md, docs/performance.svg");
}

function size(): string {
  const file = join(root, "dist", ".size.json");
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, "scripts", "size.mjs"), "--lenient", "--json", file],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`npm run size: ${stdout}${stderr}`);
  const { rows } = JSON.parse(readFileSync(file, "utf8")) as { readonly rows: readonly (readonly [string, number])[] };
  const cells = rows.map(([part, bytes]) => [part, bytes.toLocaleString("en-US")]);
  return `The binary:\n\n${table([["part", "bytes"], ...cells])}`;
}

function drawGrowth(growths: readonly Growth[]): string {
  const series = (figure: (cost: Cost) => Spread) =>
    [podBytes, largePodBytes].flatMap((bytes) =>
      (["ready", "peer"] as const).map((program) => ({
        name: `${program === "peer" ? "Go client" : "ready"}, ${kilobytes(bytes)} a pod`,
        colour: program === "ready" ? (1 as const) : (2 as const),
        dashed: bytes === largePodBytes,
        points: growths
          .filter((growth) => growth.podBytes === bytes)
          .map((growth) => ({ x: growth.pods, y: figure(growth[program]) })),
      })),
    );
  const panel = (title: string, yLabel: string, figure: (cost: Cost) => Spread): Panel => {
    const lines = series(figure);
    const all = lines.flatMap(({ points }) => points.flatMap(({ y }) => [y.low, y.high]));
    return { title, yLabel, yTicks: ticks(Math.min(...all), Math.max(...all)), series: lines };
  };
  return plot("Cost of one run by the number of pods", "pods on the node", growthPods, [
    panel("Wall time", "ms", ({ wallMs }) => wallMs),
    panel("Peak memory", "MiB", ({ peakMiB }) => peakMiB),
  ]);
}

/** 1, 2 and 5 times powers of ten around the figures. */
function ticks(least: number, most: number): number[] {
  const all = [1, 10, 100, 1000, 10_000].flatMap((power) => [1, 2, 5].map((step) => step * power));
  const first = all.findLastIndex((tick) => tick <= least);
  const last = all.findIndex((tick) => tick >= most);
  return all.slice(Math.max(0, first), last < 0 ? undefined : last + 1);
}

function stop(message: string): never {
  process.stderr.write(`Cannot measure: ${message}\n`);
  process.exit(1);
}
