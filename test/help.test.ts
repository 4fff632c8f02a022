import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { optionName, variableName } from "../lib/arguments.ts";
import { commands, optionsOf, optionsOfAll } from "../lib/cli.ts";
import { exitStatus, profiles, usageExit } from "../lib/exit.ts";
import { helpText } from "../lib/help.ts";
import { notes } from "../lib/option.ts";
import { checks } from "../probes/list.ts";

function assertReadable(text: string): void {
  assert.match(text, /^Usage: kubelet-probe /);
  assert.match(text, /[^\n]\n$/);
  for (const line of text.split("\n")) assert.match(line, /^[ -~]*$/);
  assert.doesNotMatch(text, /undefined|\[object/);
}

describe("help of the program", () => {
  const text = helpText(checks, undefined);

  test("names every check with its question, and every command", () => {
    assertReadable(text);
    for (const { name, summary } of checks) assert.match(text, new RegExp(`^ {2}${name} +${literally(summary)}$`, "m"));
    for (const name of commands) assert.match(text, new RegExp(`^ {2}${name} `, "m"));
  });

  test("its table of exit statuses is that of the program", () => {
    for (const profile of profiles) {
      const row = new RegExp(`^ {2}${profile} +(\\d) +(\\d) +(\\d) +(\\d) +(\\d)$`, "m").exec(text);
      const exits = (["OK", "WARNING", "CRITICAL", "UNKNOWN"] as const).map((status) =>
        exitStatus({ status, code: "ServerError" }, { profile }),
      );
      assert.deepEqual(row?.slice(1).map(Number), [...exits, usageExit(profile)], profile);
    }
  });

  test("is what an unknown word gets", () => {
    assert.equal(helpText(checks, "nope"), text);
  });
});

describe("help of a check", () => {
  for (const check of checks) {
    test(check.name, () => {
      const text = helpText(checks, check.name);
      assertReadable(text);
      assert.ok(text.includes(check.summary.slice(1)));
      assertOptions(text, optionsOf(check));
      assert.equal(text.includes("Main metric"), check.metric !== undefined);
      assert.equal(text.includes("--warning"), check.metric !== undefined);
    });
  }

  test("of all: the options of every check that make sense for several", () => {
    const text = helpText(checks, "all");
    assertReadable(text);
    assertOptions(text, optionsOfAll(checks));
    assert.doesNotMatch(text, /--warning|--critical|--for /);
  });
});

/** Each option has its forms, its description, its default and its variable. */
function assertOptions(text: string, entries: ReturnType<typeof optionsOf>): void {
  const lines = text.split("\n");
  for (const key of Object.keys(entries)) {
    const { value, short, description, fallback } = notes(entries[key]!);
    const forms = `  ${short === undefined ? "" : `-${short}, `}${optionName(key)}${value === undefined ? "" : ` ${value}`}`;
    const at = lines.indexOf(forms);
    assert.ok(at > 0, `${forms} in:\n${text}`);
    const about = lines[at + 1]!;
    assert.ok(about.includes(description) && about.endsWith(` [${variableName(key)}]`), about);
    if (fallback) assert.ok(about.includes(`(default: ${fallback})`), about);
  }
}

function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
