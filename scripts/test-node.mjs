// `npm run test:node`: a real kubelet's life, in test/node. Builds what is missing, runs, and writes the version's column of
// docs/compatibility.md when everything was run.
//   npm run test:node -- --kubelet v1.36.3          another kubelet, the default is v1.37.2
//   npm run test:node -- test/node/life.test.ts     only these files; the table then stays as it is
//   npm run test:node -- --build                    builds only
// Needs root, unshare and Go, and says which is missing; without one it is skipped, with KUBELET_PROBE_REQUIRE=all it fails.
// A first build takes 3 to 8 minutes on 2 cores, a run 1 to 2. The last line is `N passed, N failed, N skipped`.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, relative, resolve } from "node:path";
import { readNodeReport } from "./node-report.mjs";
import { environment, fail, parseArguments, root, run, tool } from "./tools.mjs";

const defaultVersion = "v1.37.2";
// Far above what a run takes, and below what anything around it waits.
const minutes = 15;
// Each has a kubelet or four at a time, most of which wait.
const filesAtOnce = 3;

const { values, rest } = parseArguments({ kubelet: defaultVersion, build: null, force: null }, { rest: true });
const version = values.kubelet ?? defaultVersion;
if (!/^v1\.\d+\.\d+$/.test(version)) fail(`Cannot use --kubelet ${version}: it takes a release such as v1.37.2`, 2);
const source = join(root, "test", "node");
const output = join(root, "dist", "node", version);
const started = Date.now();

const missing = whatIsMissing();
if (missing !== undefined) {
  const required = process.env.KUBELET_PROBE_REQUIRE === "all";
  console.log(`skipped: ${missing}`);
  console.log(`0 passed, ${required ? "1 failed, 0 skipped" : "0 failed, 1 skipped"}`);
  process.exit(required ? 1 : 0);
}
buildNode();
if (values.build) process.exit(0);
const built = run(process.execPath, ["scripts/build.mjs"]);
process.stdout.write(built.stdout);
if (built.failed !== undefined) fail(`${built.stderr}Cannot test: ${built.failed}`);

const files = chooseFiles();
// In /tmp whatever TMPDIR says: a kubelet serves no socket of more than 105 bytes. Everything of the run is in it.
const work = mkdtempSync("/tmp/kn-");
// Open, as /tmp is: whether a socket can be reached is up to the folders of its node.
chmodSync(work, 0o755);
let running;
process.on("exit", () => {
  stop("SIGKILL");
  // Its kubelets may not have noticed yet.
  rmSync(work, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

const results = join(work, "results");
const { status, why, text } = await start(files);
const outcomes = readNodeReport(existsSync(results) ? readFileSync(results, "utf8") : "");
for (const file of files) {
  if (!outcomes.some((one) => one.file === file)) {
    outcomes.push({ file, path: ["(the whole file)"], state: "failed", message: `${why}\n${text.slice(-4000)}` });
  }
}
if (status !== 0 && !outcomes.some(({ state }) => state === "failed")) {
  outcomes.push({
    file: files.join(" "),
    path: ["(the run)"],
    state: "failed",
    message: `${why}\n${text.slice(-4000)}`,
  });
}
for (const one of outcomes) {
  if (one.state === "skipped")
    console.log(`skipped: ${one.reason ?? "no reason given"}: ${one.file}: ${one.path.join(" > ")}`);
}
for (const one of outcomes) {
  if (one.state !== "failed") continue;
  console.log(`\nFAILED: ${one.file}: ${one.path.join(" > ")}`);
  console.log(String(one.message ?? "no message").replace(/^/gm, "  "));
}
const count = (state) => outcomes.filter((one) => one.state === state).length;
if (count("failed") === 0 && rest.length === 0) writeTable();
console.log(`\nkubelet ${version}: ${files.length} files, ${((Date.now() - started) / 1000).toFixed(1)} s`);
console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
process.exitCode = count("failed") > 0 ? 1 : 0;

function whatIsMissing() {
  if (process.platform !== "linux") return "needs Linux";
  if (process.geteuid() !== 0) return "needs root: it makes mount and network namespaces";
  for (const [name, owner] of [
    ["unshare", "util-linux"],
    ["nsenter", "util-linux"],
    ["setpriv", "util-linux"],
    ["mount", "mount"],
    ["ip", "iproute2"],
  ]) {
    if (spawnSync(name, ["-V"], { stdio: "ignore" }).error) return `needs ${name} (${owner})`;
  }
  if (spawnSync("unshare", ["--mount", "--net", "true"], { stdio: "ignore" }).status !== 0) {
    return "needs unshare to be allowed: no namespaces can be made here";
  }
  if (!isBuilt() && run("go", ["version"]).failed !== undefined)
    return "needs Go to build the kubelet: Go 1.26 or later";
  return undefined;
}

/** What is built depends on: nothing else is looked at, so that a machine without Go can run what another has built. */
function hashSources() {
  const hash = createHash("sha256").update(version);
  for (const path of ["fakecri/main.go", "tools.go", "go.mod", "go.sum", "../kubelet/gen_mod.sh"]) {
    hash.update(`\0${path}\0`).update(readFileSync(join(source, path)));
  }
  return hash.digest("hex");
}

function isBuilt() {
  const stamp = join(output, "stamp");
  return !values.force && existsSync(stamp) && readFileSync(stamp, "utf8") === hashSources();
}

/** Builds kubelet and fakecri of the version, at a low priority: it is the longest compilation around. */
function buildNode() {
  if (isBuilt()) {
    console.log(`dist/node/${version} is up to date`);
    return;
  }
  const module = join(output, "module");
  rmSync(module, { recursive: true, force: true });
  mkdirSync(join(module, "fakecri"), { recursive: true });
  for (const path of ["fakecri/main.go", "tools.go", "go.mod", "go.sum"])
    cpSync(join(source, path), join(module, path));
  console.log(`dist/node/${version}: go build of the kubelet and its fake container runtime …`);
  if (version !== defaultVersion) {
    // The versions of everything else follow from the release's own go.mod.
    rmSync(join(module, "go.sum"));
    order("sh", [join(root, "test", "kubelet", "gen_mod.sh"), version, module], module);
    order("go", ["mod", "tidy"], module);
  }
  for (const [name, target] of [
    ["fakecri", "./fakecri"],
    ["kubelet", "k8s.io/kubernetes/cmd/kubelet"],
  ]) {
    const made = join(output, `${name}.${process.pid}`);
    const args = ["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w", "-o", made, target];
    order("nice", ["-n", "10", "go", ...args], module);
    renameSync(made, join(output, name));
  }
  writeFileSync(join(output, "stamp"), hashSources());
  console.log(`dist/node/${version}: built in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

function order(command, args, cwd) {
  const { failed } = run(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
  if (failed !== undefined) fail(`Cannot build dist/node/${version}: ${failed}`);
}

function chooseFiles() {
  const all = readdirSync(source)
    .filter((name) => name.endsWith(".test.ts"))
    .sort()
    .map((name) => join("test", "node", name));
  if (rest.length === 0) return all;
  return rest.map((filter) => {
    const path = [resolve(root, filter), resolve(filter)].find(existsSync);
    const file = path && relative(root, path);
    if (!all.includes(file)) fail(`Cannot test ${filter}: accepted are ${all.join(", ")}`, 2);
    return file;
  });
}

/** Runs the tests to their end or to the time limit. */
function start(files) {
  const env = environment({ NO_COLOR: "1", TMPDIR: work, KUBELET_NODE_BIN: output, KUBELET_NODE_VERSION: version });
  for (const key of Object.keys(env)) {
    if (key === "NODE_NAME" || key === "FORCE_COLOR" || key.startsWith("NODE_TEST")) delete env[key];
    // Options of the probe from outside must not change what a test sees.
    if (key.startsWith("KUBELET_PROBE_") && key !== "KUBELET_PROBE_BINARY") delete env[key];
  }
  const args = [
    "--test",
    `--test-concurrency=${filesAtOnce}`,
    `--test-reporter=${join(root, "scripts", "node-reporter.mjs")}`,
    `--test-reporter-destination=${results}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
  ];
  return new Promise((finish) => {
    const child = spawn(tool("node"), [...args, ...files], {
      cwd: root,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    running = child;
    let text = "";
    const keep = (chunk) => {
      text = (text + chunk).slice(-1_000_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    let late = "";
    const timer = setTimeout(() => {
      late = `it was stopped after ${minutes} minutes; `;
      stop("SIGKILL");
    }, minutes * 60_000);
    child.on("error", (error) => finish({ status: 1, why: error.message, text }));
    child.on("close", (status, signal) => {
      clearTimeout(timer);
      running = undefined;
      finish({ status: status ?? 1, why: `${late}it ended with ${signal ?? `status ${status}`}`, text });
    });
  });
}

// The group: the runner and its files. Their kubelets end with them, and so do the namespaces and the mounts in them.
function stop(signal) {
  if (running?.pid === undefined) return;
  try {
    process.kill(-running.pid, signal);
  } catch {
    // Ended meanwhile.
  }
}

/** Puts this version's column into the table, and leaves those of others as they are. */
function writeTable() {
  const path = join(root, "docs", "compatibility.md");
  const columns = existsSync(path) ? readColumns(readFileSync(path, "utf8")) : new Map();
  const own = new Map();
  for (const { path, state, reason } of outcomes) {
    const [group, ...names] = path;
    own.set(rowOf(group, names.join(": ")), state === "passed" ? "yes" : reason?.startsWith("todo") ? "not yet" : "–");
  }
  columns.set(version, own);
  const versions = [...columns.keys()].sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  // The rows are this run's: a test that is gone takes its row along.
  const groups = new Map();
  for (const row of own.keys()) {
    const [group, name] = row.split("\n");
    groups.set(group, [...(groups.get(group) ?? []), name]);
  }
  const lines = [
    "# Compatibility",
    "",
    "What was run on which kubelet: each row is a test of `test/node` with a real kubelet of that release, standalone, and the",
    "built binary. `npm run test:node` writes the column of its release when every test has passed, so a row says `yes` where the",
    "test passed and `–` where it speaks of other releases; `not yet` is a known fault of this program.",
  ];
  for (const [group, names] of groups) {
    lines.push("", `## ${group[0].toUpperCase()}${group.slice(1)}`, "");
    lines.push(`| | ${versions.join(" | ")} |`, `| --- | ${versions.map(() => "---").join(" | ")} |`);
    for (const name of names) {
      const cells = versions.map((one) => columns.get(one).get(rowOf(group, name)) ?? "not run");
      lines.push(`| ${name.replaceAll("|", "\\|")} | ${cells.join(" | ")} |`);
    }
  }
  writeFileSync(path, `${lines.join("\n")}\n`);
  console.log(`docs/compatibility.md has the column ${version}`);
}

function readColumns(text) {
  const columns = new Map();
  let group = "";
  let versions = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("## ")) group = line.slice(3);
    const cells = line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (cells.length < 2 || cells[0].startsWith("---")) continue;
    if (cells[0] === "") {
      versions = cells.slice(1);
      for (const one of versions) if (!columns.has(one)) columns.set(one, new Map());
      continue;
    }
    const name = cells[0].replaceAll("\\|", "|");
    cells.slice(1).forEach((cell, i) => {
      columns.get(versions[i]).set(rowOf(group, name), cell);
    });
  }
  return columns;
}

function rowOf(group, name) {
  return `${group[0].toLowerCase()}${group.slice(1)}\n${name}`;
}
