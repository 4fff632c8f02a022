import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Code, codes } from "../lib/codes.ts";
import { explanations } from "../lib/explanations.ts";

describe("explanations", () => {
  test("every code has one, and there are no others", () => {
    assert.deepEqual(Object.keys(explanations).sort(), Object.keys(codes).sort());
  });

  for (const [code, { meaning, causes, actions, otherStatus }] of Object.entries(explanations)) {
    test(code, () => {
      const isWell = codes[code as Code].status === "OK";
      assert.equal(causes.length === 0, isWell, "causes for what is not well");
      assert.equal(actions.length === 0, isWell, "actions for what is not well");
      for (const text of [meaning, ...causes, ...actions.map(([what]) => what)]) {
        assert.match(text, /^[A-Z][ -~]*[.?:]$/, text);
        assert.doesNotMatch(text, / {2}/);
      }
      for (const [, ...commands] of actions) {
        for (const command of commands) {
          assert.match(command, /^[a-z][ -~]{0,71}$/, command);
          // What needs the API server is of no use while it is down.
          assert.doesNotMatch(command, /\bkubectl\b/);
        }
      }
      if (otherStatus !== undefined) assert.match(otherStatus.when, /^[a-z][ -~]*[^.]$/);
    });
  }
});
