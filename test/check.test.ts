import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineCheck } from "../lib/check.ts";
import { codes, isCode } from "../lib/codes.ts";
import { optionWithDefault, wholeNumber } from "../lib/option.ts";
import { checks } from "../probes/list.ts";

describe("defineCheck", () => {
  test("gives the check as it is, its options typed", () => {
    const declared = {
      name: "lists",
      summary: "is it so",
      okCode: "Ready",
      options: { burst: optionWithDefault(...wholeNumber(1, 10), { description: "x", fallback: "3" }) },
      async run(_: unknown, { burst }: { readonly burst: number }) {
        return { summary: `${burst + 1}`, findings: [], metrics: [] };
      },
    } as const;
    assert.equal(defineCheck(declared), declared as unknown);
  });
});

describe("every check", () => {
  for (const check of checks) {
    test(check.name, () => {
      assert.match(check.name, /^[a-z]+(-[a-z]+)*$/);
      assert.match(check.summary, /^[a-z][ -~]*[^.]$/);
      assert.equal(codes[check.okCode].status, "OK");
      const { metric } = check;
      if (metric === undefined) return;
      assert.match(metric.name, /^[a-z][a-z_]*$/);
      for (const code of metric.codes) assert.ok(isCode(code) && codes[code].status !== "OK");
    });
  }

  test("has a name and a code for all is well of its own", () => {
    assert.equal(new Set(checks.map(({ name }) => name)).size, checks.length);
    assert.equal(new Set(checks.map(({ okCode }) => okCode)).size, checks.length);
  });
});
