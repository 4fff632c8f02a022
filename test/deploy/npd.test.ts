// deploy/npd under the rules of node-problem-detector's custom plugin monitor, written down here from what its source does:
// which configurations it refuses, how it runs a rule, and what becomes of conditions and events.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { codes } from "../../lib/codes.ts";
import { age, baseEnvironment, binary, folder, simulate } from "../support.ts";
import { deployed } from "./consumers.ts";

interface Rule {
  readonly type: "permanent" | "temporary";
  readonly condition?: string;
  readonly reason: string;
  readonly path: string;
  readonly args: readonly string[];
  readonly timeout?: string;
}

interface Config {
  readonly plugin: string;
  readonly pluginConfig: {
    readonly invoke_interval?: string;
    readonly timeout?: string;
    readonly max_output_length?: number;
    readonly concurrency?: number;
    readonly enable_message_change_based_condition_update?: boolean;
    readonly skip_initial_status?: boolean;
  };
  readonly source: string;
  readonly conditions: readonly { readonly type: string; readonly reason: string; readonly message: string }[];
  readonly rules: readonly Rule[];
}

type Status = "OK" | "NonOK" | "Unknown";

const config: Config = JSON.parse(deployed("npd/kubelet-probe.json"));

/** A duration of Go, as far as the file has them. */
function seconds(text: string): number {
  const match = /^(\d+)(ms|s|m)$/.exec(text);
  assert.ok(match, text);
  return Number(match[1]) * { ms: 0.001, s: 1, m: 60 }[match[2] as "ms" | "s" | "m"];
}

const globalTimeoutMs = ({ pluginConfig }: Config) => seconds(pluginConfig.timeout ?? "5s") * 1000;

/** What makes the monitor end at its start. */
function refusals({ plugin, pluginConfig, rules, conditions }: Config): string[] {
  const wrong: string[] = [];
  if (plugin !== "custom") wrong.push(`plugin ${plugin}`);
  for (const { timeout, type, condition, reason } of rules) {
    if (timeout !== undefined && seconds(timeout) > seconds(pluginConfig.timeout ?? "5s"))
      wrong.push(`${reason}: timeout`);
    if (type === "permanent" && !conditions.some((known) => known.type === condition))
      wrong.push(`${reason}: condition`);
  }
  return wrong;
}

const outputCap = 4096;

/** Runs a rule: both outputs are read up to 4096 bytes, and the whole process group is killed at the timeout. */
function runRule(rule: Rule, { pluginConfig }: Config, program: string, env: Readonly<Record<string, string>> = {}) {
  const limitMs = Math.min(seconds(rule.timeout ?? "1m") * 1000, seconds(pluginConfig.timeout ?? "5s") * 1000);
  return new Promise<{ status: Status; message: string; raw: string }>((resolve, reject) => {
    const child = spawn(program, rule.args, {
      detached: true,
      env: { ...baseEnvironment, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const stdout: Buffer[] = [];
    child.stdout.on("data", (chunk) => stdout.push(chunk));
    child.stderr.resume();
    let killed = false;
    const timer = setTimeout(() => {
      killed = true;
      process.kill(-child.pid!, "SIGKILL");
    }, limitMs);
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      const raw = Buffer.concat(stdout).subarray(0, outputCap).toString();
      let output = raw.trim();
      if (killed) output = `Timeout when running plugin "${program}": state - signal: ${signal}. output - "${output}"`;
      const message = Buffer.from(output)
        .subarray(0, pluginConfig.max_output_length ?? 80)
        .toString();
      resolve({ status: code === 0 ? "OK" : code === 1 ? "NonOK" : "Unknown", message, raw });
    });
  });
}

interface Condition {
  readonly type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
}

/** The monitor's state between runs: conditions as the node has them, and the events of the last run. */
function monitor({ conditions: defaults, rules, pluginConfig }: Config) {
  const conditions: Condition[] = defaults.map((each) => ({ ...each, status: "False" }));
  return {
    conditions,
    take(rule: Rule, status: Status, message: string): string[] {
      if (rule.type === "temporary") return status === "OK" ? [] : [`${rule.reason}: ${message}`];
      const condition = conditions.find(({ type }) => type === rule.condition)!;
      const standard = defaults.find(({ type }) => type === rule.condition)!;
      const wanted = ({ OK: "False", NonOK: "True", Unknown: "Unknown" } as const)[status];
      const changed =
        condition.status !== wanted ||
        (wanted === "True" &&
          (condition.reason !== rule.reason ||
            (pluginConfig.enable_message_change_based_condition_update === true && condition.message !== message)));
      if (!changed) return [];
      condition.status = wanted;
      condition.reason = wanted === "True" ? rule.reason : standard.reason;
      // The message of a run that was well is not shown.
      condition.message = wanted === "False" ? standard.message : message;
      return [`${condition.type}=${wanted}: ${condition.message}`];
    },
    rules,
  };
}

async function invoke(on: ReturnType<typeof monitor>, env: Readonly<Record<string, string>>): Promise<string[]> {
  const events: string[] = [];
  for (const rule of on.rules) {
    const { status, message, raw } = await runRule(rule, config, binary, env);
    assert.match(raw, /^[ -~]+\n$/, "one line of ASCII");
    assert.ok(Buffer.byteLength(raw.trim()) <= 80, "nothing is cut off");
    events.push(...on.take(rule, status, message));
  }
  return events;
}

async function nodeWith(t: TestContext, scenario: string): Promise<Readonly<Record<string, string>>> {
  const simulator = await simulate(t, scenario);
  // Others can use a socket only where they can get to it.
  for (const path of [dirname(simulator.socket), dirname(dirname(simulator.socket))]) chmodSync(path, 0o755);
  try {
    age(simulator.socket, 3600);
  } catch {
    // A node without a socket.
  }
  const owner = String(process.geteuid?.());
  return {
    KUBELET_PROBE_SOCKET: simulator.socket,
    KUBELET_PROBE_EXPECT: simulator.expect.join(","),
    KUBELET_PROBE_OWNER: owner,
  };
}

describe("the configuration", () => {
  test("is not refused", () => assert.deepEqual(refusals(config), []));

  test("what would be refused is noticed", () => {
    const [rule] = config.rules as [Rule];
    assert.deepEqual(refusals({ ...config, rules: [{ ...rule, timeout: "6s" }] }).length, 1);
    assert.deepEqual(refusals({ ...config, conditions: [] }).length, 2);
  });

  test("one permanent rule a condition: the results of two would take turns", () => {
    const conditions = config.rules.flatMap(({ condition }) => condition ?? []);
    assert.deepEqual(
      conditions,
      config.conditions.map(({ type }) => type),
    );
  });

  test("a round of every rule at its timeout ends before the next one begins", () => {
    assert.equal(config.pluginConfig.concurrency, 1);
    assert.ok(config.rules.length * globalTimeoutMs(config) < seconds(config.pluginConfig.invoke_interval!) * 1000);
  });

  test("the probe's own deadline is before the one at which it is killed", () => {
    for (const { timeout, args } of config.rules) {
      assert.ok(args.includes("npd"));
      assert.ok(4 + 1 <= seconds(timeout!));
    }
  });

  test("messages and reasons are of the form that the API server takes for a condition", () => {
    for (const { type, reason } of [
      ...config.conditions,
      ...config.rules.map((rule) => ({ type: "x", reason: rule.reason })),
    ]) {
      assert.match(reason, /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/);
      assert.match(type, /^\w+$/);
    }
    assert.equal(config.conditions[1]?.message, codes.StaticPodsHealthy.brief);
  });

  test("the rule on the rate limit has every other code made OK that a node can bring about", () => {
    const rule = config.rules.find(({ type }) => type === "temporary")!;
    const given = rule.args
      .filter((_, at) => rule.args[at - 1] === "--severity")
      .join(",")
      .split(",");
    const others = Object.entries(codes)
      .filter(
        ([code, { status }]) =>
          status !== "OK" &&
          /^(Socket|Permission|PathToo|Timeout|NotGrpc|Wrong|Init|Answer|Connection|Undecod|ServerError)/.test(code) &&
          code !== "SocketInsecure",
      )
      .map(([code]) => `${code}=OK`);
    assert.deepEqual(given.sort(), others.sort());
  });

  test("the one for Node Readiness differs in that the first word is the first measurement", () => {
    const other: Config = JSON.parse(deployed("node-readiness/npd.json"));
    const { skip_initial_status, ...pluginConfig } = other.pluginConfig;
    assert.equal(skip_initial_status, true);
    assert.deepEqual({ ...other, pluginConfig }, config);
  });
});

describe("a round of its rules", () => {
  test("on a node that is well changes nothing", async (t) => {
    const on = monitor(config);
    assert.deepEqual(await invoke(on, await nodeWith(t, "healthy")), []);
    assert.deepEqual(
      on.conditions.map(({ status }) => status),
      ["False", "False"],
    );
  });

  for (const [scenario, ...events] of [
    ["missing", "KubeletPodsAPIProblem=True: SocketMissing: ", "StaticPodsProblem=Unknown: InventoryUnavailable: "],
    ["dead", "KubeletPodsAPIProblem=True: SocketDead: ", "StaticPodsProblem=Unknown: InventoryUnavailable: "],
    ["insecure", "KubeletPodsAPIProblem=True: SocketInsecure: "],
    [
      "wrong-service",
      "KubeletPodsAPIProblem=Unknown: WrongService: ",
      "StaticPodsProblem=Unknown: InventoryUnavailable: ",
    ],
    [
      "initializing-old",
      "KubeletPodsAPIProblem=True: Initializing: ",
      "StaticPodsProblem=Unknown: InventoryUnavailable: ",
    ],
    ["missing-pod", "StaticPodsProblem=True: StaticPodMissing: kube-system/"],
    ["failed-pod", "StaticPodsProblem=True: StaticPodFailed: kube-system/"],
    ["hostile-text", "StaticPodsProblem=True: StaticPodFailed: kube-system/"],
  ] as const) {
    test(`on a node that is ${scenario}`, async (t) => {
      const env = await nodeWith(t, scenario);
      const on = monitor(config);
      const first = await invoke(on, env);
      assert.equal(first.length, events.length, first.join("\n"));
      for (const [at, event] of events.entries()) assert.ok(first[at]!.startsWith(event), first[at]);
      // The same state again is no new event: a message with a number that changes would be one a minute.
      assert.deepEqual(await invoke(on, env), []);
      // And well again.
      const well = await invoke(on, await nodeWith(t, "healthy"));
      assert.equal(well.length, events.length);
      for (const event of well) assert.match(event, /=False: /);
    });
  }

  test("a rate limit that is used up is an event, and no condition", async (t) => {
    const env = await nodeWith(t, "rate-limited");
    const on = monitor(config);
    const events = await invoke(on, env);
    assert.ok(
      events.includes("KubeletPodsAPIRateLimited: RateLimited: the rate limit of the Pods API refuses calls"),
      events.join("\n"),
    );
  });

  test("a node that hangs ends by the probe's own word, not by a kill", async (t) => {
    const events = await invoke(monitor(config), await nodeWith(t, "hang"));
    assert.deepEqual(events, [
      "KubeletPodsAPIProblem=True: Timeout: no answer before the deadline",
      "StaticPodsProblem=Unknown: InventoryUnavailable: the pods could not be listed (Timeout)",
    ]);
  });
});

// The rules themselves, so that a test above that passes means something.
describe("how a rule is run", () => {
  const rule: Rule = { type: "permanent", condition: "C", reason: "R", path: "", args: [] };
  const fast: Config = { ...config, pluginConfig: { timeout: "200ms", max_output_length: 80 } };

  function script(t: TestContext, text: string): string {
    const path = join(folder(t), "plugin");
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  for (const [text, status, message] of [
    ["echo fine", "OK", /^fine$/],
    ["echo bad; exit 1", "NonOK", /^bad$/],
    ["echo '  spaces  '; exit 2", "Unknown", /^spaces$/],
    ["exit 127", "Unknown", /^$/],
    ["kill -TERM $$", "Unknown", /^$/],
    ["head -c 10000 /dev/zero | tr '\\0' x; exit 1", "NonOK", /^x{80}$/],
    ["echo a; sleep 20", "Unknown", /^Timeout when running plugin/],
  ] as const) {
    test(text, async (t) => {
      const ended = await runRule(rule, fast, script(t, text));
      assert.equal(ended.status, status);
      assert.match(ended.message, message);
      assert.ok(ended.raw.length <= outputCap);
    });
  }
});
