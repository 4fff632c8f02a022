// `npm run size`: what the binary is made of, and whether it keeps to its budget. Fails where our code or the compressed
// binary is over it, and where a probe would load what only a person asks for.
//   npm run size -- --json FILE
//   npm run size -- --lenient     says what is over its budget and does not fail
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { bundleFlags, compileFlags, defineFlags, externalFlags, files } from "./flags.mjs";
import { environment, fail, parseArguments, root, run, table, tool } from "./tools.mjs";

// In bytes. Our code is the minified JavaScript; its bytecode is made of it by the build and could be left out. Of the
// compressed binary 40.95 MB are Bun's runtime and 0.87 MB the bytecode of its own modules behind node:net and node:fs,
// which halves the time until they run: with both, 42.0 MB leave our code 0.18 MB.
const budget = { code: 400_000, compressed: 42_500_000 };

// What a check needs is named; anything else on the way to `ready` was not meant to be there.
const neededAtStart = [/^main\.ts$/, /^probes\//, /^lib\/[^/]+\.ts$/, /^node_modules\/valibot\//];
const neverAtStart = [/^lib\/(simulat|fetch_metrics|help|expla|manifests|output_file|consult)/, /^proto\//];

const { values } = parseArguments({ json: "FILE", lenient: null });
const binary = join(root, "dist", "kubelet-probe");
if (!existsSync(binary)) fail("Cannot measure: dist/kubelet-probe is missing; npm run build makes it");

const folder = join(root, "dist", `.size-${process.pid}`);
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));
mkdirSync(folder, { recursive: true });

const defines = defineFlags({ version: "0", commit: "0", date: "0" });
const chunks = bundle("main.ts", "--splitting", ...externalFlags);
const fileChunks = files.flatMap(({ entry }) => bundle(entry));
const atStart = reach(chunks.find(({ entry }) => entry === "main.ts"));
const builtins = [...new Set(chunks.flatMap((chunk) => chunk.builtins))].sort();

const sizes = { binary: statSync(binary).size };
sizes.runtime = compiledSize("empty", "");
sizes.runtimeBytecode =
  compiledSize("builtins", builtins.map((name) => `import ${JSON.stringify(name)};\n`).join("")) - sizes.runtime;
sizes.startCode = sum(atStart);
sizes.laterCode = sum(chunks) - sizes.startCode;
sizes.fileCode = sum(fileChunks);
sizes.code = sizes.startCode + sizes.laterCode + sizes.fileCode;
sizes.bytecode = sizes.binary - sizes.runtime - sizes.runtimeBytecode - sizes.code;
sizes.compressed = compressedSize(readFileSync(binary));

const problems = [];
const unwanted = atStart
  .flatMap(({ modules }) => modules.map(({ module }) => module))
  .filter((module) => neverAtStart.some((not) => not.test(module)) || !neededAtStart.some((may) => may.test(module)))
  // A package is named once.
  .map((module) => /^node_modules\/(@[^/]+\/)?[^/]+/.exec(module)?.[0] ?? module);
for (const module of new Set(unwanted)) {
  problems.push(`${module} is loaded on the way to ready: import it on demand, or name it in scripts/size.mjs`);
}
for (const [name, most] of Object.entries(budget)) {
  if (sizes[name] > most) problems.push(`${name}: ${sizes[name]} bytes, the budget is ${most}`);
}

const rows = [
  ["part", "bytes"],
  ["Bun's runtime", sizes.runtime],
  [`bytecode of Bun's own modules behind ${builtins.join(", ")}`, sizes.runtimeBytecode],
  ["our code that every check loads", sizes.startCode],
  ["our code that is loaded on demand", sizes.laterCode],
  [`files beside it, without bytecode: ${files.map(({ entry }) => entry).join(", ")}`, sizes.fileCode],
  ["bytecode of our code", sizes.bytecode],
  ["the binary", sizes.binary],
  ["our code, all of it", sizes.code],
  ["the binary, zstd -19", sizes.compressed],
];
console.log(`${table(rows)}\n`);
const chunkRows = [...chunks, ...fileChunks].map((chunk) => [
  atStart.includes(chunk) ? "start" : fileChunks.includes(chunk) ? "no bytecode" : "on demand",
  chunk.bytes,
  chunk.modules
    .slice(0, 4)
    .map(({ module, bytes }) => `${module.replace("node_modules/", "")} ${bytes}`)
    .join(", ") + (chunk.modules.length > 4 ? `, ${chunk.modules.length - 4} more` : ""),
]);
console.log(table([["loaded", "bytes", "modules"], ...chunkRows]));
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ budget, sizes, rows: rows.slice(1) }, null, 2)}\n`);
if (problems.length > 0) {
  if (!values.lenient) fail(`\n${problems.join("\n")}`);
  console.log(`\n${problems.join("\n")}`);
}

/** Bundles as the build does, and says what became of it. */
function bundle(entry, ...flags) {
  const outdir = join(folder, entry.replaceAll("/", "-"));
  const metafile = join(folder, "meta.json");
  bun(entry, ...bundleFlags, "--target=bun", ...flags, ...defines, `--outdir=${outdir}`, `--metafile=${metafile}`);
  const { outputs } = JSON.parse(readFileSync(metafile, "utf8"));
  return Object.entries(outputs).map(([path, output]) => ({
    path,
    entry: output.entryPoint,
    bytes: output.bytes,
    modules: Object.entries(output.inputs)
      .map(([module, { bytesInOutput }]) => ({ module, bytes: bytesInOutput }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes),
    imports: output.imports.filter(({ kind }) => kind === "import-statement").map((imported) => imported.path),
    builtins: [...readFileSync(join(outdir, path), "utf8").matchAll(/(?:from|import) ?"((?:node:)?[a-z_/]+)"/g)].map(
      ([, name]) => (name.startsWith("node:") ? name : `node:${name}`),
    ),
  }));
}

/** The chunks that are loaded with one, itself included. */
function reach(chunk, found = []) {
  if (chunk === undefined || found.includes(chunk)) return found;
  found.push(chunk);
  for (const path of chunk.imports)
    reach(
      chunks.find((other) => other.path === path),
      found,
    );
  return found;
}

function sum(list) {
  return list.reduce((total, { bytes }) => total + bytes, 0);
}

/** The size of another program, compiled like the binary. */
function compiledSize(name, source) {
  const entry = join(folder, `${name}.ts`);
  const output = join(folder, name);
  writeFileSync(entry, source);
  bun("--compile", ...bundleFlags, ...compileFlags, entry, `--outfile=${output}`);
  const { size } = statSync(output);
  rmSync(output);
  return size;
}

/** What `zstd -19` makes of it: with the command where there is one, and otherwise with the same library in Node. */
function compressedSize(bytes) {
  const made = spawnSync("zstd", ["-19", "--stdout", "--quiet"], { input: bytes, maxBuffer: 2 ** 30 });
  if (made.status === 0) return made.stdout.length;
  return zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 19 } }).length;
}

function bun(...args) {
  const made = run(tool("bun"), ["build", ...args], { env: environment() });
  if (made.failed === undefined) return;
  process.stderr.write(made.stderr || made.stdout);
  fail(`Cannot measure: bun build: ${made.failed}`);
}
