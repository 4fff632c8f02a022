import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import fc from "fast-check";
import { everyManifest, everySoup, folder, ruledManifest } from "./generate.ts";
import { ask, compare, findReferee, type GeneratedFile, writeFolder } from "./referee.ts";
import { snippets } from "./snippets.ts";

// Compares the reading of generated manifest folders with the kubelet's own:
// node test/manifests/fuzz.ts --runs 10000 [--seed 1] [--keep]
// node test/manifests/fuzz.ts --all pairs|manifests|soup [--keep]   all there are of one kind
const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    keep: { type: "boolean", default: false },
    all: { type: "string" },
  },
});
const batch = values.all === undefined ? 500 : 20;
const referee = await findReferee();
if (referee === null) {
  console.error("needs the kubelet fixture: npm run build:kubelet");
  process.exit(2);
}

function* everyPair(): Generator<Uint8Array> {
  for (const [i, one] of snippets.entries()) {
    for (const other of snippets.slice(i)) yield Buffer.from(ruledManifest([one, other]));
  }
}

/** Folders of 200 files. */
function inFolders(contents: Iterable<Uint8Array>): GeneratedFile[][] {
  const folders: GeneratedFile[][] = [[]];
  for (const bytes of contents) {
    if (folders.at(-1)?.length === 200) folders.push([]);
    folders.at(-1)?.push({ name: String(folders.at(-1)?.length), bytes });
  }
  return folders;
}

const kinds: Record<string, () => Iterable<Uint8Array>> = {
  pairs: everyPair,
  manifests: everyManifest,
  soup: everySoup,
};
const all = values.all === undefined ? null : inFolders(kinds[values.all]?.() ?? []);
const runs = all?.length ?? Number(values.runs);
let disagreements = 0;
let files = 0;
let taken = 0;
const started = Date.now();
for (let done = 0; done < runs; done += batch) {
  const seed = Number(values.seed) + done;
  const folders = all?.slice(done, done + batch) ?? fc.sample(folder, { seed, numRuns: Math.min(batch, runs - done) });
  const root = await mkdtemp(join(tmpdir(), "manifests-"));
  const paths = folders.map((_, i) => join(root, String(i)));
  for (const [i, list] of folders.entries()) await writeFolder(paths[i] ?? "", list);
  const verdicts = await ask(referee, "cp-1", paths);
  let kept = false;
  for (const [i, verdict] of verdicts.entries()) {
    files += verdict.files.length;
    taken += verdict.files.filter((file) => file.pod !== undefined).length;
    const differences = await compare(paths[i] ?? "", verdict);
    if (differences.length === 0) continue;
    disagreements++;
    kept = true;
    console.log(`${paths[i]} (seed ${seed}):\n  ${differences.join("\n  ")}`);
  }
  if (!kept || !values.keep) await rm(root, { recursive: true });
}
const seconds = ((Date.now() - started) / 1000).toFixed(1);
console.log(
  `${runs} folders, ${files} files, ${taken} of them pods, ${disagreements} disagreements, seed ${values.seed}, ${seconds} s`,
);
process.exitCode = disagreements === 0 ? 0 : 1;
