import assert from "node:assert/strict";
import { utimesSync } from "node:fs";
import { describe, test } from "node:test";
import { Fault } from "../../lib/fault.ts";
import { ready } from "../../probes/ready.ts";
import { fakeContext, metricOf, pod, reportOf, runCheck, runWords, verdict, withSimulator } from "./support.ts";

describe("ready", () => {
  test("a healthy node: pods, static ones apart, and one token", () =>
    withSimulator("healthy", async ({ socket }) => {
      const report = await runWords(["ready", "--socket", socket]);
      assert.equal(verdict(report), "OK Ready");
      assert.equal(report.tokensSpent, 1);
      const check = reportOf(report, "ready");
      assert.deepEqual({ ...check.data, bytes: 0 }, { pods: 10, staticPods: 4, bytes: 0, tries: 1 });
      assert.equal(metricOf(check, "pods"), 10);
      assert.equal(metricOf(check, "size"), check.data.bytes);
      assert.equal(check.metrics[0]?.name, "time");
    }));

  // d11 (kubernetes/kubernetes#103587): the static pod itself is what counts, never the mirror pod.
  test("static are pods of a file or a URL, and no others", async () => {
    const pods = [pod("a"), pod("b", { source: "http" }), pod("c", { source: "api" }), pod("d", { source: "" })];
    const { data } = await runCheck(ready, fakeContext({ pods }));
    assert.deepEqual([data?.pods, data?.staticPods], [4, 2]);
  });

  test("no pods is an answer, too", async () => {
    assert.match((await runCheck(ready, fakeContext())).summary, /inventory of 0 pods, 0 of them static/);
  });

  for (const [scenario, expected] of [
    ["initializing", "WARNING Initializing"],
    ["rate-limited", "WARNING RateLimited"],
    ["wrong-service", "UNKNOWN WrongService"],
    ["server-error", "CRITICAL ServerError"],
    ["undecodable", "UNKNOWN Undecodable"],
    ["dead", "CRITICAL SocketDead"],
    ["missing", "CRITICAL SocketMissing"],
    ["not-a-socket", "CRITICAL SocketNotASocket"],
    ["http1", "UNKNOWN NotGrpc"],
  ] as const) {
    test(`${scenario}: ${expected}`, () =>
      withSimulator(scenario, async ({ socket }) => {
        assert.equal(verdict(await runWords(["ready", "--socket", socket])), expected);
      }));
  }

  // c07: the socket file's time is the kubelet's start.
  test("initializing for longer than --init-grace is CRITICAL", () =>
    withSimulator("initializing", async ({ socket }) => {
      const birth = Date.now() / 1000 - 60;
      utimesSync(socket, birth, birth);
      const grace = (text: string) => runWords(["ready", "--socket", socket, "--init-grace", text]);
      assert.equal(verdict(await grace("59s")), "CRITICAL Initializing");
      const young = await grace("1h");
      assert.equal(verdict(young), "WARNING Initializing");
      assert.match(young.summary, /, 1 min( \d+ s)? after its start$/);
    }));
});

describe("ready --wait", () => {
  test("tries again until the kubelet is ready, a token a try", () =>
    withSimulator("late", async ({ socket }) => {
      const report = await runWords(["ready", "--wait", "--socket", socket]);
      assert.equal(verdict(report), "OK Ready");
      const { tries } = reportOf(report, "ready").data;
      assert.ok(Number(tries) > 1);
      assert.equal(report.tokensSpent, tries);
    }));

  test("not for what does not pass by itself", async () => {
    for (const scenario of ["wrong-service", "server-error", "not-a-socket"]) {
      const callsOf = (...words: string[]) =>
        withSimulator(scenario, async (simulator) => {
          const report = await runWords(["ready", "--socket", simulator.socket, ...words]);
          assert.ok(report.status !== "OK");
          return simulator.calls;
        });
      assert.equal(await callsOf("--wait"), await callsOf());
    }
  });

  test("ends with the last fault when there is no time for another try", async () => {
    let tries = 0;
    const context = {
      ...fakeContext(),
      remainingMs: () => 60,
      listing: async () => {
        tries++;
        throw new Fault("Initializing", "not yet");
      },
    };
    await assert.rejects(runCheck(ready, context, "--wait"), { code: "Initializing" });
    // The first pause is of 25 to 50 ms, the second is longer than what is left.
    assert.ok(tries >= 2 && tries <= 3, String(tries));
  });
});
