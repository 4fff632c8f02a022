import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { everyManifest } from "./generate.ts";
import { ask, findReferee, writeFolder } from "./referee.ts";

// Writes down what the kubelet's own reader says, for tests that run without it:
// test/cases/m*/expected.json, and test/manifests/verdicts.txt for everyManifest().
// node test/manifests/record.ts
const referee = await findReferee();
if (referee === null) {
  console.error("needs the kubelet fixture: npm run build:kubelet");
  process.exit(2);
}
const here = import.meta.dirname;
const cases = resolve(here, "../cases");
const node = "cp-1";
for (const name of (await readdir(cases)).filter((entry) => entry.startsWith("m")).sort()) {
  const [verdict] = await ask(referee, node, [join(cases, name, "manifests")]);
  if (verdict === undefined) continue;
  const expected = {
    files: verdict.files.map(({ file, pod, mirror, error, parsed }) => {
      if (pod !== undefined) return mirror === true ? { file, pod, mirror } : { file, pod };
      return { file, error: error?.replaceAll(`${cases}/${name}/`, "").slice(0, 160), parsed: parsed === true };
    }),
    kubelet: "v1.37.2 pkg/kubelet/config, run",
    nodeName: node,
    pods: verdict.pods,
  };
  await writeFile(join(cases, name, "expected.json"), `${JSON.stringify(expected, null, 1)}\n`);
}

const root = await mkdtemp(join(tmpdir(), "manifests-"));
const contents = [...everyManifest()];
const folders: string[] = [];
for (let i = 0; i < contents.length; i += 1000) {
  const path = join(root, String(i));
  folders.push(path);
  const files = contents.slice(i, i + 1000).map((bytes, j) => ({ name: String(j).padStart(4, "0"), bytes }));
  await writeFolder(path, files);
}
const verdicts = await ask(referee, node, folders);
// One letter a manifest: p a pod, r decoded as a Pod and refused, - not decoded.
const letters = verdicts.flatMap(({ files }) =>
  files.map((file) => (file.pod !== undefined ? "p" : file.parsed ? "r" : "-")),
);
await writeFile(join(here, "verdicts.txt"), `${letters.join("").replaceAll(/.{120}/g, "$&\n")}\n`);
await rm(root, { recursive: true });
console.log(`${letters.length} manifests recorded`);
