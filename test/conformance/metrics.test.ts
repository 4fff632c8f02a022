// What `rate-limit --metrics URL` reads from the registry of the kubelet itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkOf, independentClient, metricOf, needs, probeJson, startKubelet, until } from "../support.ts";

test("the kubelet's metrics count what the probe was let through", { skip: needs.kubelet }, async (t) => {
  const { socket, output } = await startKubelet(t, ["--static", "4", "--metrics", "127.0.0.1:0"]);
  const url = await until("the address of the metrics", () => /^metrics (http:\S+)$/m.exec(output())?.[1]);
  const words = ["rate-limit", "--socket", socket, "--samples", "3", "--interval", "300ms", "--timeout", "20s"];
  const measure = async () => {
    const run = await probeJson([...words, "--metrics", url]);
    assert.equal(run.code, "RateLimitHeadroom", run.ended.stdout);
    assert.equal(metricOf(run, "rate-limit", "watch_drops"), 0);
    const { rates, ratesProblem } = checkOf(run, "rate-limit").data.headroom as {
      rates: { seconds: number; listsPerSecond: number; getsPerSecond: number };
      ratesProblem: string | null;
    };
    assert.equal(ratesProblem, null);
    return [rates.listsPerSecond, rates.getsPerSecond].map((rate) => Math.round(rate * rates.seconds * 1000) / 1000);
  };
  // A kubelet that nobody has called names no counter of calls.
  assert.deepEqual(await measure(), [0, 9]);
  await independentClient(t, socket).listPods({});
  assert.deepEqual(await measure(), [0, 9]);
});
