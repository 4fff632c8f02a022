// `npm run bench:startup`: what one run of the compiled binary costs, as a ratio to the Go client of bench/peer that lists
// and decodes the same pods from the same server, in alternating runs. It prints numbers and judges none.
//   npm run bench:startup -- --runs 50 --json FILE

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, release, tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

interface Sample {
  readonly wallNs: number;
  readonly cpuNs: number;
  readonly maxRssKiB: number;
  readonly exitStatus: number;
}

interface Measured {
  readonly name: string;
  readonly samples: readonly Sample[];
  readonly stdout: string;
  readonly stderr: string;
}

interface Command {
  readonly name: string;
  readonly argv: readonly string[];
}

/** Median and quartiles. */
interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const peer = "Go peer";
const node = "cp-1";
const pods = 110;
const staticPods = 4;
const warmups = 3;
// Each run but the peer's spends one token of 100 a second; the peer's too. A pause gives them back and lets the cores settle.
const pauseMs = 20;

const { values } = parseArgs({ options: { runs: { type: "string", default: "20" }, json: { type: "string" } } });
const runs = Number(values.runs);
if (!Number.isInteger(runs) || runs < 1)
  stop(`Cannot measure: --runs is ${values.runs}, accepted is a whole number from 1`);

for (const [name, command] of [
  ["kubelet-probe", "npm run build"],
  ["kubelet-server", "npm run build:kubelet"],
  ["peer", "npm run build:kubelet"],
  ["measure", "npm run build:kubelet"],
]) {
  if (!existsSync(join(dist, name!))) stop(`Cannot measure: dist/${name} is missing; ${command} makes it`);
}

const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-bench-"));
const socket = join(folder, "pods-api.sock");
const server = spawn(
  join(dist, "kubelet-server"),
  ["--socket", socket, "--static", String(staticPods), "--pods", String(pods - staticPods), "--node", node],
  { stdio: ["ignore", "ignore", "pipe"] },
);
let serverSaid = "";
server.stderr.on("data", (chunk) => {
  serverSaid = (serverSaid + chunk).slice(-4000);
});
process.on("exit", () => {
  server.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));

const probe = join(dist, "kubelet-probe");
const expected = Array.from(
  { length: staticPods },
  (_, i) => `kube-system/static-${String(i).padStart(3, "0")}-${node}`,
);
const commands: Command[] = [
  { name: peer, argv: [join(dist, "peer"), socket] },
  { name: "ready", argv: [probe, "ready", "--socket", socket] },
  {
    name: "static-pods",
    argv: [probe, "static-pods", "--socket", socket, "--node-name", node, "--expect", expected.join(",")],
  },
  // What the runtime alone costs: no connection, nothing asked.
  { name: "--version", argv: [probe, "--version"] },
];

await untilItServes();
const { cpus: usable, results } = measure();
const wall = (one: Measured) => spread(one.samples.map((sample) => sample.wallNs / 1e6));
const cpu = (one: Measured) => spread(one.samples.map((sample) => sample.cpuNs / 1e6));
const memory = (one: Measured) => spread(one.samples.map((sample) => sample.maxRssKiB / 1024));

const base = results.find((one) => one.name === peer)!;
const machine = {
  cpus: usable,
  model: cpus()[0]?.model.trim() ?? "unknown",
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  kernel: release(),
};
const summary = results.map((one) => ({
  name: one.name,
  wallMs: wall(one),
  cpuMs: cpu(one),
  peakMiB: memory(one),
  wallRatio: wall(one).median / wall(base).median,
  cpuRatio: cpu(one).median / cpu(base).median,
  peakRatio: memory(one).median / memory(base).median,
}));

console.log(`${machine.cpus} cores of ${machine.model}, ${machine.memoryGiB} GiB, Linux ${machine.kernel}`);
console.log(
  `${pods} pods, ${staticPods} of them static; ${runs} runs each in turns after ${warmups} warm-ups; median (quartiles), x = ratio to the peer\n`,
);
const header = ["", "wall ms", "", "x", "CPU ms", "", "x", "peak MiB", "", "x"];
const rows = summary.map((one) => [
  one.name,
  ...show(one.wallMs, one.wallRatio),
  ...show(one.cpuMs, one.cpuRatio),
  ...show(one.peakMiB, one.peakRatio),
]);
const widths = header.map((_, i) => Math.max(...[header, ...rows].map((row) => row[i]!.length)));
for (const row of [header, ...rows]) {
  console.log(
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
}

let wrong = false;
for (const one of results) {
  const bad = one.samples.filter((sample) => sample.exitStatus !== 0).length;
  if (bad === 0) continue;
  wrong = true;
  console.log(`\n${one.name}: ${bad} of ${runs} runs did not exit 0, so its numbers mean nothing; the last one said:`);
  console.log(`${one.stdout}${one.stderr}`.trimEnd());
}
if (values.json !== undefined) {
  writeFileSync(values.json, `${JSON.stringify({ machine, pods, staticPods, runs, summary, results }, null, 2)}\n`);
}
process.exit(wrong ? 1 : 0);

function measure(): { readonly cpus: number; readonly results: readonly Measured[] } {
  const plan = JSON.stringify({ warmups, runs, pauseMs, commands });
  const result = spawnSync(join(dist, "measure"), { input: plan, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (result.status !== 0) stop(`Cannot measure: ${result.error?.message ?? result.stderr}`);
  return JSON.parse(result.stdout);
}

async function untilItServes(): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (server.exitCode !== null) break;
    if (existsSync(socket) && spawnSync(join(dist, "peer"), [socket]).status === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  stop(`Cannot measure: dist/kubelet-server does not serve\n${serverSaid}`);
}

function spread(numbers: readonly number[]): Spread {
  const sorted = numbers.toSorted((a, b) => a - b);
  const at = (share: number) => {
    const place = (sorted.length - 1) * share;
    const below = sorted[Math.floor(place)]!;
    return below + (sorted[Math.ceil(place)]! - below) * (place - Math.floor(place));
  };
  return { median: at(0.5), low: at(0.25), high: at(0.75) };
}

function show({ median, low, high }: Spread, ratio: number): [string, string, string] {
  return [median.toFixed(1), `(${low.toFixed(1)} to ${high.toFixed(1)})`, ratio.toFixed(2)];
}

function stop(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
