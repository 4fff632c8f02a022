// `npm run bench:manifests`: what 50 static pod manifests cost the compiled binary above an empty folder, in alternating
// runs. The figures are printed and judged by nobody.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { ordinaryManifests } from "../test/manifests/ordinary.ts";
import { dist, measure } from "./trials.ts";

const { values } = parseArgs({ options: { runs: { type: "string", default: "20" } } });
const runs = Number(values.runs);
const files = 50;

const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const name of ["empty", "full"]) mkdirSync(join(folder, name));
for (let i = 0; i < files; i++) {
  const text = ordinaryManifests[i % ordinaryManifests.length] ?? "";
  // Each a pod of its own: by default the last of one name wins.
  writeFileSync(join(folder, "full", `${i}.yaml`), text.replace(/^( {2,4})name: \S+$/m, `$1name: pod-${i}`));
}

const command = (name: string) => ({
  name,
  argv: [join(dist, "kubelet-probe"), "manifests", "--manifests", join(folder, name), "--node-name", "node-1"],
});
const before = loadavg()[0] ?? 0;
const [empty, full] = measure([command("empty"), command("full")], runs);
if (empty === undefined || full === undefined) throw new Error("nothing was measured");
const row = (name: string, cpu: number, wall: number): string =>
  `${name.padEnd(16)}${cpu.toFixed(1).padStart(8)}${wall.toFixed(1).padStart(8)}`;
console.log(`medians of ${runs} runs, in ms; ${cpus().length} processors, load ${before.toFixed(1)} before`);
console.log(`${"".padEnd(16)}${"CPU".padStart(8)}${"wall".padStart(8)}`);
console.log(row("no manifest", empty.cpuMs.median, empty.wallMs.median));
console.log(row(`${files} manifests`, full.cpuMs.median, full.wallMs.median));
console.log(row("above", full.cpuMs.median - empty.cpuMs.median, full.wallMs.median - empty.wallMs.median));
