// `npm run setup`: makes node_modules what package-lock.json says. Every other command starts with this, so that each
// works alone on a fresh clone with Node 20 and npm. Nothing to do takes about 0.1 s.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { environmentOutside, fail, root, run, tool } from "./tools.mjs";

// What each tool's own package runs after unpacking; npm may skip it (--ignore-scripts, or a policy that asks for approval).
const runtimes = ["node", "bun", "deno"];

if (Number.parseInt(process.versions.node, 10) < 20) {
  fail(`Cannot set up: this is Node ${process.versions.node}, and Node 20 or later is needed`);
}

const missing = whatDiffers();
if (missing !== undefined) {
  process.stderr.write(`npm ci: installing the pinned tools and libraries into node_modules (${missing})\n`);
  const started = Date.now();
  npm("ci", "--no-audit", "--no-fund", "--no-update-notifier");
  process.stderr.write(`npm ci: done in ${((Date.now() - started) / 1000).toFixed(1)} s\n`);
}

let broken = await whichDoNotRun();
if (broken.length > 0) {
  process.stderr.write(`npm rebuild: running the install scripts of ${broken.join(", ")}, which were skipped\n`);
  npm("rebuild", ...broken, "--ignore-scripts=false");
  broken = await whichDoNotRun();
  if (broken.length > 0) {
    const names = broken.join(" ");
    fail(`Cannot run ${names}: install scripts are off; try 'npm approve-scripts ${names} && npm rebuild ${names}'`);
  }
}

/** Compares what is installed with the lock file, by version and checksum: times of files say nothing after a checkout. */
function whatDiffers() {
  const installedList = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installedList)) return "none there yet";
  let installed;
  try {
    installed = JSON.parse(readFileSync(installedList, "utf8")).packages;
  } catch {
    return "the list of what is installed cannot be read";
  }
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === "") continue;
    const found = installed[path];
    // A package for another system is in the lock file only.
    if (found === undefined && entry.optional) continue;
    if (found?.version !== entry.version || found?.integrity !== entry.integrity)
      return `${path} is not at ${entry.version}`;
    if (!existsSync(join(root, path, "package.json"))) return `${path} is gone`;
  }
  return undefined;
}

function npm(...args) {
  const result = run("npm", args, { env: environmentOutside() });
  if (result.failed === undefined) return;
  process.stderr.write(`${result.stdout}${result.stderr}`);
  fail(`Cannot set up: npm ${args[0]}: ${result.failed}`);
}

/** Starts each runtime once: a skipped install script leaves a placeholder, or nothing, where the program should be. */
async function whichDoNotRun() {
  const ended = await Promise.all(
    runtimes.map(
      (name) =>
        new Promise((resolve) => {
          const child = spawn(tool(name), ["--version"], { stdio: "ignore" });
          child.on("error", () => resolve(false));
          child.on("exit", (status) => resolve(status === 0));
        }),
    ),
  );
  return runtimes.filter((_, i) => !ended[i]);
}
