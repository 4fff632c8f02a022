// What stands for something that only a publisher or a user knows is listed in docs/releases.md, and stands nowhere else.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../support.ts";

const published = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "main.ts", "mod.ts"];
const folders = ["lib", "probes", "docs", "deploy", "examples", "scripts", ".github"];
const files = [
  ...published,
  ...folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1)),
  ),
];

// A name or address that cannot be real, or a word that asks to be replaced.
const placeholder =
  /\bOWNER\/|\bYOUR\/\w+|[\w@-]+(?:\.[\w-]+)*\.(?:example|invalid)\b|\b(?:TODO|FIXME|CHANGEME|REPLACEME)\b/g;

test("every placeholder is in the list of docs/releases.md, with its files, and nothing that is gone", () => {
  const list = readFileSync(join(root, "docs/releases.md"), "utf8").split("\n## Placeholders\n")[1]!;
  const listed = list
    .split("\n## ")[0]!
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .flatMap((line) => {
      const [name, where] = line
        .split("|")
        .slice(1, 3)
        .map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word!));
      return where!.map((file) => `${name![0]} in ${file}`);
    });
  const found = new Set(
    files.flatMap((file) => {
      // The simulator's pods have made-up images: what is shown of them is to look made up.
      if (file.startsWith("lib/simulator/")) return [];
      let text = readFileSync(join(root, file), "utf8");
      if (file === "docs/releases.md") text = text.replace(list, "");
      return [...text.matchAll(placeholder)].map(([word]) => `${word} in ${file}`);
    }),
  );
  assert.deepEqual([...found].sort(), listed.sort());
});
