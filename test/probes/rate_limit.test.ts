import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodsClient } from "../../lib/client.ts";
import { Fault } from "../../lib/fault.ts";
import { rateLimit } from "../../probes/rate_limit.ts";
import { fakeContext, metricOf, reportOf, runCheck, runWords, verdict, withSimulator } from "./support.ts";

/** A client whose calls answer one after the other as told. */
function clientThat(answers: readonly ("admitted" | Fault)[]): Partial<PodsClient> {
  const rest = [...answers];
  return {
    tokensSpent: 0,
    connect: async () => {},
    get: async () => {
      const answer = rest.shift() ?? "admitted";
      if (answer !== "admitted") throw answer;
      return null;
    },
  };
}

const limited = new Fault("RateLimited", "rejected by rate limit");

describe("rate-limit", () => {
  test("a free limit: every call is admitted, and each costs a token", () =>
    withSimulator("healthy", async (simulator) => {
      const report = await runWords(["rate-limit", "--socket", simulator.socket, "--burst", "5"]);
      assert.equal(verdict(report), "OK RateLimitHeadroom");
      assert.equal(report.tokensSpent, 5);
      assert.equal(simulator.admitted, 5);
      const check = reportOf(report, "rate-limit");
      assert.deepEqual(check.data, { burst: 5, admitted: 5, rejected: 0, rounds: 1 });
      assert.deepEqual([metricOf(check, "admitted"), metricOf(check, "tokens")], [5, 5]);
    }));

  test("nobody gets through: CRITICAL after a second round, and no token was taken", () =>
    withSimulator("rate-limited", async ({ socket }) => {
      const report = await runWords(["rate-limit", "--socket", socket]);
      assert.equal(verdict(report), "CRITICAL RateLimited");
      assert.equal(report.tokensSpent, 0);
      assert.deepEqual(reportOf(report, "rate-limit").data, { burst: 3, admitted: 0, rejected: 3, rounds: 2 });
    }));

  test("some get through: WARNING", () =>
    withSimulator("rate-limited-some", async ({ socket }) => {
      const report = await runWords(["rate-limit", "--socket", socket]);
      assert.equal(verdict(report), "WARNING RateLimited");
      assert.match(report.summary, /^2 of 3 calls made at once were refused/);
    }));

  test("ranges decide in place of the defaults", () =>
    withSimulator("rate-limited-some", async ({ socket }) => {
      const of = async (...words: string[]) => verdict(await runWords(["rate-limit", "--socket", socket, ...words]));
      assert.equal(await of("-w", "1:", "-c", "0:"), "OK RateLimitHeadroom");
    }));

  // An initializing kubelet takes a token for its refusal: the limiter stands before it.
  test("refused for another reason than the limit is let through by it", async () => {
    for (const code of ["Initializing", "ServerError"] as const) {
      const client = clientThat([new Fault(code, "x"), new Fault(code, "x"), new Fault(code, "x")]);
      const { findings, data } = await runCheck(rateLimit, fakeContext({ client }));
      assert.deepEqual([findings, data?.admitted], [[], 3]);
    }
  });

  test("a second round only where the first admits nobody", async () => {
    const none = await runCheck(rateLimit, fakeContext({ client: clientThat([limited, limited, limited]) }));
    assert.deepEqual([none.findings, none.data?.rounds], [[], 2]);
    assert.match(none.details?.join() ?? "", /none of the first 3 calls was admitted/);
    const one = await runCheck(rateLimit, fakeContext({ client: clientThat([limited, "admitted", limited]) }));
    assert.deepEqual([one.data?.rounds, one.data?.rejected], [1, 2]);
  });

  test("any other fault is the check's", async () => {
    const client = clientThat([new Fault("WrongService", "x")]);
    await assert.rejects(runCheck(rateLimit, fakeContext({ client })), { code: "WrongService" });
  });
});
