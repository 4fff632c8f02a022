// `npm run generate`: proto/gen from proto/*.proto, with the pinned generator.
// `npm run check:generated`: whether proto/gen is what that would give.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environment, fail, parseArguments, root, run, tool } from "./tools.mjs";

const { values } = parseArguments({ check: null });
const target = join(root, "proto", "gen");
const fresh = generate();

if (values.check) compare(read(target), fresh);
else {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const [name, text] of fresh) writeFileSync(join(target, name), text);
  console.log(`proto/gen: ${fresh.size} files`);
}

/** The files by name. buf starts protoc-gen-es by name, and that one starts node by name: hence the environment. */
function generate() {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-gen-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const made = run(tool("buf"), ["generate", "--output", folder], { env: environment() });
  if (made.failed !== undefined) fail(`Cannot generate from proto/: ${made.failed}\n${made.stderr}`);
  const files = read(join(folder, "proto", "gen"));
  for (const [name, text] of files) {
    // Node, Bun and tsc find a .d.ts beside its .js; Deno has to be told.
    if (name.endsWith(".js")) files.set(name, `// @ts-self-types="./${name.replace(/\.js$/, ".d.ts")}"\n${text}`);
  }
  return files;
}

function compare(committed, wanted) {
  const problems = [];
  for (const name of [...new Set([...wanted.keys(), ...committed.keys()])].sort()) {
    if (!committed.has(name)) problems.push(`proto/gen/${name} is missing`);
    else if (!wanted.has(name)) problems.push(`proto/gen/${name} comes from no .proto file`);
    else if (committed.get(name) !== wanted.get(name))
      problems.push(firstDifference(name, committed.get(name), wanted.get(name)));
  }
  if (problems.length > 0) {
    fail(`${problems.join("\n")}\nproto/gen is not what proto/ gives: run 'npm run generate' and commit the result`);
  }
  console.log(`proto/gen is what proto/ gives (${wanted.size} files)`);
}

function firstDifference(name, committed, wanted) {
  const [have, want] = [committed.split("\n"), wanted.split("\n")];
  const at = want.findIndex((line, i) => line !== have[i]);
  const line = at < 0 ? want.length : at;
  const show = (text) => (text === undefined ? "(the file ends)" : text.slice(0, 160));
  return `proto/gen/${name}:${line + 1} differs\n  committed: ${show(have[line])}\n  generated: ${show(want[line])}`;
}

function read(folder) {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}
