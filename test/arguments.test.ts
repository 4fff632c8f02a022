import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { optionName, parseArguments, variableName } from "../lib/arguments.ts";
import { Fault } from "../lib/fault.ts";
import { anyText, duration, flag, listOf, option, optionWithDefault, range, wholeNumber } from "../lib/option.ts";

const entries = {
  socket: option(anyText, "a path", { value: "PATH", description: "x" }),
  initGrace: optionWithDefault(...duration, { value: "DURATION", fallback: "5m", description: "x" }),
  owner: option(...listOf(wholeNumber(0, 9)), { value: "UID,...", list: true, description: "x" }),
  warning: option(...range, { value: "RANGE", short: "w", description: "x" }),
  verbose: flag("x", "v"),
};

function parse(words: readonly string[], environment: Record<string, string | undefined> = {}) {
  return parseArguments(entries, words, environment);
}

/** The one line that is said of words that cannot be used. */
function refused(words: readonly string[], environment: Record<string, string | undefined> = {}): string {
  try {
    parse(words, environment);
  } catch (error) {
    assert.ok(error instanceof Fault, String(error));
    assert.equal(error.code, "BadUsage");
    assert.doesNotMatch(error.message, /[\u0000-\u001f\u007f-\u009f]/);
    return error.message;
  }
  throw new Error(`accepted: ${words.join(" ")}`);
}

describe("names", () => {
  test("of an option and of its environment variable", () => {
    assert.equal(optionName("socket"), "--socket");
    assert.equal(optionName("initGrace"), "--init-grace");
    assert.equal(variableName("socket"), "KUBELET_PROBE_SOCKET");
    assert.equal(variableName("initGrace"), "KUBELET_PROBE_INIT_GRACE");
  });
});

describe("values", () => {
  test("nothing given: the defaults", () => {
    const { values, from } = parse([]);
    assert.deepEqual(values, {
      socket: undefined,
      initGrace: 300_000,
      owner: undefined,
      warning: undefined,
      verbose: false,
    });
    assert.deepEqual(from, {});
  });

  test("the two forms", () => {
    assert.equal(parse(["--socket", "/s"]).values.socket, "/s");
    assert.equal(parse(["--socket=/s"]).values.socket, "/s");
    assert.equal(parse(["--socket=/a=b"]).values.socket, "/a=b");
    assert.equal(parse(["--init-grace", "1s"]).values.initGrace, 1000);
  });

  test("the short forms", () => {
    assert.equal(parse(["-w", "10:"]).values.warning?.text, "10:");
    assert.equal(parse(["-w=10:"]).values.warning?.text, "10:");
    assert.equal(parse(["-w10:"]).values.warning?.text, "10:");
    assert.equal(parse(["-v"]).values.verbose, true);
    assert.equal(parse(["-v=false"]).values.verbose, false);
    // The guidelines have -v, -vv and -vvv.
    assert.equal(parse(["-vv", "-w", "1"]).values.verbose, true);
    assert.equal(parse(["-vvw1"]).values.warning?.text, "1");
    assert.throws(() => parse(["-vx"]), /Unknown option "-x"/);
  });

  test("a value may look like an option, and may have a line end", () => {
    assert.equal(parse(["-w", "-10:10"]).values.warning?.text, "-10:10");
    assert.equal(parse(["--socket", "--verbose"]).values.socket, "--verbose");
    assert.equal(parse(["--socket=a\nb"]).values.socket, "a\nb");
  });

  test("a flag, and a flag switched off", () => {
    assert.equal(parse(["--verbose"]).values.verbose, true);
    assert.equal(parse(["--verbose=false"]).values.verbose, false);
    assert.equal(parse(["--verbose", "--verbose=no"]).values.verbose, false);
  });

  test("of an option given twice the last counts, of a list all do", () => {
    assert.equal(parse(["--socket", "/a", "--socket", "/b"]).values.socket, "/b");
    assert.deepEqual(parse(["--owner", "1,2", "--owner=3"]).values.owner, [1, 2, 3]);
  });

  test("where each came from", () => {
    assert.deepEqual(parse(["-w", "1", "--socket=/s"], { KUBELET_PROBE_OWNER: "1" }).from, {
      warning: "--warning",
      socket: "--socket",
      owner: "KUBELET_PROBE_OWNER",
    });
  });
});

describe("the environment", () => {
  test("gives what the words do not", () => {
    const environment = { KUBELET_PROBE_SOCKET: "/e", KUBELET_PROBE_INIT_GRACE: "1s", KUBELET_PROBE_VERBOSE: "true" };
    const { values } = parse([], environment);
    assert.deepEqual([values.socket, values.initGrace, values.verbose], ["/e", 1000, true]);
  });

  test("loses against the command line", () => {
    const environment = { KUBELET_PROBE_SOCKET: "/e", KUBELET_PROBE_OWNER: "7", KUBELET_PROBE_VERBOSE: "true" };
    const { values } = parse(["--socket", "/s", "--owner", "1", "--verbose=false"], environment);
    assert.deepEqual([values.socket, values.owner, values.verbose], ["/s", [1], false]);
  });

  test("a wrong value that the command line overrides does not matter", () => {
    assert.equal(parse(["--init-grace=1s"], { KUBELET_PROBE_INIT_GRACE: "soon" }).values.initGrace, 1000);
  });

  test("an empty variable counts as none", () => {
    assert.equal(parse([], { KUBELET_PROBE_SOCKET: "", KUBELET_PROBE_INIT_GRACE: "" }).values.initGrace, 300_000);
  });

  test("variables of other names are let be", () => {
    assert.deepEqual(parse([], { SOCKET: "/x", KUBELET_PROBE_NO_SUCH: "1", KUBELET_PROBE: "1" }).from, {});
  });
});

describe("what cannot be used is said in one line with option, value and what is accepted", () => {
  test("an unknown option", () => {
    assert.equal(
      refused(["--sokcet", "/s"]),
      'Unknown option "--sokcet": accepted are --socket, --init-grace, --owner, --warning, --verbose',
    );
    assert.match(refused(["-x"]), /^Unknown option "-x": accepted are --socket, /);
    assert.match(refused(["--"]), /^Unknown option "--": /);
    assert.match(refused(["--Socket=/s"]), /^Unknown option "--Socket": /);
    assert.match(refused(["--constructor=/s"]), /^Unknown option "--constructor": /);
  });

  test("a word that is no option", () => {
    assert.equal(refused(["extra"]), 'Unknown argument "extra": only options follow the check');
    assert.equal(refused(["--verbose", "true"]), 'Unknown argument "true": only options follow the check');
    assert.match(refused(["-"]), /^Unknown argument "-"/);
    assert.match(refused([""]), /^Unknown argument ""/);
  });

  test("a missing value", () => {
    assert.equal(refused(["--socket"]), "Option --socket has no value: it takes PATH");
    assert.equal(refused(["-w"]), "Option -w has no value: it takes RANGE");
  });

  test("an empty value", () => {
    assert.equal(refused(["--socket="]), 'Option --socket is "": accepted is a path');
    assert.equal(refused(["--verbose="]), 'Option --verbose is "": accepted is true or false');
  });

  test("a value that is not accepted", () => {
    assert.equal(
      refused(["-w", "20:10"]),
      'Option --warning is "20:10": accepted is a range such as 10, 10:, ~:10, 10:20 or @10:20',
    );
    assert.equal(
      refused(["--owner", "1", "--owner", "x"]),
      'Option --owner is "1,x": accepted is a whole number from 0 to 9; several with commas between',
    );
  });

  test("a variable that is not accepted", () => {
    assert.equal(
      refused([], { KUBELET_PROBE_INIT_GRACE: "5" }),
      'Environment variable KUBELET_PROBE_INIT_GRACE is "5": accepted is a duration such as 900ms, 10s, 1m30s or 1h',
    );
  });

  test("hostile text is shown plain and cut", () => {
    assert.equal(refused(["--init-grace", "a\nb\u001b[31m\u202e"]).split(":")[0], 'Option --init-grace is "a b [31m?"');
    assert.ok(refused([`--${"x".repeat(100_000)}`]).length < 300);
    assert.ok(refused(["--init-grace", "x".repeat(100_000)]).length < 300);
  });

  test("any words at all are read or refused so", () => {
    const word = fc.oneof(
      fc.constantFrom("--socket", "--owner", "-w", "-v", "--verbose", "--init-grace", "=", "10", "5m", "--", ""),
      fc.string({ unit: "binary" }),
      fc.string().map((text) => `--${text}`),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (words) => {
        try {
          parse(words);
        } catch (error) {
          assert.ok(error instanceof Fault && error.code === "BadUsage", String(error));
          assert.doesNotMatch(error.message, /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
