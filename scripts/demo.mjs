// `npm run demo`: every check against a healthy node and broken ones. The nodes are kubelet-probe's own simulator: no
// cluster, no root, nothing outside a temporary folder.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fail, parseArguments, root, run } from "./tools.mjs";

const scenarios = [
  "healthy",
  "initializing",
  "missing-pod",
  "not-ready",
  "failed-pod",
  "rate-limited",
  "http1",
  "hang",
  "dead",
  "missing",
];
const checks = ["socket", "ready", "static-pods", "rate-limit", "all"];
const profiles = ["nagios", "npd", "kube"];
const node = "cp-1";
// A node that hangs costs this long with every check and profile; a healthy one answers in a tenth of it.
const timeout = "500ms";
const anHourAgo = new Date(Date.now() - 3_600_000);

parseArguments({});
const built = run(process.execPath, ["scripts/build.mjs"], { stdio: ["ignore", "inherit", "inherit"] });
if (built.failed !== undefined) process.exit(1);
const probe = join(root, "dist", "kubelet-probe");
const shown = relative(process.cwd(), probe) || probe;

const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-demo-"));
const socket = join(folder, "pods-api.sock");
let simulator;
process.on("exit", () => {
  simulator?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

const samples = [];
const surprises = [];
console.log(`\nEvery check against ${scenarios.length} simulated nodes; the last three columns are exit statuses\n`);
printRow(["node", "check", "status", "code", ...profiles]);
for (const scenario of scenarios) {
  const expect = await simulate(scenario);
  // The socket's age tells how long the kubelet has served; in its first minutes a pod may well be missing.
  if (scenario !== "initializing" && existsSync(socket)) utimesSync(socket, anHourAgo, anHourAgo);
  for (const check of checks) printRow([scenario, check, ...ask(scenario, check, expect)]);
  // A reader wants one line of each kind while the node is there.
  if (scenario === "missing-pod") for (const profile of profiles) samples.push(sample(profile, expect));
  await stop();
}

console.log("\nWhat a person or a monitoring system sees of the node with the missing pod, by profile:");
for (const { command, output, status } of samples)
  console.log(`\n$ ${command}\n${output.trimEnd()}\n(exit status ${status})`);

console.log(`
Try next:
  ${shown} explain StaticPodMissing
  ${shown} simulate --socket /tmp/pods-api.sock --scenario rate-limited
  ${shown} all --socket /tmp/pods-api.sock --owner ${process.getuid?.() ?? 0} --node-name node-1     (in another terminal)
  sudo ${shown} all     (on a node whose kubelet serves the Pods API)`);
if (surprises.length > 0) fail(`\n${surprises.join("\n")}`);

/** Rows are printed as they come: the nodes that hang take seconds. */
function printRow(cells) {
  const widths = [12, 11, 8, 20, 6, 3, 4];
  const pad = (cell, i) => (i > 3 ? String(cell).padStart(widths[i]) : String(cell).padEnd(widths[i]));
  console.log(cells.map(pad).join("  "));
}

/** Starts a simulated node and gives the static pods it should have. */
function simulate(scenario) {
  return new Promise((resolve) => {
    simulator = spawn(probe, ["simulate", "--socket", socket, "--scenario", scenario, "--node-name", node], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    const listen = (chunk) => {
      said += chunk;
      // Nothing is served in some scenarios, but the line is said all the same.
      const ready = /^serving unix:\/\/.*\bexpect (\S+)\n/m.exec(said);
      if (ready) resolve(ready[1]);
    };
    simulator.stdout.on("data", listen);
    simulator.stderr.on("data", listen);
    simulator.on("error", (error) => fail(`Cannot simulate ${scenario}: ${error.message}`));
    simulator.on("exit", (status) => {
      if (simulator !== undefined)
        fail(`Cannot simulate ${scenario}: the simulator ended with status ${status}\n${said}`);
    });
  });
}

function stop() {
  const ended = simulator;
  simulator = undefined;
  return new Promise((resolve) => {
    const patience = setTimeout(() => ended.kill("SIGKILL"), 2000);
    ended.on("exit", () => {
      clearTimeout(patience);
      rmSync(socket, { force: true });
      resolve();
    });
    ended.kill("SIGTERM");
  });
}

/** The arguments a check takes on the simulated node. */
function argumentsOf(check, expect) {
  const args = [check, "--socket", socket, "--node-name", node, "--timeout", timeout];
  // The kubelet's socket belongs to root, this one to whoever runs the demo.
  if (check === "socket" || check === "all") args.push("--owner", String(process.getuid?.() ?? 0));
  if (check === "static-pods" || check === "all") args.push("--expect", expect);
  return args;
}

function call(args) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("KUBELET_PROBE_")));
  return spawnSync(probe, args, { encoding: "utf8", env, stdio: ["ignore", "pipe", "pipe"] });
}

/** Status and code, then the exit status in each profile. */
function ask(scenario, check, expect) {
  const reports = profiles.map((profile) => {
    const result = call([...argumentsOf(check, expect), "--profile", profile, "--output", "json"]);
    try {
      const report = JSON.parse(result.stdout);
      if (report.exitStatus !== result.status) {
        surprises.push(
          `${scenario}, ${check}, ${profile}: says exit status ${report.exitStatus}, exits ${result.status}`,
        );
      }
      if (report.code === "InternalError") surprises.push(`${scenario}, ${check}, ${profile}: ${report.summary}`);
      return report;
    } catch {
      const said = `${result.stdout}${result.stderr}`.trim() || "nothing";
      surprises.push(`${scenario}, ${check}, ${profile}: no JSON, exit status ${result.status}, said ${said}`);
      return { status: "?", code: "?", exitStatus: String(result.status) };
    }
  });
  return [reports[0].status, reports[0].code, ...reports.map((report) => report.exitStatus)];
}

function sample(profile, expect) {
  const args = [...argumentsOf("static-pods", expect), "--profile", profile];
  const { stdout, status } = call(args);
  return { command: [shown, ...args].join(" "), output: stdout, status };
}
