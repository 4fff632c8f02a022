import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatCheckmk } from "../lib/format_checkmk.ts";
import { allCodes, checkReport, failing, finding, parseCheckmk, report, seconds } from "./reports.ts";

test("state, service, metrics, text", () => {
  const metrics = [
    seconds(0.5, { warning: "1", critical: "2" }),
    { name: "pods", value: 10, unit: "" as const, min: 0 },
  ];
  assert.equal(
    formatCheckmk(report([checkReport({ metrics, summary: "fine" })])),
    '0 "Kubelet Pods API ready" time=0.5;1;2;0|pods=10;;;0 Ready: fine\n',
  );
});

test("all checks are one service, whose metrics have their check's name", () => {
  const of = report([
    checkReport({ metrics: [seconds(1)] }),
    checkReport({ check: "rate-limit", metrics: [seconds(2)] }),
  ]);
  const { service, names } = parseCheckmk(formatCheckmk(of));
  assert.equal(service, "Kubelet Pods API");
  assert.deepEqual(names, ["ready_time", "rate_limit_time"]);
});

test("without a metric a minus sign", () => {
  assert.equal(formatCheckmk(report([failing("SocketDead")])), '2 "Kubelet Pods API ready" - SocketDead: it is so\n');
});

describe("the state", () => {
  for (const code of allCodes) {
    test(`of ${code} is that of Nagios`, () => {
      const check = failing(code);
      const { state } = parseCheckmk(formatCheckmk(report([check])));
      assert.equal(state, ["OK", "WARNING", "CRITICAL", "UNKNOWN"].indexOf(check.status));
    });
  }
});

test("every finding has its line in the details; of one the summary says it", () => {
  const skipped = { ...failing("InventoryUnavailable"), skipped: { cause: "Timeout" } as const };
  const of = report([
    failing("StaticPodMissing", "ns/a", "gone", [finding("StaticPodNotReady", { subject: "ns/b" })]),
    skipped,
  ]);
  const { text } = parseCheckmk(formatCheckmk(of));
  assert.equal(
    text,
    "StaticPodMissing: ns/a: gone\\nCRITICAL StaticPodMissing ns/a: gone\\nWARNING StaticPodNotReady ns/b: it is so",
  );
  assert.ok(!parseCheckmk(formatCheckmk(report([failing("SocketDead")]))).text.includes("\\n"));
});

test("levels: what Checkmk has a notation for", () => {
  for (const [range, level] of [
    ["10", "10"],
    ["~:0.5", "0.5"],
    ["2:10", "2:10"],
    ["3:", ""],
    ["@10:20", ""],
    [undefined, ""],
  ] as const) {
    const metrics = [{ name: "a", value: 1, unit: "" as const, min: 0, warning: range }];
    const { metrics: shown } = parseCheckmk(formatCheckmk(report([checkReport({ metrics })])));
    assert.equal(shown, `a=1;${level};;0`);
  }
});

test("a backslash of the node's begins no line of its own", () => {
  const { text } = parseCheckmk(formatCheckmk(report([failing("ServerError", "", "C:\\new|x")])));
  assert.equal(text, "ServerError: C:/new/x");
});
