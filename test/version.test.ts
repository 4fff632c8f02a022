import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { commit, date, version } from "../lib/version.ts";

test("a source tree has the version of package.json and of no commit", () => {
  const { version: packaged } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  assert.equal(version, packaged);
  assert.equal(commit, "source");
  assert.equal(date, "");
});
