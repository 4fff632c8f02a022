// What the library says of itself: each public function has an example, and each example runs.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as library from "../mod.ts";
import { withSimulator } from "./probes/support.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const entry = read("mod.ts");
const sources = [...new Set([...entry.matchAll(/ from "\.\/((?:lib|probes)\/\w+\.ts)"/g)].map(([, path]) => path!))];

/** A documented thing: its comment, and the line it stands before. */
interface Documented {
  readonly path: string;
  readonly comment: string;
  readonly line: string;
}

const documented: readonly Documented[] = sources.flatMap((path) =>
  [...read(path).matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n(.*)/g)].map(([, comment, line]) => ({
    path,
    comment: comment!,
    line: line!,
  })),
);

function examplesOf(comment: string): string[] {
  const text = comment.replace(/^ *\* ?/gm, "");
  return [...text.matchAll(/@example[^\n]*\n```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
}

let runs = 0;

/** Runs an example as a file of its own would be, with a kubelet at the path it names. */
function runExample(code: string): Promise<void> {
  return withSimulator("healthy", async ({ socket }, folder) => {
    const file = join(folder, `example-${++runs}.mts`);
    writeFileSync(
      file,
      code
        .replaceAll('"./mod.ts"', JSON.stringify(pathToFileURL(join(root, "mod.ts")).href))
        .replaceAll("/var/lib/kubelet/pods-api/pods-api.sock", socket),
    );
    await import(pathToFileURL(file).href);
  });
}

describe("every public function", () => {
  const names = Object.entries(library).flatMap(([name, value]) => (typeof value === "function" ? [name] : []));

  test("has a comment with an example", () => {
    const without = names
      .filter((name) => name !== "Fault")
      .filter((name) => {
        const found = documented.find(({ line }) => new RegExp(`^export (async )?function ${name}\\b`).test(line));
        return found === undefined || examplesOf(found.comment).length === 0;
      });
    assert.deepEqual(without, []);
  });

  test("so does every operation of a client, with what it throws", () => {
    const body = /export interface PodsClient \{([\s\S]*?)\n\}/.exec(read("lib/client.ts"))![1]!;
    const operations = [...body.matchAll(/\n {2}\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n {2}(\w+)[<(]/g)];
    assert.deepEqual(
      operations.map(([, , name]) => name),
      ["list", "get", "watch", "inventory", "waitUntilReady", "connect", "close"],
    );
    for (const [, comment, name] of operations) {
      if (name === "close") continue;
      assert.equal(examplesOf(comment!).length, 1, name);
      assert.match(comment!, /@throws Fault/, name);
      assert.match(comment!, /Costs? (no|one) token/, name);
    }
  });

  for (const { path, comment, line } of documented) {
    for (const code of examplesOf(comment)) {
      const name = /(?:function )?(\w+)[<(]/.exec(line.trim())?.[1] ?? line.trim();
      test(`${path} ${name}`, () => runExample(code));
    }
  }

  test("mod.ts itself", async () => {
    const examples = examplesOf(entry);
    assert.ok(examples.length > 0);
    for (const code of examples) await runExample(code.replaceAll("console.log", "void "));
  });
});
