import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { optionName } from "../lib/arguments.ts";
import { commands, optionsOf, optionsOfAll } from "../lib/cli.ts";
import { codes } from "../lib/codes.ts";
import { completion, shells } from "../lib/completion.ts";
import { Fault } from "../lib/fault.ts";
import { simulateOptionNotes } from "../lib/simulate.ts";
import { checks } from "../probes/list.ts";

const textFor = (shell: string) => completion([shell], checks, simulateOptionNotes);

describe("every shell's", () => {
  for (const shell of shells) {
    test(`${shell}: has every command, every option of each, and every code`, () => {
      const text = textFor(shell);
      for (const name of [...checks.map(({ name }) => name), ...commands]) assert.ok(text.includes(name), name);
      const options = [...checks.map(optionsOf), optionsOfAll(checks), simulateOptionNotes].flatMap((entries) =>
        Object.keys(entries),
      );
      for (const key of options) {
        const name = optionName(key);
        assert.ok(text.includes(shell === "fish" ? ` -l ${name.slice(2)} ` : name), name);
      }
      for (const code of Object.keys(codes)) assert.ok(text.includes(code), code);
      assert.match(text, /[^\n]\n$/);
      assert.doesNotMatch(text, /undefined|\[object|[^\n\t -~]/);
    });

    test(`${shell}: what is quoted stays quoted`, () => {
      for (const line of textFor(shell).split("\n")) {
        if (line.startsWith("#")) continue;
        assert.equal((line.match(/'/g) ?? []).length % 2, 0, line);
      }
    });
  }
});

test("a shell there is no completion for", () => {
  for (const words of [[], ["tcsh"], ["bash", "zsh"], ["BASH"]]) {
    assert.throws(
      () => completion(words, checks, simulateOptionNotes),
      (error) =>
        error instanceof Fault && error.code === "BadUsage" && error.message.endsWith("accepted are bash, zsh, fish"),
    );
  }
});
