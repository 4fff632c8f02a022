import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { readManifest } from "../../lib/manifests/manifest.ts";
import { parseYaml } from "../../lib/manifests/yaml-parse.ts";
import { readQuickly } from "../../lib/manifests/yaml-quick.ts";
import { decodeYaml } from "../../lib/manifests/yaml-text.ts";
import { inOrder, yamlValue } from "../../lib/manifests/yaml-value.ts";
import { everyManifest, everySoup, folder } from "./generate.ts";
import { marks, ordinaryManifests, smallManifest, someLine } from "./ordinary.ts";

/** Reads a text quickly, and compares with the whole language's reading of it; whether it could be read quickly. */
function takesQuickly(bytes: Uint8Array): boolean {
  const text = decodeYaml(bytes);
  const quick = text.ends === null ? readQuickly(text.text, () => {}) : null;
  if (quick === null) return false;
  let whole: unknown;
  try {
    const document = parseYaml(text);
    whole = document === null ? null : { value: yamlValue(document.root), more: document.more };
  } catch (error) {
    whole = error;
  }
  // What differs in a mapping's keys is told by their order alone, so texts do as well as trees, in a tenth of the time.
  const found = JSON.stringify({ value: inOrder(quick), more: false });
  if (whole instanceof Error || JSON.stringify(whole) !== found) {
    assert.deepEqual({ value: inOrder(quick), more: false }, whole, Buffer.from(bytes).toString());
    assert.fail(Buffer.from(bytes).toString());
  }
  return true;
}

/** How many of some texts could be read quickly. */
function taken(texts: Iterable<Uint8Array | string>): number {
  let count = 0;
  for (const text of texts) if (takesQuickly(Buffer.from(text))) count++;
  return count;
}

/** A text with each mark at each place, and without each character and each line. */
function* spoiled(text: string): Generator<string> {
  for (let at = 0; at <= text.length; at++) {
    for (const mark of marks) yield text.slice(0, at) + mark + text.slice(at);
    yield text.slice(0, at) + text.slice(at + 1);
    yield text.slice(0, at);
  }
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) yield lines.toSpliced(at, 1).join("\n");
  for (let at = 0; at < lines.length; at++) yield lines.toSpliced(at, 0, lines[at] ?? "").join("\n");
}

describe("what is read quickly is read as the whole language reads it", () => {
  test("ordinary manifests are read quickly, and are pods", () => {
    for (const text of ordinaryManifests) {
      assert.ok(takesQuickly(Buffer.from(text)), text);
      const { verdict, reason } = readManifest(Buffer.from(text), "cp-1");
      assert.equal(verdict, "pod", reason);
    }
  });

  test("so are most manifests of the public cases", () => {
    const cases = resolve(import.meta.dirname, "../cases");
    const texts = readdirSync(cases)
      .filter((name) => /^a[0-9]/.test(name))
      .flatMap((name) => {
        const path = join(cases, name, "manifests");
        return (existsSync(path) ? readdirSync(path, { withFileTypes: true }) : [])
          .filter((entry) => entry.isFile())
          .map((entry) => readFileSync(join(path, entry.name)));
      });
    const count = taken(texts);
    assert.ok(count * 2 > texts.length, `${count} of ${texts.length}`);
  });

  test("every recorded manifest", () => {
    const count = taken(everyManifest());
    assert.ok(count > 1000, String(count));
  });

  test("every string of three pieces of YAML", () => {
    taken(everySoup());
  });

  test("a small manifest with each mark at each place", () => {
    const count = taken(spoiled(smallManifest));
    assert.ok(count > 1000, String(count));
  });

  test("generated folders", () => {
    const count = taken(
      fc.sample(folder, { seed: 1, numRuns: 1000 }).flatMap((files) => files.map(({ bytes }) => bytes)),
    );
    assert.ok(count > 100, String(count));
  });

  test("lines in any order", () => {
    const texts = fc.sample(fc.array(someLine, { minLength: 1, maxLength: 6 }), { seed: 1, numRuns: 50_000 });
    const count = taken(texts.map((lines) => lines.join("\n")));
    assert.ok(count > 1000, String(count));
  });

  test("no text takes long to be left to the whole language", () => {
    for (const piece of [" ", "a: ", "- ", "a: b ", "a: b:", "a: b #", "a: 'b", "a: -", "a:  ", "a"]) {
      const [start = "", rest = ""] = [piece.slice(0, -1), piece.slice(-1)];
      for (const text of [piece.repeat(64 * 1024).slice(0, 64 * 1024 - 1), start + rest.repeat(65_000)]) {
        const started = performance.now();
        readQuickly(`${text}\t`, () => {});
        assert.ok(performance.now() - started < 2000, JSON.stringify(piece));
      }
    }
  });

  test("texts over 64 KiB are left to the whole language", () => {
    const text = ordinaryManifests[0] ?? "";
    assert.equal(
      readQuickly(`${text}#${"x".repeat(64 * 1024)}`, () => {}),
      null,
    );
  });
});
