import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { optionName, variableName } from "../lib/arguments.ts";
import type { Check } from "../lib/check.ts";
import {
  commands,
  failureLine,
  findProfile,
  type Invocation,
  optionsOf,
  optionsOfAll,
  type Plan,
  plan,
} from "../lib/cli.ts";
import { type Profile, profiles, usageExit } from "../lib/exit.ts";
import { Fault } from "../lib/fault.ts";
import { notes } from "../lib/option.ts";
import { checks } from "../probes/list.ts";

type RunPlan = Extract<Plan, { kind: "run" }>;

function invocation(
  words: readonly string[],
  environment: Record<string, string> = {},
  name = "kubelet-probe",
): Invocation {
  return { name, words, environment };
}

function planOf(...given: Parameters<typeof invocation>): Plan {
  return plan(checks, invocation(...given));
}

function runOf(...given: Parameters<typeof invocation>): RunPlan {
  const planned = planOf(...given);
  assert.equal(planned.kind, "run");
  return planned as RunPlan;
}

/** The message of a command line that cannot be used, and the exit status its profile has for that. */
function refused(...given: Parameters<typeof invocation>): readonly [message: string, exitStatus: number] {
  try {
    planOf(...given);
  } catch (error) {
    assert.ok(error instanceof Fault && error.code === "BadUsage", String(error));
    assert.doesNotMatch(error.message, /[\u0000-\u001f\u007f-\u009f]/);
    return [error.message, usageExit(findProfile(invocation(...given)).profile)];
  }
  throw new Error(`accepted: ${given[0].join(" ")}`);
}

const namesOf = (planned: RunPlan) => planned.run.runs.map(({ check }) => check.name);

describe("what is to be run", () => {
  for (const { name } of checks) {
    test(name, () => {
      const planned = runOf([name]);
      assert.deepEqual(namesOf(planned), [name]);
      assert.equal(planned.run.name, name);
    });
  }

  test("all runs every check, what costs most last", () => {
    assert.deepEqual(namesOf(runOf(["all"])), ["socket", "ready", "manifests", "static-pods", "rate-limit"]);
    assert.equal(runOf(["all"]).run.name, "all");
  });

  test("all --checks runs those, in the order of the list", () => {
    assert.deepEqual(namesOf(runOf(["all", "--checks", "rate-limit,socket"])), ["socket", "rate-limit"]);
    assert.deepEqual(namesOf(runOf(["all", "--checks", "ready", "--checks=socket"])), ["socket", "ready"]);
    assert.deepEqual(namesOf(runOf(["all"], { KUBELET_PROBE_CHECKS: "ready" })), ["ready"]);
  });

  test("the defaults", () => {
    const { rules, run, output, verbose, quiet } = runOf(["ready"]);
    assert.deepEqual(rules, { profile: "nagios", purpose: undefined, strict: false, warningIsProblem: false });
    assert.equal(run.socket, "/var/lib/kubelet/pods-api/pods-api.sock");
    assert.equal(run.timeoutMs, 10_000);
    assert.equal(run.maxBytes, 64 * 1024 * 1024);
    assert.deepEqual(run.thresholds, { warning: undefined, critical: undefined });
    assert.deepEqual(run.severity, new Map());
    assert.deepEqual([output, verbose, quiet], ["text", false, false]);
  });

  test("everything given", () => {
    const planned = runOf([
      ...["static-pods", "--socket", "/s", "--node-name", "CP-1", "--timeout", "3s", "--profile", "npd", "-v", "-q"],
      ...["--output=json", "-w", "0", "-c", "1", "--severity", "Timeout=WARNING", "--max-bytes", "1"],
      ...["--npd-warning", "problem", "--strict", "--expect", "ns/a", "--expect", "ns/b"],
    ]);
    assert.deepEqual(planned.rules, { profile: "npd", purpose: undefined, strict: true, warningIsProblem: true });
    assert.equal(planned.run.socket, "/s");
    assert.equal(planned.run.nodeName, "cp-1");
    assert.equal(planned.run.timeoutMs, 3000);
    assert.equal(planned.run.maxBytes, 1);
    assert.deepEqual(planned.run.thresholds?.warning?.text, "0");
    assert.deepEqual(planned.run.thresholds?.critical?.text, "1");
    assert.deepEqual(planned.run.severity, new Map([["Timeout", "WARNING"]]));
    assert.deepEqual([planned.output, planned.verbose, planned.quiet], ["json", true, true]);
    assert.deepEqual((planned.run.runs[0]!.options as { expect: string[] }).expect, ["ns/a", "ns/b"]);
  });

  test("the deadline is that of the profile", () => {
    const timeout = (profile: string) => runOf(["ready", "--profile", profile]).run.timeoutMs;
    assert.deepEqual(profiles.map(timeout), [10_000, 4_000, 900]);
  });

  test("where the values came from", () => {
    const origins = (words: string[], environment = {}) => runOf(words, environment).origins;
    assert.deepEqual(origins(["ready", "--socket=/s", "--node-name=n"]), [
      "socket: /s (--socket)",
      "node: n (--node-name)",
    ]);
    assert.deepEqual(origins(["ready"], { KUBELET_PROBE_KUBELET_ROOT: "/r", NODE_NAME: "n" }), [
      "socket: /r/pods-api/pods-api.sock (KUBELET_PROBE_KUBELET_ROOT)",
      "node: n (NODE_NAME)",
    ]);
    assert.match(origins(["ready"])[0]!, /^socket: .* \(default\)$/);
  });
});

describe("every option of every check", () => {
  // A text that each is accepted with.
  const samples: Readonly<Record<string, string>> = {
    socket: "/s",
    kubeletRoot: "/r",
    nodeName: "n",
    outputFile: "/o",
    timeout: "1s",
    profile: "kube",
    output: "json",
    severity: "Timeout=OK",
    apiVersion: "v1",
    maxBytes: "1",
    npdWarning: "problem",
    warning: "1",
    critical: "1",
    for: "liveness",
    checks: "ready",
    initGrace: "1m",
    readyGrace: "1m",
    owner: "1,2",
    expect: "kube-system/etcd-cp-1",
    expectCount: "4:4",
    manifests: "/m",
    kubeletConfig: "/c",
    kubeletConfigDir: "/d",
    ignore: "*.md",
    pods: "1:",
    source: "watch",
    burst: "2",
    hold: "1ms",
    samples: "2",
    interval: "1s",
    metrics: "/a,/b",
    tokenFile: "/t",
    caFile: "/ca",
    certFile: "/c",
    keyFile: "/k",
  };
  const url = ["--metrics", "https://127.0.0.1:10250/metrics"];
  // What some go with.
  const companions: Readonly<Record<string, readonly string[]>> = {
    for: ["--profile", "kube"],
    tokenFile: [...url, "--ca-file", "/ca"],
    caFile: url,
    certFile: [...url, "--ca-file", "/ca", "--key-file", "/k"],
    keyFile: [...url, "--ca-file", "/ca", "--cert-file", "/c"],
  };
  const withOptions: readonly (readonly [string, ReturnType<typeof optionsOf>])[] = [
    ...checks.map((check) => [check.name, optionsOf(check)] as const),
    ["all", optionsOfAll(checks)],
  ];

  for (const [name, entries] of withOptions) {
    for (const key of Object.keys(entries)) {
      const { value, short } = notes(entries[key]!);
      const option = optionName(key);
      const before = [name, ...(companions[key] ?? [])];
      const valuesOf = (planned: RunPlan) => planned.run.runs[0]!.options as Readonly<Record<string, unknown>>;

      test(`${name} ${option}: both forms, the variable, and the command line wins`, () => {
        const text = value === undefined ? "true" : samples[key];
        assert.ok(text !== undefined, `no sample for ${key}`);
        const wanted = valuesOf(runOf([...before, `${option}=${text}`]))[key];
        assert.notEqual(wanted, undefined);
        const rest = value === undefined ? [option] : [option, text];
        assert.deepEqual(valuesOf(runOf([...before, ...rest]))[key], wanted);
        assert.deepEqual(valuesOf(runOf(before, { [variableName(key)]: text }))[key], wanted);
        assert.deepEqual(valuesOf(runOf([...before, ...rest], { [variableName(key)]: "\u0000" }))[key], wanted);
        if (short === undefined) return;
        const shortly = value === undefined ? [`-${short}`] : [`-${short}`, text];
        assert.deepEqual(valuesOf(runOf([...before, ...shortly]))[key], wanted);
      });

      test(`${name} ${option}: a missing or empty value`, () => {
        assert.match(refused([...before, `${option}=`])[0], new RegExp(`^Option ${option} is "": accepted is .+`));
        if (value === undefined) return;
        assert.match(refused([...before, option])[0], new RegExp(`^Option ${option} has no value: it takes .+`));
      });
    }
  }

  test("no two options of a check have one name or one letter", () => {
    for (const [, entries] of withOptions) {
      const letters = Object.values(entries).flatMap((schema) => notes(schema).short ?? []);
      assert.equal(new Set(letters).size, letters.length);
      // -h and -V are help and version.
      assert.ok(!letters.includes("h") && !letters.includes("V"));
    }
  });

  // `all` gives every check the values of all options, so one key cannot mean two things.
  test("no two checks have different options of one name", () => {
    const seen = new Map<string, unknown>();
    for (const { options } of checks) {
      for (const [key, schema] of Object.entries(options)) {
        assert.ok(!seen.has(key) || seen.get(key) === schema, key);
        seen.set(key, schema);
      }
    }
  });
});

describe("--for", () => {
  test("with ready and the profile kube", () => {
    for (const purpose of ["startup", "readiness", "liveness"] as const) {
      assert.equal(runOf(["ready", "--profile", "kube", "--for", purpose]).rules.purpose, purpose);
      assert.equal(runOf(["ready", "--for", purpose], { KUBELET_PROBE_PROFILE: "kube" }).rules.purpose, purpose);
    }
    assert.match(
      refused(["ready", "--profile", "kube", "--for", "fun"])[0],
      /accepted is startup, readiness, liveness$/,
    );
  });

  test("not with another profile", () => {
    for (const words of [
      ["ready", "--for", "liveness"],
      ["ready", "--for", "liveness", "--profile", "npd"],
    ]) {
      assert.match(refused(words)[0], /^--for goes with --profile kube, and the profile is (nagios|npd)$/);
    }
  });

  test("the environment's is refused by its own name", () => {
    const invocation = { name: "kubelet-probe", words: ["ready"], environment: { KUBELET_PROBE_FOR: "liveness" } };
    assert.throws(() => plan(checks, invocation), /KUBELET_PROBE_FOR goes with --profile kube/);
  });

  test("not with another check", () => {
    for (const name of ["socket", "manifests", "static-pods", "rate-limit", "all"]) {
      assert.match(refused([name, "--profile", "kube", "--for", "liveness"])[0], /^Unknown option "--for"/);
    }
  });
});

describe("-w and -c", () => {
  test("are unknown to a check without a main metric, and to all", () => {
    for (const name of ["socket", "all"]) {
      for (const option of ["-w", "-c", "--warning", "--critical"]) {
        assert.match(refused([name, option, "1"])[0], new RegExp(`^Unknown option "${option}": accepted are `));
      }
    }
  });
});

describe("wrong words", () => {
  test("no check", () => {
    assert.equal(
      refused([])[0],
      "No check given: accepted are socket, ready, manifests, static-pods, watch, rate-limit, all, explain, simulate, selftest, completion, install; see --help",
    );
  });
  test("an unknown check", () => {
    assert.match(refused(["raedy"])[0], /^Unknown check "raedy": accepted are socket, /);
    assert.match(refused(["--socket", "/s", "ready"])[0], /^No check before "--socket": accepted are /);
    assert.match(refused(["a\n\u001b[2J"])[0], /^Unknown check "a \[2J"/);
    assert.match(refused(["constructor"])[0], /^Unknown check "constructor"/);
    assert.match(refused([""])[0], /^Unknown check ""/);
  });
  test("unknown checks of --checks", () => {
    assert.match(
      refused(["all", "--checks", "ready,nope"])[0],
      /^Option --checks is "ready,nope": accepted is socket, ready, manifests, static-pods, watch, rate-limit; several with commas between$/,
    );
  });
});

describe("the profile decides how wrong words end, wherever it stands", () => {
  const rows: readonly (readonly [readonly string[], Record<string, string>, string, number])[] = [
    [["ready", "--nope"], {}, "kubelet-probe", 3],
    [["ready", "--nope", "--profile", "npd"], {}, "kubelet-probe", 2],
    [["ready", "--profile", "npd", "--nope"], {}, "kubelet-probe", 2],
    [["ready", "--timeout", "soon", "--profile=kube"], {}, "kubelet-probe", 1],
    [["nope", "--profile=kube"], {}, "kubelet-probe", 1],
    [["ready", "--nope"], { KUBELET_PROBE_PROFILE: "kube" }, "kubelet-probe", 1],
    [["ready", "--nope", "--profile", "npd"], { KUBELET_PROBE_PROFILE: "kube" }, "kubelet-probe", 2],
    [["ready", "--profile", "kube", "--profile", "npd", "--nope"], {}, "kubelet-probe", 2],
    [["ready", "--profile", "none"], {}, "kubelet-probe", 3],
    [["ready", "--nope", "--profile"], {}, "kubelet-probe", 3],
    [["ready", "--nope", "--profile"], { KUBELET_PROBE_PROFILE: "npd" }, "kubelet-probe", 2],
    [["--nope"], { KUBELET_PROBE_PROFILE: "npd" }, "/usr/lib/nagios/plugins/check_kubelet_ready", 3],
    [["--nope", "--profile", "npd"], {}, "check_kubelet_ready", 2],
  ];
  for (const [words, environment, name, exit] of rows) {
    test(`${name} ${words.join(" ")} ${JSON.stringify(environment)}`, () => {
      assert.equal(refused(words, environment, name)[1], exit);
    });
  }
});

describe("links named check_kubelet_*", () => {
  test("say the check, and options follow", () => {
    for (const { name } of checks) {
      const link = `/usr/lib/nagios/plugins/check_kubelet_${name.replaceAll("-", "_")}`;
      assert.deepEqual(namesOf(runOf([], {}, link)), [name]);
      assert.equal(runOf(["--socket=/s"], {}, link).run.socket, "/s");
    }
    assert.equal(runOf(["-v"], {}, "check_kubelet_all").run.name, "all");
  });

  test("stand for nagios, which an option can change and the environment cannot", () => {
    const profileOf = (words: string[], environment = {}) =>
      runOf(words, environment, "check_kubelet_ready").rules.profile;
    assert.equal(profileOf([]), "nagios");
    assert.equal(profileOf([], { KUBELET_PROBE_PROFILE: "kube" }), "nagios");
    assert.equal(profileOf(["--profile", "npd"]), "npd");
  });

  test("take a check that is said all the same, and need one where they say none", () => {
    assert.deepEqual(namesOf(runOf(["socket"], {}, "check_kubelet_ready")), ["socket"]);
    assert.deepEqual(namesOf(runOf(["socket"], {}, "check_kubelet_pods_api")), ["socket"]);
    assert.match(refused([], {}, "check_kubelet_pods_api")[0], /^No check given/);
  });

  test("other names say nothing", () => {
    for (const name of ["kubelet-probe", "check_kubelet", "my_check_kubelet_ready", "/check_kubelet_ready/probe"]) {
      assert.match(refused([], {}, name)[0], /^No check given/);
    }
  });
});

describe("help and version", () => {
  const exits = (...given: Parameters<typeof invocation>) => {
    const planned = planOf(...given);
    assert.ok(planned.kind === "help" || planned.kind === "version", planned.kind);
    return planned.exitStatus;
  };

  test("help of the program", () => {
    for (const words of [["--help"], ["-h"], ["help"]]) {
      assert.deepEqual(planOf(words), { kind: "help", about: undefined, exitStatus: 0 });
    }
  });

  test("help of a check or command, wherever the option stands", () => {
    for (const name of [...checks.map((check) => check.name), ...commands]) {
      for (const words of [
        [name, "--help"],
        [name, "--nope", "-h"],
        ["help", name],
      ]) {
        assert.deepEqual(planOf(words), { kind: "help", about: name, exitStatus: 0 }, words.join(" "));
      }
    }
    assert.deepEqual(planOf(["nope", "--help"]), { kind: "help", about: undefined, exitStatus: 0 });
  });

  test("version", () => {
    for (const words of [["--version"], ["-V"], ["ready", "--version"], ["ready", "-V"]]) {
      assert.deepEqual(planOf(words), { kind: "version", exitStatus: 0 }, words.join(" "));
    }
    assert.equal(planOf(["-V"], {}, "check_kubelet_ready").kind, "version");
  });

  // The guidelines ask for UNKNOWN.
  test("exit 3 where nagios was asked for, else 0", () => {
    for (const words of [["--help"], ["--version"], ["-h"], ["-V"], ["ready", "--help"]]) {
      assert.equal(exits(words), 0);
      assert.equal(exits([...words, "--profile", "nagios"]), 3);
      assert.equal(exits(words, { KUBELET_PROBE_PROFILE: "nagios" }), 3);
      assert.equal(exits([...words, "--profile=npd"]), 0);
      assert.equal(exits([...words, "--profile=kube"]), 0);
      assert.equal(exits(words, {}, "check_kubelet_ready"), 3);
      assert.equal(exits([...words, "--profile", "npd"], {}, "check_kubelet_ready"), 0);
    }
  });
});

describe("commands", () => {
  test("explain and simulate get their words as they are", () => {
    assert.deepEqual(planOf(["explain", "Ready", "x"]), { kind: "explain", words: ["Ready", "x"] });
    assert.deepEqual(planOf(["simulate", "--socket", "/s"]), { kind: "simulate", words: ["--socket", "/s"] });
  });
  test("no check has a command's name", () => {
    for (const { name } of checks as readonly Check[]) assert.ok(!commands.includes(name));
  });
});

describe("failureLine", () => {
  const hostile = `a|b\nc\u001b[31m\u202e${"x".repeat(1000)}é`;
  const line = (profile: Profile, message: string) => failureLine(profile, "BadUsage", message);

  test("is of the profile's form", () => {
    assert.equal(line("nagios", "no"), "KUBELET-PROBE UNKNOWN - BadUsage: no\n");
    assert.equal(line("npd", "no"), "BadUsage: no\n");
    assert.equal(line("kube", "no"), "BadUsage: no\n");
    assert.equal(failureLine("nagios", "Timeout", "late"), "KUBELET-PROBE CRITICAL - Timeout: late\n");
    assert.equal(failureLine("nagios", "InternalError", "x"), "KUBELET-PROBE UNKNOWN - InternalError: x\n");
  });

  test("is one safe line, whatever the message", () => {
    for (const profile of profiles) assert.match(line(profile, hostile), /^[^\u0000-\u001f\u007f-\u009f\u202e]+\n$/);
    assert.doesNotMatch(line("nagios", hostile), /\|/);
    assert.match(line("npd", hostile), /^[ -~]{1,80}\n$/);
  });

  test("names every option that is accepted, and is not cut before that", () => {
    for (const [name, entries] of [
      ...checks.map((check) => [check.name, optionsOf(check)] as const),
      ["all", optionsOfAll(checks)] as const,
    ]) {
      const shown = line("nagios", refused([name, "--nope"])[0]);
      for (const key of Object.keys(entries)) assert.ok(shown.includes(` ${optionName(key)}`), `${key} in ${shown}`);
    }
  });
});
