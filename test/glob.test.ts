import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { matchesGlob } from "../lib/glob.ts";

describe("a pattern for file names", () => {
  const rows: readonly (readonly [pattern: string, matches: readonly string[], not: readonly string[]])[] = [
    ["README", ["README"], ["readme", "README.md", "aREADME"]],
    ["*.md", ["a.md", ".md"], ["a.mdx", "md"]],
    ["README*", ["README", "README.md"], ["a-README"]],
    ["*", ["", "a", "a/b"], []],
    ["k*-*.yaml", ["kube-proxy.yaml", "k-a.b-c.yaml"], ["kubeproxy.yaml", "k-.yml"]],
    ["?.yaml", ["a.yaml", "é.yaml", "💥.yaml"], [".yaml", "ab.yaml"]],
    ["[a-c]1", ["a1", "c1"], ["d1", "-1", "A1"]],
    ["[!a-c]", ["d", "-"], ["a"]],
    ["[^a]", ["b"], ["a"]],
    ["[]a]", ["]", "a"], ["b"]],
    ["[a-]", ["a", "-"], ["b"]],
    ["a[", ["a["], ["a", "ab"]],
    ["\\*", ["*"], ["a", "\\*"]],
    ["a.b", ["a.b"], ["aXb"]],
    ["(a|b)+$", ["(a|b)+$"], ["a"]],
    ["", [""], ["a"]],
  ];
  for (const [pattern, matches, not] of rows) {
    test(JSON.stringify(pattern), () => {
      for (const name of matches) assert.ok(matchesGlob(name, pattern), name);
      for (const name of not) assert.ok(!matchesGlob(name, pattern), name);
    });
  }

  test("many stars end soon", () => {
    assert.ok(!matchesGlob("a".repeat(255), `${"a*".repeat(100)}b`));
  });
});
