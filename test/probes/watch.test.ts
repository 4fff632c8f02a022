import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { watch } from "../../probes/watch.ts";
import { findingsOf, metricOf, reportOf, runWords, verdict, withSimulator } from "./support.ts";

describe("watch", () => {
  test("it is not run by all unless it is named", () =>
    withSimulator("healthy", async ({ socket, expect }) => {
      const words = ["all", "--socket", socket, "--expect", expect.join(",")];
      assert.ok(!(await runWords(words)).checks.some(({ check }) => check === "watch"));
      const named = await runWords([...words, "--checks", "ready,watch", "--hold", "10ms"]);
      assert.deepEqual(
        named.checks.map(({ check }) => check),
        ["ready", "watch"],
      );
      assert.equal(named.tokensSpent, 2);
    }));

  test("a healthy kubelet: one token, and its metrics in order", () =>
    withSimulator("healthy", async (simulator) => {
      const report = await runWords(["watch", "--socket", simulator.socket, "--hold", "10ms"]);
      assert.equal(verdict(report), "OK WatchHealthy");
      assert.equal(report.tokensSpent, 1);
      assert.equal(simulator.admitted, 1);
      const check = reportOf(report, "watch");
      assert.deepEqual(
        check.metrics.map(({ name, unit }) => `${name}${unit}`),
        ["syncs", "pods", "events"],
      );
      assert.equal(metricOf(check, "pods"), 10);
      assert.equal(metricOf(check, "events"), 0);
      assert.equal(check.data.listed, 10);
    }));

  test("ranges speak of the time to the first state", () =>
    withSimulator("healthy", async ({ socket }) => {
      const report = await runWords(["watch", "--socket", socket, "--hold", "10ms", "-w", "@0:"]);
      assert.equal(verdict(report), "WARNING ThresholdExceeded");
    }));

  test("dropped after its first state, twice: WatchDropped, and what was seen of it", () =>
    withSimulator("watch-dropped", async ({ socket }) => {
      const check = reportOf(await runWords(["watch", "--socket", socket]), "watch");
      assert.equal(verdict(check), "WARNING WatchDropped");
      assert.equal(metricOf(check, "pods"), 10);
      assert.equal(check.data.reconnects, 1);
      assert.match(check.details.join(), /opened again \d+ ms after the first watch: WatchDropped/);
    }));

  test("dropped once: healthy, and said with -v", () =>
    withSimulator("watch-dropped-once", async ({ socket }) => {
      const check = reportOf(await runWords(["watch", "--socket", socket, "--hold", "10ms"]), "watch");
      assert.equal(verdict(check), "OK WatchHealthy");
      assert.equal(check.data.reconnects, 1);
    }));

  test("events are counted, those that repeat the first state too", () =>
    withSimulator("watch-churn", async ({ socket }) => {
      const check = reportOf(await runWords(["watch", "--socket", socket, "--hold", "300ms"]), "watch");
      assert.equal(verdict(check), "OK WatchHealthy");
      assert.ok(metricOf(check, "events")! > 0);
    }));

  test("a pod that each listing has and no watch: WatchDiverged by name, at a second token", () =>
    withSimulator("watch-diverged", async ({ socket }) => {
      const report = await runWords(["watch", "--socket", socket, "--hold", "10ms"]);
      assert.equal(verdict(report), "CRITICAL WatchDiverged");
      assert.equal(report.tokensSpent, 2);
      const findings = findingsOf(reportOf(report, "watch"));
      assert.equal(findings.length, 1);
      assert.match(findings[0]!, /^CRITICAL WatchDiverged [\w-]+\/[\w-]+$/);
    }));

  test("a kubelet that is not ready, or not there", async () => {
    for (const [scenario, expected] of [
      ["initializing", "WARNING Initializing"],
      ["dead", "CRITICAL SocketDead"],
      ["wrong-service", "UNKNOWN WrongService"],
    ] as const) {
      await withSimulator(scenario, async ({ socket }) => {
        assert.equal(verdict(await runWords(["watch", "--socket", socket])), expected);
      });
    }
  });

  test("one that cannot hold for as long within the deadline is wrong usage", async () => {
    await assert.rejects(runWords(["watch", "--socket", "/nonexistent/s", "--hold", "10s"]), {
      code: "BadUsage",
      message: /--hold 10000ms does not fit into --timeout 10000ms/,
    });
    assert.equal(watch.misuse?.({ hold: undefined, slow: false } as never, 900), undefined);
  });
});
