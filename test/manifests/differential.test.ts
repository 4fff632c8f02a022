import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { folder } from "./generate.ts";
import { ask, compare, findReferee, writeFolder } from "./referee.ts";

const referee = (await findReferee()) ?? "";
const skip = referee === "" ? "needs the kubelet fixture: npm run build:kubelet" : false;
const runs = 400;
const seed = 1;

describe("manifests, against the kubelet's own reader", () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), "manifests-"));
  });
  after(async () => {
    await rm(root, { recursive: true });
  });

  test("the cases, and each of their files alone", { skip }, async () => {
    const cases = resolve(import.meta.dirname, "../cases");
    const paths: string[] = [];
    for (const name of (await readdir(cases)).filter((entry) => /^[am][0-9]/.test(entry))) {
      const path = join(cases, name, "manifests");
      paths.push(path, ...(await readdir(path).catch(() => [])).map((file) => join(path, file)));
    }
    for (const [i, verdict] of (await ask(referee, "cp-1", paths)).entries()) {
      assert.deepEqual(await compare(paths[i] ?? "", verdict), [], paths[i]);
    }
  });

  test(`${runs} generated folders`, { skip }, async () => {
    const folders = fc.sample(folder, { seed, numRuns: runs });
    const paths = folders.map((_, i) => join(root, String(i)));
    for (const [i, files] of folders.entries()) await writeFolder(paths[i] ?? "", files);
    const verdicts = await ask(referee, "cp-1", paths);
    assert.equal(verdicts.length, runs);
    for (const [i, verdict] of verdicts.entries())
      assert.deepEqual(await compare(paths[i] ?? "", verdict), [], paths[i]);
  });
});
