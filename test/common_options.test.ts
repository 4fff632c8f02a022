import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as v from "valibot";
import { optionName, parseArguments, variableName } from "../lib/arguments.ts";
import { commonOptions, thresholdOptions } from "../lib/common_options.ts";
import { Fault } from "../lib/fault.ts";
import { notes } from "../lib/option.ts";

const entries = { ...commonOptions, ...thresholdOptions };
type Key = keyof typeof entries;

const parse = (words: readonly string[], environment = {}) => parseArguments(entries, words, environment).values;

function refused(words: readonly string[]): string {
  try {
    parse(words);
  } catch (error) {
    assert.ok(error instanceof Fault && error.code === "BadUsage", String(error));
    return error.message;
  }
  throw new Error(`accepted: ${words.join(" ")}`);
}

// For each option a text, the value it stands for, and the value where it is not given.
const samples: Readonly<Record<Key, readonly [text: string, value: unknown, absent: unknown]>> = {
  socket: ["/s", "/s", undefined],
  kubeletRoot: ["/r", "/r", undefined],
  nodeName: ["cp-1", "cp-1", undefined],
  timeout: ["1m30s", 90_000, undefined],
  profile: ["npd", "npd", undefined],
  output: ["json", "json", "text"],
  outputFile: ["/o", "/o", undefined],
  severity: [
    "SocketDead=OK,Timeout=WARNING",
    [
      ["SocketDead", "OK"],
      ["Timeout", "WARNING"],
    ],
    undefined,
  ],
  apiVersion: ["v1beta1", "v1beta1", "auto"],
  maxBytes: ["1024", 1024, 64 * 1024 * 1024],
  npdWarning: ["problem", "problem", "ok"],
  strict: ["true", true, false],
  verbose: ["true", true, false],
  quiet: ["true", true, false],
  warning: ["10:", { text: "10:", start: 10, end: Number.POSITIVE_INFINITY, inside: false }, undefined],
  critical: ["@0:1", { text: "@0:1", start: 0, end: 1, inside: true }, undefined],
};

describe("every option", () => {
  for (const [name, [text, value, absent]] of Object.entries(samples)) {
    const key = name as Key;
    test(optionName(key), () => {
      assert.deepEqual(parse([])[key], absent, "not given");
      assert.deepEqual(parse([`${optionName(key)}=${text}`])[key], value, "with =");
      if (notes(entries[key]).value !== undefined) assert.deepEqual(parse([optionName(key), text])[key], value);
      else assert.deepEqual(parse([optionName(key)])[key], value);
      const { short } = notes(entries[key]);
      if (short !== undefined) assert.deepEqual(parse([`-${short}=${text}`])[key], value);
      assert.deepEqual(parse([], { [variableName(key)]: text })[key], value, "environment");
    });
  }

  test("--severity takes no code that is OK, and not BadUsage", () => {
    for (const text of ["Ready=WARNING", "BadUsage=OK", "SocketDead=OK,Ready=OK"]) {
      assert.equal(v.safeParse(commonOptions.severity, text).success, false, text);
    }
    assert.equal(v.safeParse(commonOptions.severity, "SocketDead=OK").success, true);
  });

  test("the short forms that Nagios knows", () => {
    const shorts = Object.entries(entries).map(([key, schema]) => [notes(schema).short, key]);
    assert.deepEqual(
      shorts.filter(([short]) => short !== undefined),
      [
        ["t", "timeout"],
        ["v", "verbose"],
        ["q", "quiet"],
        ["w", "warning"],
        ["c", "critical"],
      ],
    );
  });

  test("what it says of itself is one ASCII clause", () => {
    for (const schema of Object.values(entries)) {
      assert.match(notes(schema).description, /^[ -~]+[^.]$/);
    }
  });
});

test("--socket takes the forms gRPC has for a unix socket", () => {
  for (const text of ["/s", "unix:/s", "unix:///s"]) assert.equal(parse(["--socket", text]).socket, text);
});

describe("--severity", () => {
  test("given several times", () => {
    assert.deepEqual(parse(["--severity", "Timeout=OK", "--severity=Initializing=CRITICAL"]).severity, [
      ["Timeout", "OK"],
      ["Initializing", "CRITICAL"],
    ]);
  });

  test("a code or a status that there is not", () => {
    for (const text of ["Timeout", "Timeout=", "Timeout=ok", "=OK", "Nope=OK", "timeout=OK", "Timeout=OK=OK", ""]) {
      assert.match(
        refused([`--severity=${text}`]),
        /^Option --severity is "[^"]*": accepted is CODE=STATUS with a code of 'explain' and OK, WARNING, UNKNOWN, CRITICAL; several with commas between$/,
      );
    }
  });
});

describe("values that are not accepted", () => {
  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ["--socket", "", /accepted is an absolute path$/],
    ["--socket", "pods-api.sock", /accepted is an absolute path$/],
    ["--socket", "unix:pods-api.sock", /accepted is an absolute path$/],
    ["--kubelet-root", "./kubelet", /accepted is an absolute path$/],
    ["--timeout", "10", /accepted is a duration such as 900ms, 10s, 1m30s or 1h, from 1ms to 500h$/],
    ["--timeout", "0s", /from 1ms to 500h$/],
    ["--profile", "icinga", /accepted is nagios, npd, kube$/],
    ["--output", "xml", /accepted is text, json, prometheus, checkmk$/],
    ["--output-file", "metrics.prom", /accepted is an absolute path$/],
    ["--max-bytes", "0", /accepted is a whole number from 1 to 2147483647$/],
    ["--max-bytes", "2147483648", /accepted is a whole number/],
    ["--npd-warning", "yes", /accepted is ok, problem$/],
    ["--strict", "maybe", /accepted is true or false$/],
    ["--warning", "20:10", /accepted is a range such as /],
  ];
  for (const [option, text, accepted] of wrong) {
    test(`${option} ${JSON.stringify(text)}`, () => {
      const message = refused([`${option}=${text}`]);
      assert.ok(message.startsWith(`Option ${option} is "${text}": `), message);
      assert.match(message, accepted);
    });
  }
});
