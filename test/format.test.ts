import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import * as v from "valibot";
import { type Profile, profiles } from "../lib/exit.ts";
import { format, type Output, outputs } from "../lib/format.ts";
import type { CheckReport, JudgedFinding, JudgedMetric, Report } from "../lib/probe.ts";
import { startSimulator } from "../lib/simulator.ts";
import { type Status, statuses } from "../lib/status.ts";
import { reportSchema } from "./json_schema.ts";
import { allCodes, checkReport, parseCheckmk, parseExposition, parsePerformanceData, report, text } from "./reports.ts";

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
    if (output === "prometheus") return void parseExposition(printed);
    if (output === "checkmk") {
      const { metrics, text } = parseCheckmk(printed);
      const count = of.checks.reduce((sum, check) => sum + check.metrics.length, 0);
      assert.equal(metrics === "-" ? 0 : metrics.split("|").length, count);
      assert.doesNotMatch(text, /\||\\(?!n)/);
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
