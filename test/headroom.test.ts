import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createBucket, simulateRun } from "../bench/headroom/model.ts";
import { estimate, sampleTimes, takeSamples } from "../lib/headroom.ts";
import type { Rates } from "../lib/scrape.ts";
import { createLimiter, kubeletLimit } from "../lib/simulator/limiter.ts";
import { inFolder, metricOf, reportOf, runWords, verdict, withSimulator } from "./probes/support.ts";
import { createRandom } from "./soak/soak.ts";

// Bun ends a test after 5 s unless told otherwise.
const slow = { timeout: 60_000 };

test("one burst in each interval, at any moment of it but its end", () => {
  const options = { samples: 100, interval: 400, burst: 3 };
  for (let round = 0; round < 20; round++) {
    const times = sampleTimes(options);
    for (const [index, atMs] of times.entries()) assert.ok(atMs >= index * 400 && atMs <= index * 400 + 250);
  }
  assert.ok(sampleTimes(options, () => 0.999)[0]! > 249);
});

describe("an estimate", () => {
  const all = { admitted: 3, again: undefined };
  const some = { admitted: 1, again: false };
  const none = { admitted: 0, again: true };
  const passing = { admitted: 0, again: false };

  test("tells who makes one call from who makes a burst", () => {
    const { refused, short } = estimate([all, some, none, passing], 3);
    assert.deepEqual([refused.value, short.value], [0.5, 0.75]);
  });

  test("tells the rate from the burst by what one more call met, or by what was admitted", () => {
    assert.equal(estimate([all, all], 3).binding, undefined);
    assert.equal(estimate([all, some, passing, none], 3).binding, "burst");
    assert.equal(estimate([all, some, none, none], 3).binding, "rate");
    const rates = { seconds: 10, listsPerSecond: 9, getsPerSecond: 90, drops: 0 };
    assert.equal(estimate([all, some], 3, rates).binding, "rate");
    assert.equal(estimate([all], 3, rates).binding, undefined);
    // Over a moment the bucket lets more through than comes back.
    assert.equal(estimate([all, some], 3, { ...rates, seconds: 0.2 }).binding, "burst");
    assert.equal(estimate([all, some], 3, { ...rates, listsPerSecond: undefined }).binding, "burst");
  });
});

test("never more tokens than burst times samples: one more call is only made where one was refused", async () => {
  for (const allowed of [0, 1, 2, 3]) {
    const asked: number[] = [];
    let tokens = 0;
    const samples = await takeSamples({ samples: 3, interval: 200, burst: 3 }, async (count) => {
      asked.push(count);
      const admitted = Math.min(count, allowed);
      tokens += admitted;
      return admitted;
    });
    assert.equal(samples.length, 3);
    assert.deepEqual(asked, allowed === 3 ? [3, 3, 3] : [3, 1, 3, 1, 3, 1]);
    assert.ok(tokens <= 9);
  }
});

describe("simulated agents", () => {
  test("the model's bucket is the limiter's", () => {
    const random = createRandom(7);
    let nowMs = 0;
    const allow = createLimiter(kubeletLimit, () => nowMs);
    const bucket = createBucket();
    for (let call = 0; call < 5000; call++) {
      nowMs += random() < 0.5 ? 0 : random() * 20;
      bucket.advance(nowMs);
      assert.equal(bucket.allow(), allow(), `call ${call}`);
    }
    assert.ok(bucket.emptyMs > 0 && bucket.emptyMs < nowMs);
  });

  test("the true share is within the interval in 95 % of 200 runs, of 1 to 10 agents", slow, () => {
    const sampling = { samples: 20, interval: 400, burst: 3 };
    let within = 0;
    for (let run = 0; run < 200; run++) {
      const agents = 1 + (run % 10);
      if (simulateRun(agents, sampling, () => createRandom(run)).isWithin) within++;
    }
    assert.ok(within >= 190, `${within} of 200`);
  });
});

describe("rate-limit --samples", () => {
  test("a free limit: what is refused at most, and what it cost", slow, () =>
    withSimulator("healthy", async (simulator) => {
      const words = ["rate-limit", "--socket", simulator.socket, "--samples", "4", "--interval", "200ms"];
      const report = await runWords(words);
      assert.equal(verdict(report), "OK RateLimitHeadroom");
      assert.deepEqual([report.tokensSpent, simulator.admitted], [12, 12]);
      const check = reportOf(report, "rate-limit");
      assert.deepEqual(
        check.metrics.map(({ name }) => name),
        ["admitted", "rejected", "tokens", "refused_share", "refused_share_low", "refused_share_high"],
      );
      assert.deepEqual([metricOf(check, "admitted"), metricOf(check, "refused_share")], [3, 0]);
      assert.match(report.summary, /^all of 4 bursts of 3 were admitted: a client is refused in at most 60\.2 % of/);
      assert.match(check.details.join("\n"), /this took 12 tokens of the \d+ that came back meanwhile/);
    }),
  );

  test("nothing is let through: CRITICAL, the rate binds, no token", slow, () =>
    withSimulator("rate-limited", async ({ socket }) => {
      const report = await runWords(["rate-limit", "--socket", socket, "--samples", "3", "--interval", "300ms"]);
      assert.equal(verdict(report), "CRITICAL RateLimited");
      assert.equal(report.tokensSpent, 0);
      assert.match(report.summary, /refused in 100 % of the time \(29\.2 % to 100 %\); the rate of 100 a second binds/);
      assert.match(reportOf(report, "rate-limit").details.join("\n"), /should follow a watch, which costs no token/);
    }),
  );

  test("--metrics: two scrapes add the admitted rate and the dropped watchers", () =>
    inFolder((folder) =>
      withSimulator("healthy", async ({ socket }) => {
        const scrape = (name: string, lists: number, gets: number, drops: number) => {
          const path = join(folder, name);
          const labels = '{server_api_version="v1alpha1",status_code="OK"}';
          writeFileSync(
            path,
            `kubelet_pod_requests_list_total${labels} ${lists}\nkubelet_pod_requests_get_total${labels} ${gets}\n` +
              `kubelet_pod_watch_events_dropped_total ${drops}\n`,
          );
          return path;
        };
        const first = scrape("1", 0, 0, 0);
        const { utimesSync } = await import("node:fs");
        utimesSync(first, 100, 100);
        const second = scrape("2", 100, 800, 2);
        utimesSync(second, 110, 110);
        const words = ["rate-limit", "--socket", socket, "--metrics", `${first},${second}`];
        const check = reportOf(await runWords(words), "rate-limit");
        assert.deepEqual([metricOf(check, "limit_share"), metricOf(check, "watch_drops")], [0.9, 2]);
        assert.match(
          check.details.join("\n"),
          /10 lists and 80 gets a second were admitted, 10 % and 80 % of the limit, 3 gets of the probe/,
        );
        const once = reportOf(await runWords([...words.slice(0, -1), first]), "rate-limit");
        assert.equal(metricOf(once, "limit_share"), undefined);
        assert.match(once.details.join("\n"), /no second scrape/);
        assert.equal(verdict(await runWords([...words.slice(0, -1), join(folder, "none")])), "UNKNOWN BadUsage");
      }),
    ));

  /** What `rate-limit` with a URL says, of a server that gives these answers one after the other. */
  async function askedOf(scenario: string, handle: (response: ServerResponse, scrape: number) => void) {
    let scrapes = 0;
    const server = createServer((_, response) => handle(response, ++scrapes));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      return await withSimulator(scenario, async ({ socket }) => {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
        const words = ["rate-limit", "--socket", socket, "--samples", "2", "--interval", "300ms", "--metrics", url];
        const report = await runWords(words);
        return { report, check: reportOf(report, "rate-limit"), scrapes };
      });
    } finally {
      server.close();
      server.closeAllConnections();
    }
  }

  const answer = (response: ServerResponse, text: string, status = 200) =>
    response.writeHead(status, { "content-type": "text/plain" }).end(text);
  const drops = (count: number) => `kubelet_pod_watch_events_dropped_total ${count}\n`;

  test("--metrics URL: scraped before and after, on a kubelet that had counted no call", slow, async () => {
    const gets = 'kubelet_pod_requests_get_total{server_api_version="v1alpha1",status_code="NotFound"} 6\n';
    const { report, check, scrapes } = await askedOf("healthy", (response, scrape) => {
      answer(response, scrape === 1 ? drops(3) : drops(5) + gets);
    });
    assert.equal(verdict(report), "OK RateLimitHeadroom");
    assert.equal(scrapes, 2);
    assert.equal(metricOf(check, "watch_drops"), 2);
    const { rates, ratesProblem } = check.data.headroom as { rates: Rates; ratesProblem: string | null };
    assert.equal(ratesProblem, null);
    assert.ok(Math.abs(rates.getsPerSecond! * rates.seconds - 6) < 1e-9);
    assert.equal(rates.listsPerSecond, 0);
    assert.ok(Math.abs(metricOf(check, "limit_share")! * 100 - rates.getsPerSecond!) < 1e-9);
    assert.match(
      check.details.join("\n"),
      /0 lists and [\d.]+ gets a second .*, 6 gets of the probe among them, 2 watch/,
    );
  });

  test("--metrics URL: whatever becomes of a scrape, the verdict is that of the bursts", slow, async () => {
    for (const [handle, wanted, asked] of [
      [(response) => answer(response, "", 403), /: status 403, .* 'get' on 'nodes\/metrics'$/m, 1],
      [(response) => answer(response, "up 1\n"), /: the answer has no metric of the Pods API, such as kubelet_/, 1],
      [(response) => response.destroy(), /: [A-Z_]+$/m, 1],
      [(response, scrape) => answer(response, drops(0), scrape === 1 ? 200 : 503), /: status 503$/m, 2],
      [(response, scrape) => answer(response, drops(9 - scrape)), /: no rate: a counter went back/, 2],
    ] as readonly (readonly [Parameters<typeof askedOf>[1], RegExp, number])[]) {
      const { report, check, scrapes } = await askedOf("healthy", handle);
      assert.equal(verdict(report), "OK RateLimitHeadroom");
      assert.match(check.details.join("\n"), wanted);
      const { rates, ratesProblem } = check.data.headroom as { rates: null; ratesProblem: string };
      assert.equal(rates, null);
      assert.match(`: ${ratesProblem}`, wanted);
      // The second is not tried where the first came to nothing.
      assert.equal(scrapes, asked);
      assert.equal(metricOf(check, "limit_share"), undefined);
    }
    const { report, check } = await askedOf("rate-limited", (response) => answer(response, "", 500));
    assert.equal(verdict(report), "CRITICAL RateLimited");
    assert.match(check.details.join("\n"), /: status 500$/m);
  });

  test("what would not fit into the deadline, or be a burden, is wrong usage", async () => {
    for (const [words, message] of [
      [["--samples", "101"], /from 1 to 100/],
      [["--burst", "11"], /from 1 to 10/],
      [["--interval", "10ms"], /from 200ms to 1h/],
      [["--samples", "100"], /--samples 100 with --interval 400ms take 40000ms/],
      [["--metrics", "/a,/b,/c"], /at most two/],
      [["--metrics", "https://127.0.0.1:10250/metrics"], /needs --ca-file/],
      [["--token-file", "/t"], /go with --metrics URL/],
      [
        ["--metrics", "http://127.0.0.1:10255/metrics", "--samples", "20"],
        /take 8000ms: accepted is half of --timeout 10000ms/,
      ],
    ] as const) {
      await assert.rejects(runWords(["rate-limit", "--socket", "/nonexistent/s", ...words]), {
        code: "BadUsage",
        message,
      });
    }
  });
});
