import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as v from "valibot";
import { codes } from "../lib/codes.ts";
import { exitStatus, type Profile, profiles } from "../lib/exit.ts";
import { format, toJson } from "../lib/format.ts";
import type { Report } from "../lib/probe.ts";
import { reportSchema } from "./json_schema.ts";
import { allCodes, checkReport, failing, report, seconds } from "./reports.ts";

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
