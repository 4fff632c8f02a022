import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Code, codes } from "../lib/codes.ts";
import { exitStatus } from "../lib/exit.ts";
import { exitTable, explain, overrideAdvice, reportedBy } from "../lib/explain.ts";
import { explanations } from "../lib/explanations.ts";
import { Fault } from "../lib/fault.ts";
import { checks } from "../probes/list.ts";

const all = Object.keys(codes) as Code[];

function refused(word: string): string {
  try {
    explain([word]);
  } catch (error) {
    assert.ok(error instanceof Fault && error.code === "BadUsage", String(error));
    return error.message;
  }
  throw new Error(`${word} was explained`);
}

function assertReadable(text: string): void {
  assert.match(text, /\n$/);
  for (const line of text.split("\n")) {
    assert.match(line, /^[ -~]*$/, "ASCII");
    assert.ok(line.length <= 78, `over 78 columns: ${line}`);
    assert.doesNotMatch(line, / $/);
  }
}

describe("without a code", () => {
  test("every code, below its status, with its brief", () => {
    const text = explain([]);
    assertReadable(text);
    const found: string[] = [];
    let status = "";
    for (const line of text.split("\n")) {
      if (/^[A-Z]+$/.test(line)) status = line;
      const [, code, brief] = /^ {2}(\w+) +(.+)$/.exec(line) ?? [];
      if (code !== undefined) found.push(`${status} ${code} ${brief}`);
    }
    assert.deepEqual(found.sort(), all.map((code) => `${codes[code].status} ${code} ${codes[code].brief}`).sort());
  });
});

describe("every code", () => {
  for (const code of all) {
    test(code, () => {
      const text = explain([code]);
      assertReadable(text);
      assert.ok(text.startsWith(`${code}: ${codes[code].brief}\n`));
      assert.match(text, new RegExp(`^Status: ${codes[code].status}$`, "m"));
      if (codes[code].status === "OK") return;
      assert.match(text, /^Likely causes, the most likely first:\n {2}1\. /m);
      assert.match(text, /^What to do:\n {2}- /m);
      // Words fold, commands do not: each stands on a line of its own, to be copied.
      const lines = text.split("\n");
      for (const [, ...commands] of explanations[code].actions) {
        for (const command of commands) assert.ok(lines.includes(`      ${command}`), command);
      }
    });
  }

  test("its exit statuses are those the program ends with", () => {
    for (const code of all) {
      const { columns, rows } = exitTable(code);
      assert.equal(columns[0], codes[code].status);
      const byOptions = new Map(rows.map(({ options, exits }) => [options, exits]));
      for (const profile of ["nagios", "npd", "kube"] as const) {
        assert.deepEqual(
          byOptions.get(profile),
          columns.map((status) => exitStatus({ status, code }, { profile })),
        );
      }
      const purposes = [...byOptions.keys()].filter((options) => options.includes("--for"));
      assert.equal(purposes.length, explanations[code].checks.includes("ready") ? 3 : 0, code);
    }
  });

  test("the table of one code, typed by hand", () => {
    const start = explain(["Initializing"]).split("\n");
    const at = start.findIndex((line) => line.startsWith("Exit status"));
    assert.deepEqual(
      start.slice(at, at + 9).map((line) => line.trim().split(/ {2,}/)),
      [
        ["Exit status by --profile:", "WARNING", "CRITICAL"],
        ["nagios", "1", "2"],
        ["npd", "0", "1"],
        ["npd --npd-warning problem", "1", "1"],
        ["kube", "0", "1"],
        ["kube --strict", "1", "1"],
        ["kube --for startup", "1", "1"],
        ["kube --for readiness", "1", "1"],
        ["kube --for liveness", "0", "0"],
      ],
    );
  });

  test("says how to give it another status, but for what is well and for wrong usage", () => {
    for (const code of all) {
      const advice = overrideAdvice(code);
      if (codes[code].status === "OK" || code === "BadUsage") assert.equal(advice, "", code);
      else assert.ok(advice.includes(`--severity ${code}=`), code);
    }
  });
});

describe("the table of explanations", () => {
  test("names checks that there are", () => {
    const names = new Set(checks.map(({ name }) => name));
    for (const code of all) {
      for (const check of explanations[code].checks) assert.ok(names.has(check), `${code}: ${check}`);
    }
  });

  // Fails when a check is added and the explanation of its code still says that no check reports it.
  test("has the check of every code that says that all is well", () => {
    for (const code of all.filter((each) => codes[each].status === "OK")) {
      assert.deepEqual(
        explanations[code].checks,
        checks.filter(({ okCode }) => okCode === code).map(({ name }) => name),
        code,
      );
    }
  });

  test("says who reports a code", () => {
    assert.equal(reportedBy("SocketInsecure"), "Reported by the check socket.");
    assert.match(
      reportedBy("Initializing"),
      /^Reported by the checks ready, watch; by static-pods as the cause of Inv/,
    );
    assert.equal(reportedBy("BadUsage"), "Reported before any check runs.");
  });

  test("another status is another one", () => {
    for (const code of all) assert.notEqual(explanations[code].otherStatus?.status, codes[code].status);
  });
});

describe("a word that stands for a code", () => {
  test("in any case", () => {
    assert.equal(explain(["socketdead"]), explain(["SocketDead"]));
    assert.equal(explain(["NOTGRPC"]), explain(["NotGrpc"]));
  });
  test("several, one after the other", () => {
    assert.equal(explain(["Ready", "Timeout"]), `${explain(["Ready"])}\n${explain(["Timeout"])}`);
  });
});

describe("a word that is no code", () => {
  test("close ones are named", () => {
    assert.equal(refused("SocketDeed"), `Unknown code "SocketDeed": did you mean SocketDead? 'explain' lists all`);
    assert.match(refused("initialising"), /did you mean Initializing\?/);
    assert.match(refused("ratelimit"), /RateLimitHeadroom, RateLimited/);
    assert.match(refused("TimeOut1"), /did you mean Timeout\?/);
  });
  test("otherwise how to list them", () => {
    for (const word of ["", "x", "--help-me", "constructor", "__proto__", "x".repeat(100_000)]) {
      assert.match(refused(word), /^Unknown code "[^"]*": 'explain' without a code lists them$/);
    }
  });
  test("hostile text is shown plain", () => {
    assert.match(refused("a\n\u001b[31m|"), /^Unknown code "a \[31m\|": /);
  });
});
