// `npm run build`: main.ts and what it imports, compiled with Bun's runtime into dist/kubelet-probe.
// `npm run build:all`: the same for every Linux target, into dist/release, with SHA256SUMS.
// One commit gives the same bytes wherever it is built: no build time, no path and no file name goes in.
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { bundleFlags, compileFlags, defineFlags, externalFlags, files } from "./flags.mjs";
import { environment, environmentOutside, fail, parseArguments, root, run, table, tool } from "./tools.mjs";
import { train } from "./train.mjs";

// What can change the binary. The lock file stands for every dependency and for Bun.
const inputs = [
  "main.ts",
  "mod.ts",
  "lib",
  "probes",
  "proto/gen",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "scripts/build.mjs",
  "scripts/flags.mjs",
  "scripts/train.mjs",
];

// `package` is Bun's own name of the target's runtime on npm. `baseline` is for processors without AVX2; Bun 1.4 ships the
// same runtime under both names, and the table says so, but a script that asks for a baseline file must find one.
const targets = [
  { name: "linux-x64", bun: "bun-linux-x64", package: "@oven/bun-linux-x64" },
  { name: "linux-x64-baseline", bun: "bun-linux-x64-baseline", package: "@oven/bun-linux-x64-baseline" },
  { name: "linux-arm64", bun: "bun-linux-arm64", package: "@oven/bun-linux-aarch64" },
  { name: "linux-x64-musl", bun: "bun-linux-x64-musl", package: "@oven/bun-linux-x64-musl" },
  { name: "linux-x64-musl-baseline", bun: "bun-linux-x64-musl-baseline", package: "@oven/bun-linux-x64-musl-baseline" },
  { name: "linux-arm64-musl", bun: "bun-linux-arm64-musl", package: "@oven/bun-linux-aarch64-musl" },
];

const { values } = parseArguments({ all: null, force: null });
const dist = join(root, "dist");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const bunVersion = manifest.devDependencies.bun;

const { version: versionForDeno } = JSON.parse(readFileSync(join(root, "deno.json"), "utf8"));
if (versionForDeno !== manifest.version) {
  fail(`Cannot build: package.json has version ${manifest.version} and deno.json ${versionForDeno}`);
}
if (!existsSync(join(root, "main.ts"))) fail("Cannot build: main.ts is missing");
const baked = { version: manifest.version, ...describeCommit() };
const inputsHash = hashInputs();

// A build that was ended half-way leaves its folder behind.
const temporary = join(dist, `.build-${process.pid}`);
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

if (values.all) await buildAll();
else await buildHere();

async function buildHere() {
  const output = join(dist, "kubelet-probe");
  const stamp = join(dist, ".kubelet-probe.stamp");
  if (!values.force && existsSync(output) && existsSync(stamp) && readFileSync(stamp, "utf8") === inputsHash) {
    console.log(`dist/kubelet-probe is up to date (${describe()})`);
    return;
  }
  const started = Date.now();
  const order = await obtainOrder();
  const problem = order.problem ?? compile(output, order.flags);
  if (problem !== undefined) fail(`Cannot build dist/kubelet-probe: ${problem}`);
  writeFileSync(stamp, inputsHash);
  const megabytes = (statSync(output).size / 1e6).toFixed(1);
  console.log(
    `dist/kubelet-probe: ${describe()}, ${megabytes} MB, built in ${((Date.now() - started) / 1000).toFixed(1)} s`,
  );
}

async function buildAll() {
  const folder = join(dist, "release");
  // Binaries of an earlier version must not end up in this version's SHA256SUMS, nor beside it.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const rows = [["target", "bytes", "sha256 or why not"]];
  const sums = [];
  // Of this machine's own binary: which functions a probe runs first depends on no processor.
  const order = await obtainOrder();
  if (order.problem !== undefined) fail(`Cannot build: ${order.problem}`);
  for (const target of targets) {
    const name = `kubelet-probe-${baked.version}-${target.name}`;
    const output = join(folder, name);
    const runtime = obtainRuntime(target);
    const problem =
      runtime.problem ??
      compile(output, [...order.flags, `--target=${target.bun}`, `--compile-executable-path=${runtime.path}`]);
    if (problem !== undefined) {
      rows.push([target.name, "-", `not built: ${problem}`]);
      continue;
    }
    const bytes = readFileSync(output);
    const sum = createHash("sha256").update(bytes).digest("hex");
    const twin = sums.find((other) => other.sum === sum);
    rows.push([target.name, bytes.length, twin ? `${sum} (the same file as ${twin.target})` : sum]);
    sums.push({ sum, name, target: target.name });
  }
  console.log(`kubelet-probe ${describe()}, Bun ${bunVersion}, in dist/release:\n${table(rows)}`);
  if (sums.length === 0) fail("Cannot build for any target");
  writeFileSync(join(folder, "SHA256SUMS"), sums.map(({ sum, name }) => `${sum}  ${name}\n`).join(""));
}

/** Compiles a binary to train on, and gives the flag that lays the bytecode out in the order of its first use. */
async function obtainOrder() {
  const untrained = join(temporary, "untrained");
  const problem = compile(untrained, []);
  if (problem !== undefined) return { problem };
  try {
    return { flags: [`--bytecode-order=${(await train(untrained, temporary)).join(",")}`] };
  } catch (error) {
    return { problem: `the training run failed: ${error.message}` };
  }
}

/** Compiles into `output`, which is replaced at once or not at all. Gives the reason when it fails. */
function compile(output, furtherFlags) {
  mkdirSync(temporary, { recursive: true });
  // Bun writes the file's name into the binary: always the same one, or two builds of one commit would differ.
  const made = join(temporary, "kubelet-probe");
  rmSync(made, { force: true });
  const defines = defineFlags(baked);
  const bun = (...args) => run(tool("bun"), ["build", ...args, ...defines], { env: environment() });
  const bundle = ({ entry, path }) => bun(...bundleFlags, "--target=bun", entry, `--outfile=${join(temporary, path)}`);
  const assets = files.map(({ path }) => `--asset=${join(temporary, path)}`);
  const result =
    files.map(bundle).find(({ failed }) => failed !== undefined) ??
    bun(
      ...["--compile", ...bundleFlags, ...compileFlags, ...assets, ...externalFlags, ...furtherFlags],
      ...["main.ts", `--outfile=${made}`],
    );
  if (result.failed !== undefined || !existsSync(made)) {
    process.stderr.write(result.stderr || result.stdout);
    return result.failed ?? "bun wrote no file";
  }
  chmodSync(made, 0o755);
  renameSync(made, output);
  return undefined;
}

/** Gets a target's runtime from npm, checks it and unpacks it; the archive is kept in dist/.cache. */
function obtainRuntime(target) {
  const cache = join(dist, ".cache");
  mkdirSync(cache, { recursive: true });
  const archive = join(cache, `${target.bun}-${bunVersion}.tgz`);
  const wanted = expectedIntegrity(target, `${archive}.integrity`);
  if (wanted.problem !== undefined) return wanted;
  if (!existsSync(archive) || integrityOf(archive) !== wanted.integrity) {
    const download = join(temporary, target.bun);
    mkdirSync(download, { recursive: true });
    const packed = run(
      "npm",
      ["pack", "--silent", `--pack-destination=${download}`, `${target.package}@${bunVersion}`],
      {
        env: environmentOutside(),
      },
    );
    const file = readdirSync(download).find((name) => name.endsWith(".tgz"));
    if (packed.failed !== undefined || file === undefined) {
      return { problem: `npm pack ${target.package}@${bunVersion}: ${firstLine(packed.stderr) ?? packed.failed}` };
    }
    const found = integrityOf(join(download, file));
    if (found !== wanted.integrity)
      return { problem: `${target.package}@${bunVersion} has checksum ${found}, not ${wanted.integrity}` };
    renameSync(join(download, file), archive);
  }
  const folder = join(temporary, target.bun);
  mkdirSync(folder, { recursive: true });
  const unpacked = run("tar", ["-xzf", archive, "-C", folder]);
  if (unpacked.failed !== undefined) return { problem: `tar: ${firstLine(unpacked.stderr) ?? unpacked.failed}` };
  const path = join(folder, "package", "bin", "bun");
  return existsSync(path) ? { path } : { problem: `${target.package}@${bunVersion} holds no bin/bun` };
}

/** The checksum the lock file has for the package; npm's own for the few that are in no lock file, asked for once. */
function expectedIntegrity(target, remembered) {
  const locked = lock.packages[`node_modules/${target.package}`]?.integrity;
  if (locked !== undefined) return { integrity: locked };
  if (existsSync(remembered)) return { integrity: readFileSync(remembered, "utf8").trim() };
  const viewed = run("npm", ["view", `${target.package}@${bunVersion}`, "dist.integrity"], {
    env: environmentOutside(),
  });
  const integrity = viewed.stdout.trim();
  if (viewed.failed !== undefined || !integrity.startsWith("sha512-")) {
    return { problem: `npm view ${target.package}@${bunVersion}: ${firstLine(viewed.stderr) ?? "no checksum"}` };
  }
  writeFileSync(remembered, `${integrity}\n`);
  return { integrity };
}

function integrityOf(file) {
  return `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
}

/** Commit and commit date, UTC; the date of the commit and not of the build, so that a rebuild gives the same file. */
function describeCommit() {
  const unknown = { commit: "unknown", date: "unknown" };
  const top = run("git", ["rev-parse", "--show-toplevel"]);
  // An unpacked archive inside somebody else's repository has no commit of its own.
  if (top.failed !== undefined || realpathSync(top.stdout.trim()) !== realpathSync(root)) return unknown;
  const head = run("git", ["show", "--no-patch", "--format=%h %ct", "--abbrev=12", "HEAD"]);
  if (head.failed !== undefined) return unknown;
  const [commit, seconds] = head.stdout.trim().split(" ");
  const changed = run("git", ["status", "--porcelain", "--", ...inputs]).stdout.trim() !== "";
  return {
    commit: changed ? `${commit}-dirty` : commit,
    date: new Date(Number(seconds) * 1000).toISOString().replace(".000Z", "Z"),
  };
}

function describe() {
  return `version ${baked.version}, commit ${baked.commit}, ${baked.date}`;
}

function hashInputs() {
  const hash = createHash("sha256").update(JSON.stringify([baked, process.platform, process.arch]));
  const add = (path) => {
    const full = join(root, path);
    if (!existsSync(full)) return;
    if (statSync(full).isDirectory()) {
      for (const name of readdirSync(full).sort()) add(join(path, name));
    } else hash.update(`\0${path}\0`).update(readFileSync(full));
  };
  inputs.forEach(add);
  return hash.digest("hex");
}

function firstLine(text) {
  return text
    .split("\n")
    .map((line) => line.replace(/^npm (error|ERR!) */, "").trim())
    .find((line) => line !== "" && !line.startsWith("code "));
}
