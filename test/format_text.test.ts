import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { profiles } from "../lib/exit.ts";
import { format, outputs } from "../lib/format.ts";
import type { JudgedMetric } from "../lib/probe.ts";
import { allCodes, checkReport, failing, finding, parsePerformanceData, report, seconds, text } from "./reports.ts";

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
