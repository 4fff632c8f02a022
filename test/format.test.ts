import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import * as v from "valibot";
import { type Code, codes } from "../lib/codes.ts";
import { exitStatus, type Profile, profiles } from "../lib/exit.ts";
import { type FormatOptions, format, type Output, outputs, toJson } from "../lib/format.ts";
import type { CheckReport, JudgedFinding, JudgedMetric, Report } from "../lib/probe.ts";
import { startSimulator } from "../lib/simulator.ts";
import { type Status, statuses } from "../lib/status.ts";
import { reportSchema } from "./json_schema.ts";

const allCodes = Object.keys(codes) as Code[];

function checkReport(differs: Partial<CheckReport> = {}): CheckReport {
  return {
    check: "ready",
    status: "OK",
    code: "Ready",
    summary: "the kubelet serves its inventory of 10 pods, 4 of them static",
    findings: [],
    metrics: [],
    details: [],
    data: {},
    ...differs,
  };
}

/** A report of these checks, with the verdict of the first. */
function report(checks: readonly CheckReport[], differs: Partial<Report> = {}): Report {
  const [{ check: name, status, code, summary }] = checks as [CheckReport];
  return {
    name: checks.length > 1 ? "all" : name,
    status,
    code,
    summary,
    socket: "/s",
    node: "cp-1",
    startedMs: Date.parse("2026-01-01T00:00:00Z"),
    durationMs: 30.6,
    tokensSpent: 1,
    bytesReceived: 13_371,
    checks,
    ...differs,
  };
}

function finding(code: Code, differs: Partial<JudgedFinding> = {}): JudgedFinding {
  return { code, status: codes[code].status, subject: "", message: "it is so", ...differs };
}

function failing(code: Code, subject = "", message = "it is so", more: readonly JudgedFinding[] = []): CheckReport {
  const first = finding(code, { subject, message });
  const summary = subject === "" ? message : `${subject}: ${message}`;
  return checkReport({ status: first.status, code, summary, findings: [first, ...more] });
}

function text(of: Report, profile: Profile, options: Partial<FormatOptions> = {}): string {
  return format(of, "text", { profile, exitStatus: exitStatus(of, { profile }), verbose: false, ...options });
}

const seconds = (value: number, differs: Partial<JudgedMetric> = {}): JudgedMetric => ({
  name: "time",
  value,
  unit: "s",
  min: 0,
  ...differs,
});

/**
 * Performance data by the guidelines: `'label'=value[UOM];[warn];[crit];[min];[max]`, separated by spaces. The label needs
 * no quotes where it has no space, quote or equals sign; value, min and max are of the class [-0-9.]; warn and crit are
 * ranges; trailing semicolons may be dropped.
 */
function parsePerformanceData(data: string) {
  return data.split(" ").map((item) => {
    const match = /^([^ ='|;]+)=(-?\d+(?:\.\d+)?)(s|B|)((?:;[-@~:.0-9]*){0,4})$/.exec(item);
    assert.ok(match, `performance data: ${item}`);
    const [, label, value, unit, rest] = match;
    const [, warning = "", critical = "", min = "", max = ""] = rest!.split(";");
    for (const number of [min, max]) assert.match(number, /^(-?\d+(\.\d+)?)?$/);
    return { label: label!, value: Number(value), unit: unit!, warning, critical, min, max };
  });
}

describe("nagios", () => {
  test("CHECK STATUS - Code: text | performance data", () => {
    const of = report([
      checkReport({ metrics: [seconds(0.0312345678), { name: "pods", value: 10, unit: "", min: 0 }] }),
    ]);
    assert.equal(
      text(of, "nagios"),
      "READY OK - Ready: the kubelet serves its inventory of 10 pods, 4 of them static | time=0.031235s;;;0 pods=10;;;0\n",
    );
  });

  test("without a metric no bar", () => {
    assert.equal(text(report([failing("SocketDead")]), "nagios"), "READY CRITICAL - SocketDead: it is so\n");
  });

  test("of several checks each metric has its check's name", () => {
    const of = report([
      checkReport({ metrics: [seconds(0.5)] }),
      checkReport({ check: "static-pods", metrics: [{ name: "unhealthy", value: 0, unit: "", min: 0 }] }),
    ]);
    const [, data] = text(of, "nagios").trimEnd().split(" | ");
    assert.deepEqual(
      parsePerformanceData(data!).map(({ label }) => label),
      ["ready_time", "static_pods_unhealthy"],
    );
  });

  test("ranges stand as they were given, empty fields are empty", () => {
    const metrics: JudgedMetric[] = [
      seconds(1, { warning: "~:0.5", critical: "@10:20" }),
      { name: "b", value: 1, unit: "B", critical: "1:" },
      { name: "c", value: 2, unit: "", min: 0, max: 3 },
      { name: "d", value: 3, unit: "" },
    ];
    assert.equal(
      text(report([checkReport({ metrics })]), "nagios").split(" | ")[1],
      "time=1s;~:0.5;@10:20;0 b=1B;;1: c=2;;;0;3 d=3\n",
    );
  });

  test("a long text is cut before the performance data", () => {
    const of = report([checkReport({ summary: "x".repeat(10_000), metrics: [seconds(1)] })]);
    const line = text(of, "nagios");
    assert.match(line, /x\.\.\. \| time=1s;;;0\n$/);
    // NRPE before version 3 passes on 1024 bytes.
    assert.ok(Buffer.byteLength(line) < 1024);
  });

  test("long text: every finding, details, where values came from, the cost", () => {
    const of = report(
      [
        failing("SocketInsecure", "/s", "mode 0777", [finding("SocketInsecure", { status: "WARNING", subject: "/" })]),
        checkReport({
          check: "static-pods",
          status: "UNKNOWN",
          code: "InventoryUnavailable",
          summary: "not run because of SocketDead",
          skipped: { cause: "SocketDead" },
          findings: [
            finding("InventoryUnavailable", { cause: "SocketDead", message: "not run because of SocketDead" }),
          ],
          details: ["manifests: /m (default)"],
        }),
      ],
      { durationMs: 1500 },
    );
    assert.deepEqual(text(of, "nagios", { verbose: true, origins: ["socket: /s (--socket)"] }).split("\n"), [
      "ALL CRITICAL - SocketInsecure: /s: mode 0777",
      "ready: CRITICAL SocketInsecure: /s: mode 0777",
      "  CRITICAL SocketInsecure /s: mode 0777",
      "  WARNING SocketInsecure /: it is so",
      "static-pods: UNKNOWN, skipped InventoryUnavailable: not run because of SocketDead",
      "  manifests: /m (default)",
      "socket: /s (--socket)",
      "cost: 1 tokens, 1 s, 13371 bytes received",
      "",
    ]);
  });
});

// Case d07: decimal commas, exponents and stray bars in performance data.
describe("performance data", () => {
  const shownAs = (value: number) =>
    text(report([checkReport({ metrics: [seconds(value)] })]), "nagios")
      .split(" | ")[1]!
      .split(/[=s]/)[1];

  const values: readonly (readonly [number, string])[] = [
    [0, "0"],
    [-0, "0"],
    [0.0004, "0.0004"],
    [0.0000004, "0"],
    [0.0000005, "0.000001"],
    [4e-7 + 1, "1"],
    [1e-6, "0.000001"],
    [0.1 + 0.2, "0.3"],
    [1234567.891, "1234567.891"],
    [100, "100"],
    [1e15, "1000000000000000"],
    [67_108_864, "67108864"],
  ];
  for (const [value, shown] of values) test(`${value} is ${shown}`, () => assert.equal(shownAs(value), shown));

  test("no exponent, comma or grouping, whatever the number", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 2 ** 53, noNaN: true }), (value) => {
        const shown = shownAs(value)!;
        assert.match(shown, /^\d+(\.\d{0,5}[1-9])?$/);
        assert.ok(Math.abs(Number(shown) - value) <= 5.1e-7 + value * Number.EPSILON);
      }),
    );
  });

  test("nothing in it goes by the locale", () => {
    const all = [Number.prototype, String.prototype, Date.prototype].flatMap((prototype) =>
      Object.getOwnPropertyNames(prototype)
        .filter((name) => name.startsWith("toLocale") || name === "localeCompare")
        .map((name) => [prototype as unknown as Record<string, unknown>, name] as const),
    );
    const before = all.map(([prototype, name]) => prototype[name]);
    const fail = () => assert.fail("asked for the locale");
    try {
      for (const [prototype, name] of all) prototype[name] = fail;
      const of = report([failing("Initializing"), checkReport({ metrics: [seconds(1234.5)] })]);
      for (const output of outputs) {
        for (const profile of profiles) format(of, output, { profile, exitStatus: 1, verbose: true });
      }
    } finally {
      all.forEach(([prototype, name], at) => {
        prototype[name] = before[at];
      });
    }
  });
});

// Case d07 again, with the program itself and text of the node at its worst.
describe("the same bytes in every locale", () => {
  const runtime = process.versions.deno === undefined ? [] : ["run", "--allow-all", "--no-check"];
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));

  test("of a run", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-"));
    const simulator = await startSimulator({ socket: join(folder, "s.sock"), scenario: "hostile-text" });
    try {
      const words = ["static-pods", "--socket", simulator.socket, "--node-name", "node-1"];
      const printed: string[] = [];
      for (const locale of ["C", "de_DE.UTF-8", "hu_HU", "ar_EG.UTF-8"]) {
        const { stdout, code } = await new Promise<{ stdout: string; code: unknown }>((resolve) => {
          execFile(
            process.execPath,
            [...runtime, main, ...words, "--expect", simulator.expect.join(",")],
            { env: { ...process.env, LC_ALL: locale, LANG: locale, NODE_NO_WARNINGS: "1" } },
            (error, stdout) => resolve({ stdout, code: error?.code }),
          );
        });
        assert.equal(code, 2);
        printed.push(stdout);
      }
      assert.equal(new Set(printed).size, 1);
      const [first, data, ...more] = printed[0]!.split("|");
      assert.deepEqual(more, []);
      assert.match(first!, /^STATIC-PODS CRITICAL - StaticPodFailed: [^\n]+ $/);
      assert.match(data!, /^[^\n]+\n$/);
      assert.equal(parsePerformanceData(data!.trim())[0]!.label, "unhealthy");
    } finally {
      await simulator.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

// Case d05: node-problem-detector cuts the output at 80 bytes, and an event is new when its message differs.
describe("npd", () => {
  const long = `kube-system/${"very-long-name-".repeat(20)}cp-1`;

  test("OK is the code alone", () => {
    assert.equal(text(report([checkReport({ metrics: [seconds(1)] })]), "npd"), "Ready\n");
  });
  test("the code, and what it is about", () => {
    assert.equal(
      text(report([failing("StaticPodMissing", "kube-system/etcd-cp-1", "not listed")]), "npd"),
      "StaticPodMissing: kube-system/etcd-cp-1\n",
    );
    assert.equal(text(report([failing("SocketDead")]), "npd"), "SocketDead: nobody listens on the socket file\n");
  });
  test("others beside it, but not how many", () => {
    const others = ["a", "b"].map((subject) => finding("StaticPodNotReady", { subject }));
    assert.equal(
      text(report([failing("StaticPodMissing", "ns/etcd", "x", others)]), "npd"),
      "StaticPodMissing: ns/etcd and others\n",
    );
    assert.equal(
      text(report([failing("StaticPodMissing", "ns/etcd", "x", others.slice(1))]), "npd"),
      "StaticPodMissing: ns/etcd and others\n",
    );
  });
  test("the cause of InventoryUnavailable", () => {
    const check = checkReport({
      status: "UNKNOWN",
      code: "InventoryUnavailable",
      findings: [finding("InventoryUnavailable", { cause: "SocketNotASocket" })],
    });
    assert.equal(
      text(report([check]), "npd"),
      "InventoryUnavailable: the pods could not be listed (SocketNotASocket)\n",
    );
  });
  test("of the check the verdict is from, not of one that was skipped", () => {
    const skipped = { ...failing("InventoryUnavailable", "no"), skipped: { cause: "Timeout" } as const };
    const of = report([checkReport(), skipped, failing("InventoryUnavailable", "yes")], {
      status: "UNKNOWN",
      code: "InventoryUnavailable",
    });
    assert.equal(text(of, "npd"), "InventoryUnavailable: yes\n");
  });

  for (const code of allCodes) {
    test(`${code}: one ASCII line of at most 80 bytes that begins with the code`, () => {
      for (const subject of ["", "kube-system/etcd-cp-1", long, "日本/\u{1f4a5}", `a\n|\u001b[31m${long}`]) {
        for (const cause of [undefined, "SocketNotASocket"] as const) {
          const check = failing(code, subject, `${long} 4711`, [finding("SocketInsecure", { subject: "/" })]);
          const findings = check.findings.map((each) => ({ ...each, cause }));
          const line = text(report([{ ...check, findings }]), "npd", { verbose: true, origins: ["x"] });
          assert.match(line, new RegExp(`^${code}(: [ -~]+)?\n$`));
          assert.ok(Buffer.byteLength(line.trimEnd()) <= 80, line);
        }
      }
    });

    test(`${code}: the line stays the same while numbers change`, () => {
      const at = (n: number) =>
        text(
          report(
            [
              {
                ...failing(code, "ns/pod", `for ${n} min, ${n} restarts`),
                metrics: [seconds(n, { warning: `${n}` })],
                details: [`${n}`],
                data: { n },
              },
            ],
            { durationMs: n, tokensSpent: n, startedMs: n, summary: `ns/pod: for ${n} min (and ${n} more)` },
          ),
          "npd",
        );
      assert.equal(at(7), at(12_345));
      assert.doesNotMatch(at(7), /7/);
    });
  }
});

describe("kube", () => {
  test("one line, code first", () => {
    assert.equal(
      text(report([failing("SocketDead", "", "Nobody listens on /s")]), "kube", { verbose: true }),
      "SocketDead: Nobody listens on /s\n",
    );
    assert.equal(text(report([checkReport({ summary: "fine", metrics: [seconds(1)] })]), "kube"), "Ready: fine\n");
  });
});

describe("json", () => {
  const json = (of: Report, profile: Profile = "nagios") => {
    const output = format(of, "json", { profile, exitStatus: exitStatus(of, { profile }), verbose: false });
    assert.match(output, /\}\n$/);
    return v.parse(reportSchema, JSON.parse(output));
  };

  test("every code in every profile is of the schema", () => {
    for (const code of allCodes) {
      for (const profile of profiles) {
        const found = json(report([failing(code, "ns/pod"), checkReport({ metrics: [seconds(1 / 3)] })]), profile);
        assert.equal(found.code, code);
        assert.equal(found.exitStatus, exitStatus({ code, status: codes[code].status }, { profile }));
      }
    }
  });

  test("its fields", () => {
    const check = {
      ...failing("InventoryUnavailable"),
      check: "static-pods",
      skipped: { cause: "Timeout" } as const,
      metrics: [seconds(0.12345678, { warning: "1", critical: "2:", max: 10 })],
      data: { pods: [{ name: "a" }] },
    };
    assert.deepEqual(json(report([check])), {
      schema: "kubelet-probe/v1",
      version: "0.1.0",
      profile: "nagios",
      status: "UNKNOWN",
      code: "InventoryUnavailable",
      summary: "it is so",
      exitStatus: 3,
      socket: "/s",
      node: "cp-1",
      startedAt: "2026-01-01T00:00:00.000Z",
      durationMs: 31,
      tokensSpent: 1,
      checks: [
        {
          check: "static-pods",
          status: "UNKNOWN",
          code: "InventoryUnavailable",
          summary: "it is so",
          skipped: { cause: "Timeout" },
          findings: [{ code: "InventoryUnavailable", status: "UNKNOWN", subject: "", message: "it is so" }],
          metrics: [{ name: "time", value: 0.123457, unit: "s", warning: "1", critical: "2:", min: 0, max: 10 }],
          data: { pods: [{ name: "a" }] },
        },
      ],
    });
  });

  test("toJson is what is printed", () => {
    const of = report([failing("Timeout")]);
    assert.deepEqual(
      JSON.parse(JSON.stringify(toJson(of, { profile: "npd", exitStatus: 1, verbose: false }))),
      json(of, "npd"),
    );
  });

  test("a message of a megabyte is cut", () => {
    const found = json(report([failing("ServerError", "", "x".repeat(1_000_000))]));
    assert.equal(found.checks[0]!.findings[0]!.message.length, 1000);
  });
});

describe("text of the node is data", () => {
  const piece = fc.constantFrom(
    ...["|", "\n", "\r", "\0", "'", '"', "`", "=", ";", "\\", " ", "a", "é", "\u001b[2J", "\u009b", "\u202e", "\u2028"],
    ...["\u200b", "\ud800", "\udfff", "\u{1f4a5}", "\u{e0041}", "\u007f", "\t", "%s", "<b>", "$(id)", "\ufeff"],
  );
  const hostile = fc.oneof(
    fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join("")),
    fc.string({ unit: "binary" }),
    piece.map((text) => text.repeat(500)),
  );
  const code = fc.constantFrom(...allCodes);
  const status = fc.constantFrom(...statuses);
  const anyFinding = fc.record({ code, status, subject: hostile, message: hostile }) as fc.Arbitrary<JudgedFinding>;
  const anyMetric = fc.record({
    name: fc.constantFrom("time", "pods"),
    value: fc.double({ min: 0, max: 1e9, noNaN: true }),
    unit: fc.constantFrom<"" | "s" | "B">("", "s", "B"),
    warning: fc.constantFrom(undefined, "10", "~:0.5"),
    min: fc.constantFrom(undefined, 0),
  }) as fc.Arbitrary<JudgedMetric>;
  const anyCheck = fc.record({
    check: fc.constantFrom("ready", "static-pods"),
    status,
    code,
    summary: hostile,
    findings: fc.array(anyFinding, { maxLength: 3 }),
    metrics: fc.array(anyMetric, { maxLength: 3 }),
    details: fc.array(hostile, { maxLength: 2 }),
    data: fc.dictionary(hostile, fc.oneof(hostile, fc.array(hostile))),
  }) as fc.Arbitrary<CheckReport>;
  const anyReport = fc
    .tuple(fc.array(anyCheck, { minLength: 1, maxLength: 3 }), hostile, hostile, hostile)
    .map(([checks, socket, node, summary]) => report(checks, { socket, node, summary }));

  // Typed by code point: controls, line ends, direction, what is not drawn, lone surrogates.
  const unsafe =
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]|[\ud800-\udfff]/u;

  function assertSafe(of: Report, output: Output, profile: Profile, verbose: boolean, origin: string): void {
    const printed = format(of, output, { profile, exitStatus: 1, verbose, origins: [origin] });
    assert.doesNotMatch(printed, unsafe);
    assert.match(printed, /[^\n]\n$/);
    if (output === "json") {
      v.parse(reportSchema, JSON.parse(printed));
      return;
    }
    const lines = printed.slice(0, -1).split("\n");
    const findings = of.checks.reduce((sum, check) => sum + check.findings.length + check.details.length, 0);
    const longText = profile === "nagios" && verbose ? of.checks.length + findings + 2 : 0;
    assert.equal(lines.length, 1 + longText, "no text ends a line");
    if (profile !== "nagios") return;
    const metrics = of.checks.flatMap(({ metrics }) => metrics);
    const [first, data, ...more] = lines[0]!.split("|");
    assert.deepEqual(more, []);
    assert.ok(first!.startsWith(`${of.name.toUpperCase()} ${of.status} - ${of.code}:`));
    if (metrics.length === 0) assert.equal(data, undefined);
    else assert.equal(parsePerformanceData(data!.slice(1)).length, metrics.length);
    // A bar in the long text would start performance data there.
    for (const line of lines.slice(1)) assert.ok(!line.includes("|"), line);
  }

  for (const output of outputs) {
    for (const profile of profiles) {
      test(`${output}, ${profile}`, () => {
        fc.assert(
          fc.property(anyReport, fc.boolean(), hostile, (of, verbose, origin) =>
            assertSafe(of, output, profile, verbose, origin),
          ),
          { numRuns: 100 },
        );
      });
    }
  }

  test("every status is printed as one of the four words", () => {
    for (const each of statuses as readonly Status[]) {
      const of = report([checkReport({ status: each, code: "SocketDead", summary: "x" })]);
      assert.equal(text(of, "nagios"), `READY ${each} - SocketDead: x\n`);
    }
  });
});
