import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import * as v from "valibot";
import { type Check, type CheckMetric, defineCheck, type Finding, type Metric, type Outcome } from "../lib/check.ts";
import { plan } from "../lib/cli.ts";
import { type Code, codes } from "../lib/codes.ts";
import { exitStatus, profiles } from "../lib/exit.ts";
import { Fault } from "../lib/fault.ts";
import { format, outputs } from "../lib/format.ts";
import { type CheckRun, type Report, type RunOptions, run } from "../lib/probe.ts";
import { parseRange, type Thresholds } from "../lib/range.ts";
import { canary, type Simulator, type SimulatorOptions, startSimulator } from "../lib/simulator.ts";
import type { Status } from "../lib/status.ts";
import { checks } from "../probes/list.ts";
import { dataSchemas, reportSchema } from "./json_schema.ts";

const nowhere = "/nonexistent/pods-api.sock";

async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function withSimulator<T>(
  scenario: string,
  use: (simulator: Simulator) => Promise<T>,
  options: Partial<SimulatorOptions> = {},
): Promise<T> {
  return inFolder(async (folder) => {
    const simulator = await startSimulator({ socket: join(folder, "s.sock"), scenario, ...options });
    try {
      return await use(simulator);
    } finally {
      await simulator.close();
    }
  });
}

/** A check that finds what it is told to, or throws it. */
function fake(
  found: (Partial<Outcome> & { readonly throws?: unknown }) | (() => Promise<Outcome>),
  differs: { readonly name?: string; readonly okCode?: Code; readonly metric?: CheckMetric } = {},
): CheckRun {
  const check: Check = {
    name: "fake",
    summary: "is it so",
    okCode: "Ready",
    options: {},
    ...differs,
    async run() {
      if (typeof found === "function") return found();
      if ("throws" in found) throw found.throws;
      return { summary: "all is well", findings: [], metrics: [], ...found };
    },
  };
  return { check, options: {} };
}

const finding = (code: Code, differs: Partial<Finding> = {}): Finding => ({
  code,
  subject: "",
  message: `about ${code}`,
  ...differs,
});

function runFakes(runs: readonly CheckRun[], options: Partial<RunOptions> = {}): Promise<Report> {
  return run({ runs, name: "all", socket: nowhere, nodeName: "cp-1", timeoutMs: 10_000, ...options });
}

/** Runs what a command line asks for. */
async function runWords(words: readonly string[]): Promise<Report> {
  const owner = process.geteuid?.() ?? 0;
  const takesOwner = words[0] === "all" || words[0] === "socket";
  const planned = plan(checks, {
    name: "kubelet-probe",
    words: owner !== 0 && takesOwner ? [...words, "--owner", String(owner)] : words,
    environment: {},
  });
  assert.equal(planned.kind, "run");
  return run((planned as Extract<typeof planned, { kind: "run" }>).run);
}

const verdict = ({ status, code }: Pick<Report, "status" | "code">) => [status, code];

describe("one check", () => {
  test("nothing found: OK with the check's own code and summary", async () => {
    const report = await runFakes([fake({}, { okCode: "RateLimitHeadroom" })]);
    assert.deepEqual(verdict(report), ["OK", "RateLimitHeadroom"]);
    assert.equal(report.summary, "all is well");
    assert.equal(report.tokensSpent, 0);
    assert.equal(report.bytesReceived, 0);
    assert.equal(report.socket, nowhere);
    assert.equal(report.node, "cp-1");
  });

  test("a finding has the status of its code, or its own", async () => {
    for (const code of Object.keys(codes) as Code[]) {
      const [check] = (await runFakes([fake({ findings: [finding(code)] })])).checks;
      assert.equal(check!.status, codes[code].status);
      assert.equal(check!.findings[0]!.status, codes[code].status);
    }
    const own = await runFakes([fake({ findings: [finding("SocketInsecure", { status: "WARNING" })] })]);
    assert.deepEqual(verdict(own), ["WARNING", "SocketInsecure"]);
  });

  test("the worst finding decides, the first of several such, and the others are counted", async () => {
    const report = await runFakes([
      fake({
        findings: [
          finding("StaticPodStale", { subject: "ns/a" }),
          finding("PermissionDenied"),
          finding("StaticPodMissing", { subject: "ns/b", message: "not listed" }),
          finding("StaticPodFailed", { subject: "ns/c" }),
        ],
      }),
    ]);
    assert.deepEqual(verdict(report), ["CRITICAL", "StaticPodMissing"]);
    assert.equal(report.summary, "ns/b: not listed (and 3 more)");
    assert.equal(report.checks[0]!.findings.length, 4);
  });

  test("a finding that is OK is listed, and does not count", async () => {
    const report = await runFakes([
      fake({ findings: [finding("StaticPodStale", { status: "OK" }), finding("StaticPodUnexpected")] }),
    ]);
    assert.equal(report.summary, "about StaticPodUnexpected");
    const fine = await runFakes([fake({ findings: [finding("StaticPodStale", { status: "OK" })] })]);
    assert.deepEqual(verdict(fine), ["OK", "Ready"]);
    assert.equal(fine.summary, "all is well");
  });
});

describe("several checks", () => {
  // CRITICAL > UNKNOWN > WARNING > OK.
  const byStatus: Readonly<Record<Status, CheckRun>> = {
    OK: fake({}),
    WARNING: fake({ findings: [finding("StaticPodStale")] }),
    UNKNOWN: fake({ findings: [finding("ManifestsUnreadable")] }),
    CRITICAL: fake({ findings: [finding("StaticPodMissing")] }),
  };
  const fromBest: readonly Status[] = ["OK", "WARNING", "UNKNOWN", "CRITICAL"];

  test("the worst status wins, in any order", async () => {
    for (const [i, a] of fromBest.entries()) {
      for (const [j, b] of fromBest.entries()) {
        const report = await runFakes([byStatus[a], byStatus.OK, byStatus[b]]);
        assert.equal(report.status, fromBest[Math.max(i, j)], `${a} and ${b}`);
      }
    }
  });

  test("the code and summary are those of the first check with it", async () => {
    const report = await runFakes([
      byStatus.WARNING,
      fake({ findings: [finding("SocketInsecure")] }),
      byStatus.CRITICAL,
    ]);
    assert.deepEqual(verdict(report), ["CRITICAL", "SocketInsecure"]);
    assert.equal(report.summary, "about SocketInsecure");
  });

  test("all well: the code of the first, and all codes in the summary", async () => {
    const report = await runFakes([
      fake({}, { okCode: "SocketSecure" }),
      fake({}, { okCode: "Ready" }),
      fake({}, { okCode: "StaticPodsHealthy" }),
    ]);
    assert.deepEqual(verdict(report), ["OK", "SocketSecure"]);
    assert.equal(report.summary, "SocketSecure, Ready, StaticPodsHealthy");
  });

  test("they run one after the other", async () => {
    const order: string[] = [];
    const slow = (name: string) =>
      fake(async () => {
        order.push(`${name} starts`);
        await new Promise((resolve) => setTimeout(resolve, 1));
        order.push(`${name} ends`);
        return { summary: "", findings: [], metrics: [] };
      });
    await runFakes([slow("a"), slow("b")]);
    assert.deepEqual(order, ["a starts", "a ends", "b starts", "b ends"]);
  });
});

describe("what a check throws", () => {
  test("a fault becomes a finding with its code", async () => {
    for (const code of Object.keys(codes) as Code[]) {
      if (codes[code].status === "OK") continue;
      const report = await runFakes([fake({ throws: new Fault(code, "it broke", { phase: "call" }) })]);
      assert.deepEqual(verdict(report), [codes[code].status, code]);
      assert.equal(report.summary, "it broke");
      assert.deepEqual(report.checks[0]!.metrics, []);
    }
  });

  test("the cause of InventoryUnavailable is kept", async () => {
    const report = await runFakes([
      fake({ throws: new Fault("InventoryUnavailable", "no", { cause: "RateLimited" }) }),
    ]);
    assert.equal(report.checks[0]!.findings[0]!.cause, "RateLimited");
  });

  test("anything else is a bug: InternalError, UNKNOWN", async () => {
    const thrown: readonly (readonly [unknown, string])[] = [
      [new TypeError("x is not a function"), "TypeError: x is not a function"],
      [Object.assign(new Error("connect"), { code: "ECONNREFUSED" }), "Error: connect"],
      ["text", "text"],
      [undefined, "undefined"],
      [{ code: "SocketDead", message: "not a Fault" }, "[object Object]"],
    ];
    for (const [value, message] of thrown) {
      const report = await runFakes([fake({ throws: value })]);
      assert.deepEqual(verdict(report), ["UNKNOWN", "InternalError"]);
      assert.equal(report.summary, message);
      assert.deepEqual(
        profiles.map((profile) => exitStatus(report, { profile })),
        [3, 2, 1],
      );
    }
  });

  test("the checks behind it still run", async () => {
    const report = await runFakes([
      fake({ throws: new Error("a bug") }),
      fake({ findings: [finding("StaticPodMissing")] }),
    ]);
    assert.deepEqual(verdict(report), ["CRITICAL", "StaticPodMissing"]);
  });
});

describe("one cause, one code", () => {
  const throwing = (code: Code, cause?: Code) => fake({ throws: new Fault(code, "x", cause && { cause }) });

  test("the second check with one fault is skipped, with the cause, and does not count", async () => {
    const report = await runFakes([
      fake({}),
      throwing("Initializing"),
      throwing("InventoryUnavailable", "Initializing"),
    ]);
    assert.deepEqual(verdict(report), ["WARNING", "Initializing"]);
    assert.deepEqual(
      report.checks.map(({ skipped }) => skipped),
      [undefined, undefined, { cause: "Initializing" }],
    );
    const [skipped] = report.checks.slice(2);
    assert.equal(skipped!.code, "InventoryUnavailable");
    assert.equal(skipped!.summary, "not run because of Initializing");
  });

  test("the first one counts, whatever it asked for", async () => {
    const report = await runFakes([throwing("InventoryUnavailable", "Timeout"), throwing("Timeout")]);
    assert.deepEqual(verdict(report), ["UNKNOWN", "InventoryUnavailable"]);
    assert.deepEqual(report.checks[1]!.skipped, { cause: "Timeout" });
  });

  test("another fault is not skipped", async () => {
    const report = await runFakes([throwing("Initializing"), throwing("InventoryUnavailable", "ConnectionLost")]);
    assert.deepEqual(verdict(report), ["UNKNOWN", "InventoryUnavailable"]);
    assert.equal(report.checks[1]!.skipped, undefined);
  });

  test("what a check finds by itself is never skipped", async () => {
    const report = await runFakes([
      throwing("RateLimited"),
      fake({ findings: [finding("RateLimited", { status: "CRITICAL" })] }),
    ]);
    assert.deepEqual(verdict(report), ["CRITICAL", "RateLimited"]);
  });
});

describe("--severity", () => {
  const severity = (...entries: readonly (readonly [Code, Status])[]) => ({ severity: new Map(entries) });

  test("makes a code worse, better or OK", async () => {
    for (const status of ["OK", "WARNING", "UNKNOWN", "CRITICAL"] as const) {
      const report = await runFakes([fake({ throws: new Fault("SocketDead", "x") })], severity(["SocketDead", status]));
      assert.equal(report.status, status);
      if (status !== "OK") assert.equal(report.code, "SocketDead");
      assert.equal(report.checks[0]!.findings[0]!.status, status);
    }
  });

  test("wins over the status a finding has of its own", async () => {
    const report = await runFakes(
      [fake({ findings: [finding("StaticPodNotReady", { status: "CRITICAL" })] })],
      severity(["StaticPodNotReady", "WARNING"]),
    );
    assert.deepEqual(verdict(report), ["WARNING", "StaticPodNotReady"]);
  });

  test("leaves other codes alone", async () => {
    const report = await runFakes(
      [fake({ findings: [finding("StaticPodMissing"), finding("StaticPodStale")] })],
      severity(["StaticPodMissing", "OK"]),
    );
    assert.deepEqual(verdict(report), ["WARNING", "StaticPodStale"]);
  });

  test("an InternalError too", async () => {
    const report = await runFakes([fake({ throws: new Error("x") })], severity(["InternalError", "CRITICAL"]));
    assert.deepEqual(verdict(report), ["CRITICAL", "InternalError"]);
  });
});

describe("--warning and --critical", () => {
  const metric: CheckMetric = { name: "unhealthy", description: "x", codes: ["StaticPodMissing"] };
  const value = (number: number): Metric => ({ name: "unhealthy", value: number, unit: "" });
  const ranges = (warning?: string, critical?: string): { thresholds: Thresholds } => ({
    thresholds: {
      warning: warning ? parseRange(warning) : undefined,
      critical: critical ? parseRange(critical) : undefined,
    },
  });
  const check = (number: number, found: readonly Finding[] = [], differs: Partial<CheckMetric> = {}) =>
    fake(
      { metrics: [value(number), { ...value(number), name: "other" }], findings: found },
      { metric: { ...metric, ...differs } },
    );

  test("given ranges replace the status of the metric's codes", async () => {
    const at = async (number: number) =>
      (await runFakes([check(number, [finding("StaticPodMissing")])], ranges("0", "2"))).status;
    assert.deepEqual([await at(0), await at(1), await at(3)], ["OK", "WARNING", "CRITICAL"]);
  });

  test("and not that of others", async () => {
    const report = await runFakes([check(0, [finding("StaticPodStale")])], ranges("0", "2"));
    assert.deepEqual(verdict(report), ["WARNING", "StaticPodStale"]);
  });

  test("without one of the metric's codes the metric itself is found", async () => {
    const report = await runFakes([check(3)], ranges("1", "2"));
    assert.deepEqual(verdict(report), ["CRITICAL", "ThresholdExceeded"]);
    assert.equal(report.summary, "unhealthy 3 is outside the range 2");
    const warning = await runFakes([check(2)], ranges("1", "2"));
    assert.deepEqual(
      [...verdict(warning), warning.summary],
      ["WARNING", "ThresholdExceeded", "unhealthy 2 is outside the range 1"],
    );
    assert.deepEqual(verdict(await runFakes([check(1)], ranges("1", "2"))), ["OK", "Ready"]);
    const inside = await runFakes([check(1)], ranges("@0:1", "2"));
    assert.equal(inside.summary, "unhealthy 1 is inside the range @0:1");
  });

  test("a fault that counts as OK keeps its code and its message: what was asked is not answered", async () => {
    const report = await runFakes([fake({ throws: new Fault("Initializing", "not yet") })], {
      severity: new Map<Code, Status>([["Initializing", "OK"]]),
    });
    assert.equal(report.status, "OK");
    assert.equal(report.code, "Initializing");
    assert.match(report.summary, /^not yet/);
    assert.equal(exitStatus(report, { profile: "kube", purpose: "startup" }), 1);
  });

  test("--severity ThresholdExceeded", async () => {
    const report = await runFakes([check(3)], {
      ...ranges("1", "2"),
      severity: new Map<Code, Status>([["ThresholdExceeded", "WARNING"]]),
    });
    assert.deepEqual(verdict(report), ["WARNING", "ThresholdExceeded"]);
  });

  test("the main metric has the ranges it was judged by, as they were written", async () => {
    const [report] = (await runFakes([check(1)], ranges("~:1", "@5:10"))).checks;
    assert.deepEqual(
      report!.metrics.map(({ name, warning, critical }) => [name, warning, critical]),
      [
        ["unhealthy", "~:1", "@5:10"],
        ["other", undefined, undefined],
      ],
    );
  });

  test("a check's own ranges count where none are given, and not at all where one is", async () => {
    const defaults = () => ({ warning: parseRange("3:"), critical: parseRange("1:") });
    const own = check(0, [finding("StaticPodMissing")], { defaults });
    assert.deepEqual(verdict(await runFakes([own])), ["CRITICAL", "StaticPodMissing"]);
    assert.deepEqual(verdict(await runFakes([own], ranges("1:"))), ["WARNING", "StaticPodMissing"]);
    assert.deepEqual(verdict(await runFakes([own], ranges(undefined, "~:5"))), ["OK", "Ready"]);
  });

  test("a check that could not run has no metric to judge", async () => {
    const failing = fake({ throws: new Fault("Timeout", "x") }, { metric });
    assert.deepEqual(verdict(await runFakes([failing], ranges("10:", "10:"))), ["CRITICAL", "Timeout"]);
  });
});

describe("Initializing", () => {
  /** A report of Initializing for a socket that was made so long ago. */
  const at = (secondsAgo: number, options: object = {}) =>
    inFolder(async (folder) => {
      const socket = join(folder, "s.sock");
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(socket, resolve));
      try {
        const birth = Date.now() / 1000 - secondsAgo;
        utimesSync(socket, birth, birth);
        // A chmod is no new birth.
        chmodSync(socket, 0o755);
        const { check } = fake({ throws: new Fault("Initializing", "not yet") });
        return await runFakes([{ check, options }], { socket });
      } finally {
        await new Promise((resolve) => server.close(resolve));
      }
    });

  test("is WARNING while the kubelet is young, and says for how long", async () => {
    const report = await at(240);
    assert.deepEqual(verdict(report), ["WARNING", "Initializing"]);
    assert.match(report.summary, /^not yet, 4 min( \d+ s)? after its start$/);
  });

  test("is CRITICAL after five minutes", async () => {
    assert.deepEqual(verdict(await at(360)), ["CRITICAL", "Initializing"]);
  });

  test("or after --init-grace", async () => {
    assert.equal((await at(240, { initGrace: 60_000 })).status, "CRITICAL");
    assert.equal((await at(3000, { initGrace: 3_600_000 })).status, "WARNING");
  });

  test("with a clock that was set back it is young", async () => {
    const report = await at(-3600);
    assert.equal(report.status, "WARNING");
    assert.match(report.summary, /, 0 ms after its start$/);
  });

  test("of a kubelet that restarts during the run, its own age counts, at the moment it answers", () =>
    withSimulator("healthy", async ({ socket }) => {
      const hourAgo = Date.now() / 1000 - 3600;
      utimesSync(socket, hourAgo, hourAgo);
      const waiting: Check = {
        ...fake({}).check,
        async run(context) {
          const [{ bornMs }, beganMs] = [context.socket(), context.nowMs];
          assert.ok(beganMs - bornMs > 3_500_000);
          for (const startMs = performance.now(); performance.now() < startMs + 2; ) await new Promise(setImmediate);
          assert.ok(context.nowMs > beganMs);
          utimesSync(socket, new Date(), new Date());
          throw new Fault("Initializing", "not yet");
        },
      };
      const report = await runFakes([{ check: waiting, options: {} }], { socket });
      assert.deepEqual(verdict(report), ["WARNING", "Initializing"]);
    }));

  test("without the socket, which the next kubelet has just removed, it has no age", async () => {
    const report = await runFakes([fake({ throws: new Fault("Initializing", "not yet") })]);
    assert.deepEqual([...verdict(report), report.summary], ["WARNING", "Initializing", "not yet"]);
  });
});

describe("one connection and one listing", () => {
  const lists = (times: number): CheckRun => ({
    check: defineCheck({
      name: "lists",
      summary: "x",
      okCode: "Ready",
      options: {},
      async run(context) {
        for (let i = 0; i < times; i++) await context.listing();
        const { pods } = await context.listing();
        return { summary: `${pods.length} pods`, findings: [], metrics: [] };
      },
    }) as Check,
    options: {},
  });

  test("whoever asks, and its token is counted once", () =>
    withSimulator("healthy", async (simulator) => {
      const report = await runFakes([lists(3), lists(1)], { socket: simulator.socket });
      assert.equal(report.checks[0]!.summary, "10 pods");
      assert.equal(report.tokensSpent, 1);
      assert.ok(report.bytesReceived > 0);
      assert.deepEqual([simulator.connections, simulator.calls, simulator.admitted], [1, 1, 1]);
    }));

  test("the form unix: of a path is the path", () =>
    withSimulator("healthy", async (simulator) => {
      const report = await runFakes([lists(0)], { socket: `unix://${simulator.socket}` });
      assert.equal(report.status, "OK");
      assert.equal(report.socket, simulator.socket);
    }));

  test("a call the limiter refuses is made again, three times at the most", () =>
    withSimulator("rate-limited", async (simulator) => {
      const report = await runFakes([lists(0)], { socket: simulator.socket });
      assert.deepEqual(verdict(report), ["WARNING", "RateLimited"]);
      assert.equal(simulator.calls, 4);
    }));

  test("but not when the deadline is near", () =>
    withSimulator("rate-limited", async (simulator) => {
      const report = await runFakes([lists(0)], { socket: simulator.socket, timeoutMs: 40 });
      assert.equal(report.code === "RateLimited" || report.code === "Timeout", true);
      assert.ok(simulator.calls <= 2);
    }));

  test("the connection is closed at the end", () =>
    withSimulator("healthy", async (simulator) => {
      await runFakes([lists(0)], { socket: simulator.socket });
      for (let i = 0; i < 200 && simulator.openConnections > 0; i++) await new Promise((r) => setTimeout(r, 10));
      assert.equal(simulator.openConnections, 0);
    }));
});

describe("all, with the real checks", () => {
  const expect = (simulator: Simulator) => ["--expect", simulator.expect.join(","), "--node-name", "node-1"];

  test("a healthy node", () =>
    withSimulator("healthy", async (simulator) => {
      const report = await runWords(["all", "--socket", simulator.socket, ...expect(simulator)]);
      assert.deepEqual(verdict(report), ["OK", "SocketSecure"]);
      assert.equal(report.summary, "SocketSecure, Ready, ManifestsClean, StaticPodsHealthy, RateLimitHeadroom");
      // One for the listing and three for the burst.
      assert.equal(report.tokensSpent, 4);
      assert.equal(simulator.admitted, 4);
      assert.equal(simulator.connections, 1);
    }));

  test("a kubelet that is initializing is WARNING, not UNKNOWN", () =>
    withSimulator("initializing", async (simulator) => {
      const report = await runWords(["all", "--socket", simulator.socket, ...expect(simulator)]);
      assert.deepEqual(verdict(report), ["WARNING", "Initializing"]);
      // One for the listing, which is asked for once also where it fails, and three for the burst.
      assert.equal(report.tokensSpent, 4);
      assert.deepEqual(
        report.checks.map(({ check, skipped }) => [check, skipped?.cause]),
        [
          ["socket", undefined],
          ["ready", undefined],
          ["manifests", undefined],
          ["static-pods", "Initializing"],
          ["rate-limit", undefined],
        ],
      );
    }));

  test("nobody there: one code, everything behind it is skipped", async () => {
    for (const [scenario, code] of [
      ["dead", "SocketDead"],
      ["missing", "SocketMissing"],
      ["not-a-socket", "SocketNotASocket"],
    ] as const) {
      await withSimulator(scenario, async (simulator) => {
        const report = await runWords(["all", "--socket", simulator.socket, ...expect(simulator)]);
        assert.deepEqual(verdict(report), ["CRITICAL", code]);
        assert.deepEqual(
          report.checks.map(({ skipped }) => skipped?.cause),
          // The manifests are on this node, whoever answers.
          [undefined, code, undefined, code, code],
        );
        assert.equal(report.tokensSpent, 0);
      });
    }
  });

  test("--checks chooses, in the order of the list", () =>
    withSimulator("healthy", async (simulator) => {
      const report = await runWords(["all", "--socket", simulator.socket, "--checks", "ready,socket"]);
      assert.deepEqual(
        report.checks.map(({ check }) => check),
        ["socket", "ready"],
      );
    }));
});

describe("every output of a real run", () => {
  const scenarios = [
    ...["healthy", "missing-pod", "not-ready-old", "failed-pod", "hostile-text", "invalid-utf8", "unexpected-pod"],
    ...["initializing-old", "rate-limited", "wrong-service", "server-error", "long-message", "http1", "lost"],
    ...["undecodable", "dead", "insecure"],
  ];
  for (const scenario of scenarios) {
    test(`${scenario}: the JSON is of the schema, and nothing shows an environment`, () =>
      withSimulator(scenario, async (simulator) => {
        const report = await runWords([
          ...["all", "--socket", simulator.socket, "--node-name", "node-1"],
          ...["--expect", simulator.expect.join(",")],
        ]);
        for (const profile of profiles) {
          const status = exitStatus(report, { profile });
          for (const output of outputs) {
            const text = format(report, output, { profile, exitStatus: status, verbose: true, origins: [] });
            assert.ok(!text.includes(canary));
            if (output !== "json") continue;
            const json = v.parse(reportSchema, JSON.parse(text));
            assert.equal(json.exitStatus, status);
            for (const { check, data, metrics } of json.checks) {
              // A check that could not run has neither.
              if (Object.keys(data).length === 0) assert.equal(metrics.length, 0);
              else v.parse(dataSchemas[check as keyof typeof dataSchemas], data);
            }
          }
        }
      }));
  }
});
