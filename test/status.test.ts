import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isStatus, isWorse, type Status, statuses, worst } from "../lib/status.ts";

// "Several findings: status by CRITICAL > UNKNOWN > WARNING > OK" (the design, typed once more by hand).
const fromBest: readonly Status[] = ["OK", "WARNING", "UNKNOWN", "CRITICAL"];

describe("status", () => {
  test("the order from best to worst", () => {
    assert.deepEqual([...statuses], fromBest);
    for (const [i, a] of fromBest.entries()) {
      for (const [j, b] of fromBest.entries()) assert.equal(isWorse(a, b), i > j, `${a} and ${b}`);
    }
  });

  test("the worst of several, whatever their order", () => {
    assert.equal(worst([]), "OK");
    for (const [i, a] of fromBest.entries()) {
      for (const [j, b] of fromBest.entries()) assert.equal(worst([a, "OK", b]), fromBest[Math.max(i, j)]);
    }
  });

  test("only the four words are statuses", () => {
    for (const status of fromBest) assert.ok(isStatus(status));
    for (const text of ["", "ok", "Warning", "DEPENDENT", "OK ", "constructor"]) assert.ok(!isStatus(text), text);
  });
});
