import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatPrometheus } from "../lib/format_prometheus.ts";
import type { CheckReport } from "../lib/probe.ts";
import { allCodes, checkReport, failing, finding, parseExposition, report, type Series, seconds } from "./reports.ts";

const skipped: CheckReport = {
  ...failing("InventoryUnavailable", "", "not run because of SocketDead"),
  check: "static-pods",
  skipped: { cause: "SocketDead" },
};

function seriesOf(text: string, name: string) {
  return parseExposition(text)
    .filter((series) => series.name === `kubelet_probe_${name}`)
    .map(({ labels, value }): { value: number; [label: string]: string | number } => ({ ...labels, value }));
}

test("a run that found nothing", () => {
  const metrics = [
    seconds(0.25),
    { name: "size", value: 13_371, unit: "B" as const },
    { name: "pods", value: 10, unit: "" as const },
  ];
  assert.equal(
    formatPrometheus(report([checkReport({ metrics })])),
    `# HELP kubelet_probe_info Which kubelet-probe ran, and what it asked.
# TYPE kubelet_probe_info gauge
kubelet_probe_info{run="ready",version="0.1.0",node="cp-1",socket="/s"} 1
# HELP kubelet_probe_ok Whether the verdict of the run is OK.
# TYPE kubelet_probe_ok gauge
kubelet_probe_ok{run="ready"} 1
# HELP kubelet_probe_status The verdict of the run, as labels.
# TYPE kubelet_probe_status gauge
kubelet_probe_status{run="ready",status="OK",code="Ready"} 1
# HELP kubelet_probe_check_ok Whether the verdict of the check is OK.
# TYPE kubelet_probe_check_ok gauge
kubelet_probe_check_ok{run="ready",check="ready"} 1
# HELP kubelet_probe_check_status The verdict of the check, as labels.
# TYPE kubelet_probe_check_status gauge
kubelet_probe_check_status{run="ready",check="ready",status="OK",code="Ready"} 1
# HELP kubelet_probe_ready_time_seconds The metric time of the check ready.
# TYPE kubelet_probe_ready_time_seconds gauge
kubelet_probe_ready_time_seconds{run="ready"} 0.25
# HELP kubelet_probe_ready_size_bytes The metric size of the check ready.
# TYPE kubelet_probe_ready_size_bytes gauge
kubelet_probe_ready_size_bytes{run="ready"} 13371
# HELP kubelet_probe_ready_pods The metric pods of the check ready.
# TYPE kubelet_probe_ready_pods gauge
kubelet_probe_ready_pods{run="ready"} 10
# HELP kubelet_probe_last_run_timestamp_seconds When the run started.
# TYPE kubelet_probe_last_run_timestamp_seconds gauge
kubelet_probe_last_run_timestamp_seconds{run="ready"} 1767225600
# HELP kubelet_probe_run_duration_seconds How long the run took.
# TYPE kubelet_probe_run_duration_seconds gauge
kubelet_probe_run_duration_seconds{run="ready"} 0.0306
# HELP kubelet_probe_run_tokens Calls of the run that count on the rate limit of the kubelet.
# TYPE kubelet_probe_run_tokens gauge
kubelet_probe_run_tokens{run="ready"} 1
# HELP kubelet_probe_run_received_bytes Bytes the run received from the kubelet.
# TYPE kubelet_probe_run_received_bytes gauge
kubelet_probe_run_received_bytes{run="ready"} 13371
`,
  );
});

describe("the verdict", () => {
  for (const code of allCodes) {
    test(`${code} is a label, and OK or not a value`, () => {
      const text = formatPrometheus(report([failing(code, "ns/pod")]));
      const [status] = seriesOf(text, "status");
      assert.equal(status?.code, code);
      const [ok] = seriesOf(text, "ok");
      assert.equal(ok?.value, status?.status === "OK" ? 1 : 0);
      assert.deepEqual(seriesOf(text, "check_ok"), [{ run: "ready", check: "ready", value: ok?.value }]);
    });
  }

  test("a check that was skipped is neither well nor ill: the one that met the fault says it", () => {
    const text = formatPrometheus(report([failing("SocketDead"), skipped]));
    assert.deepEqual(seriesOf(text, "check_skipped"), [
      { run: "all", check: "static-pods", cause: "SocketDead", value: 1 },
    ]);
    assert.deepEqual(
      seriesOf(text, "check_ok").map(({ check }) => check),
      ["ready"],
    );
    assert.ok(!text.includes("InventoryUnavailable"));
  });

  test("findings are counted by code and status, and name no pod", () => {
    const more = ["ns/a", "ns/b"].map((subject) => finding("StaticPodNotReady", { subject }));
    const text = formatPrometheus(report([failing("StaticPodMissing", "ns/c", "x", more)]));
    assert.deepEqual(
      seriesOf(text, "findings").map(({ code, value }) => [code, value]),
      [
        ["StaticPodMissing", 1],
        ["StaticPodNotReady", 2],
      ],
    );
    assert.ok(!text.includes("ns/"));
  });
});

test("two runs of one node share no series: the collector refuses a file beside one that has it as well", () => {
  const one = parseExposition(formatPrometheus(report([checkReport()])));
  const all = parseExposition(formatPrometheus(report([checkReport(), skipped])));
  const identity = ({ name, labels: { run } }: (typeof one)[number]) => `${name} ${run}`;
  const shared = new Set(one.map(identity));
  assert.deepEqual(
    all.map(identity).filter((each) => shared.has(each)),
    [],
  );
});

test("text of the node in a label is escaped, plain and cut", () => {
  const of = report([checkReport()], { node: 'a"b\\c\nd\u001b[31m', socket: `/${"x".repeat(5000)}` });
  const [{ labels }] = parseExposition(formatPrometheus(of)) as [Series];
  assert.equal(labels.node, 'a"b\\c d [31m');
  assert.equal(labels.socket?.length, 256);
});
