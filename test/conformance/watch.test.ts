// The check `watch` against the kubelet's own server.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkOf, metricOf, needs, probeJson, startKubelet } from "../support.ts";

describe("watch", { skip: needs.kubelet }, () => {
  test("a busy kubelet, whose pods come and go: never WatchDiverged", async (t) => {
    const { socket } = await startKubelet(t, ["--pods", "200", "--static", "4", "--mirrors", "--churn", "1ms"]);
    for (let run = 0; run < 5; run++) {
      const report = await probeJson(["watch", "--socket", socket, "--hold", "300ms"]);
      assert.deepEqual([report.code, report.ended.status], ["WatchHealthy", 0], report.ended.stdout);
      assert.ok(metricOf(report, "watch", "events")! > 0);
    }
  });

  test("pods that have ended and are listed still, and pods without a status", async (t) => {
    const { socket } = await startKubelet(t, ["--pods", "20", "--phase", "Succeeded", "--no-status"]);
    const report = await probeJson(["watch", "--socket", socket, "--hold", "100ms"]);
    assert.equal(report.code, "WatchHealthy", report.ended.stdout);
    assert.equal(checkOf(report, "watch").data.listed, 20);
  });

  // The kubelet holds 100 events for a watcher, gRPC some 64 KiB on either side.
  test("--slow: a watch that is not read is dropped, and the client sees it", async (t) => {
    const { socket } = await startKubelet(t, ["--pods", "10", "--flip", "2ms"]);
    const report = await probeJson(["watch", "--socket", socket, "--slow", "--hold", "8s", "--timeout", "30s"]);
    assert.equal(report.code, "WatchHealthy", report.ended.stdout);
    const { slow } = checkOf(report, "watch").data as { slow: { dropped: boolean; events: number } };
    assert.equal(slow.dropped, true, report.ended.stdout);
    assert.ok(slow.events > 100);
  });

  test("--slow on a quiet node: too few events for a drop", async (t) => {
    const { socket } = await startKubelet(t, ["--pods", "10"]);
    const report = await probeJson(["watch", "--socket", socket, "--slow", "--hold", "100ms"]);
    assert.deepEqual(checkOf(report, "watch").data.slow, { dropped: false, events: 0 });
    assert.equal(report.ended.status, 0);
  });

  test("a kubelet that ends while it is watched", async (t) => {
    const kubelet = await startKubelet(t, ["--pods", "10", "--flip", "10ms"]);
    const running = probeJson(["watch", "--socket", kubelet.socket, "--hold", "8s", "--timeout", "20s"]);
    // Nothing outside tells that it is open; one that is not yet meets the same end.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await kubelet.stop("SIGTERM");
    const report = await running;
    assert.ok(["SocketMissing", "SocketDead"].includes(report.code), report.ended.stdout);
    assert.equal(report.ended.status, 2);
  });
});
