// `npm test`: the unit tests under Node, Bun and Deno, and the suites that start the built binary under Node.
//   npm test -- test/range.test.ts      only these files
//   npm test -- --runtime bun           only this runtime
// A runtime that crashes, or a file that runs no test, is a failure. With KUBELET_PROBE_REQUIRE=all a test that was
// skipped because something it needs is missing is a failure too. The last line is `N passed, N failed, N skipped`.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { readNodeReport } from "./node-report.mjs";
import { environment, fail, parseArguments, root, run, table, tool } from "./tools.mjs";

// A run that hangs must end, and say where, well before anything around it gives up.
const minutesPerRuntime = 20;
const wholeOutputOfACrash = 60;
// What the tests themselves read; every other variable of this prefix is an option of the program.
const forTheTests = ["KUBELET_PROBE_REQUIRE", "KUBELET_PROBE_BINARY"];

const { values, rest } = parseArguments({ runtime: "node|bun|deno" }, { rest: true });
const work = mkdtempSync(join(tmpdir(), "kubelet-probe-test-"));
let running;
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    stop("SIGTERM");
    process.exit(1);
  });
}

const runtimes = {
  node: {
    args: (files, results) => [
      "--test",
      `--test-reporter=${join(root, "scripts", "node-reporter.mjs")}`,
      `--test-reporter-destination=${results}`,
      ...files,
    ],
    read: readNodeCases,
  },
  bun: {
    // With ./ in front Bun takes a path; without, anything that contains it.
    args: (files, results) => [
      "test",
      "--reporter=junit",
      `--reporter-outfile=${results}`,
      ...files.map((f) => `./${f}`),
    ],
    read: readJunit,
  },
  deno: {
    args: (files, results) => ["test", "--allow-all", "--no-check", "--quiet", `--junit-path=${results}`, ...files],
    read: readJunit,
  },
};

if (values.runtime !== undefined && !(values.runtime in runtimes)) {
  fail(`Cannot use --runtime ${values.runtime}: accepted are node, bun and deno`, 2);
}

// A check is a source file like those of lib: its tests need no binary.
const everywhere = [...testFiles("test"), ...testFiles("test/probes")];
const onNode = readdirSync(join(root, "test"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "probes")
  .flatMap((entry) => testFiles(join("test", entry.name)));
const wanted = chooseFiles(rest);

const outcomes = [];
const built = run(process.execPath, ["scripts/build.mjs"]);
process.stdout.write(built.stdout);
if (built.failed !== undefined) {
  process.stderr.write(built.stderr);
  outcomes.push({
    runtime: "build",
    file: "scripts/build.mjs",
    name: "npm run build",
    state: "failed",
    message: built.stderr,
  });
}

const subtotals = [];
for (const [name, runtime] of Object.entries(runtimes)) {
  if (values.runtime !== undefined && values.runtime !== name) continue;
  const files = [...everywhere, ...(name === "node" ? onNode : [])].filter((file) => wanted(file));
  if (files.length === 0) continue;
  const started = Date.now();
  console.log(`${name} ${versionOf(name)}: ${files.length} files …`);
  const cases = await runAll(name, runtime, files);
  outcomes.push(...cases);
  subtotals.push({ name, files: files.length, cases, seconds: (Date.now() - started) / 1000 });
}
if (subtotals.length === 0) {
  outcomes.push({
    runtime: "-",
    file: rest.join(" "),
    name: "no test file",
    state: "failed",
    message: "nothing was run",
  });
}

explainSkips();
if (process.env.KUBELET_PROBE_REQUIRE === "all") refuseMissingNeeds();
printSkipped();
printFailures();
if (subtotals.length > 0) {
  const rows = subtotals.map(({ name, files, cases, seconds }) => [
    name,
    `${files} files`,
    ...tally(cases),
    `${seconds.toFixed(1)} s`,
  ]);
  console.log(`\n${table(rows)}`);
}
const [passed, failed, skipped] = tally(outcomes).map((text) => Number.parseInt(text, 10));
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 ? 1 : 0;

function testFiles(folder) {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".test.ts"))
    .sort()
    .map((name) => join(folder, name));
}

/** Files by path, from the root or from here, or every file of a folder. */
function chooseFiles(filters) {
  if (filters.length === 0) return () => true;
  const paths = filters.map((filter) => {
    const path = [resolve(root, filter), resolve(filter)].find(existsSync);
    if (path === undefined) fail(`Cannot test ${filter}: there is no such file or folder`, 2);
    return relative(root, path) + (statSync(path).isDirectory() ? "/" : "");
  });
  return (file) => paths.some((path) => file === path || (path.endsWith("/") && file.startsWith(path)));
}

async function runAll(name, runtime, files) {
  const results = join(work, `${name}.results`);
  const { status, why, output } = await start(tool(name), runtime.args(files, results));
  let cases = [];
  let unreadable;
  try {
    cases = runtime.read(readFileSync(results, "utf8")).map((found) => ({ ...found, runtime: name }));
  } catch (error) {
    unreadable = error.code === "ENOENT" ? `${name} wrote no results` : `${name}'s results: ${error.message}`;
  }
  const report = (file, message) =>
    cases.push({ runtime: name, file, name: "(the whole file)", state: "failed", message });
  const tail = `${output.trimEnd().split("\n").slice(-wholeOutputOfACrash).join("\n")}`;
  if (unreadable !== undefined) report(files.join(" "), `${unreadable}; ${why}\n${tail}`);
  else {
    // A test that ends the process, or waits for ever, takes the rest of its file along without a word.
    for (const file of files) {
      if (!cases.some((one) => one.file === file)) report(file, `no test of this file was run; ${why}\n${tail}`);
    }
    if (status !== 0 && !cases.some((one) => one.state === "failed")) report(files.join(" "), `${why}\n${tail}`);
  }
  return cases;
}

/** Runs to the end or to the time limit; the children's children too, since a test starts servers. */
function start(command, args) {
  const env = environment({ NO_COLOR: "1" });
  // Options from outside must not change what a test sees.
  for (const key of Object.keys(env)) {
    if (key === "NODE_NAME" || key === "FORCE_COLOR" || key.startsWith("NODE_TEST")) delete env[key];
    if (key.startsWith("KUBELET_PROBE_") && !forTheTests.includes(key)) delete env[key];
  }
  return new Promise((finish) => {
    const child = spawn(command, args, { cwd: root, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    running = child;
    let output = "";
    const keep = (chunk) => {
      output = (output + chunk).slice(-1_000_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop("SIGKILL");
    }, minutesPerRuntime * 60_000);
    const end = (status, why) => {
      clearTimeout(timer);
      running = undefined;
      finish({ status, why: late ? `it was stopped after ${minutesPerRuntime} minutes` : why, output });
    };
    child.on("error", (error) => end(1, error.message));
    child.on("exit", (status, signal) => {
      const why = signal === null ? `it ended with status ${status}` : `it was ended by ${signal}`;
      // What a child left running may hold the pipes open for ever.
      const patience = setTimeout(() => end(status ?? 1, why), 2000);
      child.on("close", () => {
        clearTimeout(patience);
        end(status ?? 1, why);
      });
    });
  });
}

function stop(signal) {
  if (running?.pid === undefined) return;
  try {
    process.kill(-running.pid, signal);
  } catch {
    // Ended meanwhile.
  }
}

/** A test that is still to do counts as skipped, whatever came of it. */
function readNodeCases(text) {
  return readNodeReport(text).map(({ path, todo, ...found }) => ({
    ...found,
    name: path.join(" > "),
    state: todo ? "skipped" : found.state,
  }));
}

/** JUnit as Bun and Deno write it: nested suites there, ` > ` in names here. */
function readJunit(text) {
  if (!text.includes("<testsuites")) throw new Error("not a JUnit file");
  const suites = [];
  const cases = [];
  let current;
  for (const match of text.matchAll(/<(\/?)(\w+)((?:\s+[\w:-]+="[^"]*")*)\s*(\/?)>([^<]*)/g)) {
    const [, closing, element, attributeText, selfClosing, content] = match;
    const attributes = {};
    for (const [, key, value] of attributeText.matchAll(/([\w:-]+)="([^"]*)"/g)) attributes[key] = unescapeXml(value);
    if (element === "testsuite") {
      if (closing) suites.pop();
      else if (!selfClosing) suites.push(attributes.name);
    } else if (element === "testcase" && !closing) {
      // The outermost suite is the file.
      const name = [...suites.slice(1), attributes.name].join(" > ");
      current = { file: asPath(attributes.file ?? attributes.classname), name, state: "passed" };
      cases.push(current);
    } else if ((element === "failure" || element === "error") && !closing) {
      current.state = "failed";
      current.message = unescapeXml(content).trim() || attributes.message || attributes.type;
    } else if (element === "skipped" && !closing) {
      current.state = "skipped";
      current.reason = attributes.message;
    }
  }
  return withoutParents(cases);
}

/** Deno lists a test that has steps beside its steps, and files the steps of a `describe` under its own source. */
function withoutParents(cases) {
  const files = new Map();
  for (const one of cases) if (one.file.startsWith("test/") && !files.has(one.name)) files.set(one.name, one.file);
  const parents = new Set();
  for (const one of cases) {
    const parts = one.name.split(" > ");
    if (!one.file.startsWith("test/")) one.file = files.get(parts[0]) ?? one.file;
    for (let i = 1; i < parts.length; i++) parents.add(`${one.file}\n${parts.slice(0, i).join(" > ")}`);
  }
  const aboutSteps = /^\d+ test steps? failed/;
  return cases.filter(
    (one) =>
      !parents.has(`${one.file}\n${one.name}`) || (one.state === "failed" && !aboutSteps.test(one.message ?? "")),
  );
}

function asPath(text) {
  return relative(root, resolve(root, text));
}

function unescapeXml(text) {
  const named = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal) return String.fromCodePoint(Number(decimal));
    return named[name] ?? whole;
  });
}

/** Bun and Deno drop the reason of a skip, and Deno calls a test passed that skipped itself: Node knows both. */
function explainSkips() {
  const onNodeSkipped = new Map();
  for (const one of outcomes) {
    if (one.runtime === "node" && one.state === "skipped") onNodeSkipped.set(`${one.file}\n${one.name}`, one.reason);
  }
  for (const one of outcomes) {
    if (one.runtime === "node") continue;
    const key = `${one.file}\n${one.name}`;
    if (!onNodeSkipped.has(key)) continue;
    if (one.runtime === "deno" && one.state === "passed") one.state = "skipped";
    if (one.state === "skipped") one.reason = onNodeSkipped.get(key);
  }
}

function refuseMissingNeeds() {
  for (const one of outcomes) {
    if (one.state !== "skipped" || !one.reason?.startsWith("needs ")) continue;
    one.state = "failed";
    one.message = `skipped, but KUBELET_PROBE_REQUIRE=all asks for every test: ${one.reason}`;
  }
}

function printSkipped() {
  const byReason = new Map();
  for (const one of outcomes) {
    if (one.state !== "skipped") continue;
    const reason = one.reason ?? `no reason given (${one.runtime})`;
    byReason.set(reason, [...(byReason.get(reason) ?? []), one]);
  }
  for (const [reason, list] of byReason) {
    console.log(`\nskipped: ${reason}`);
    const places = new Map();
    for (const one of list) {
      const key = `${one.file}: ${one.name}`;
      places.set(key, [...(places.get(key) ?? []), one.runtime]);
    }
    for (const [place, names] of places) console.log(`  ${place} (${names.join(", ")})`);
  }
}

function printFailures() {
  for (const one of outcomes) {
    if (one.state !== "failed") continue;
    console.log(`\nFAILED under ${one.runtime}: ${one.file}: ${one.name}`);
    for (const line of String(one.message ?? "no message")
      .trimEnd()
      .split("\n"))
      console.log(`  ${line}`);
  }
}

function tally(cases) {
  return ["passed", "failed", "skipped"].map(
    (state) => `${cases.filter((one) => one.state === state).length} ${state}`,
  );
}

function versionOf(name) {
  return run(tool(name), ["--version"]).stdout.match(/\d+\.\d+\.\d+/)?.[0] ?? "";
}
