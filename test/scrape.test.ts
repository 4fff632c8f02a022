import assert from "node:assert/strict";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseScrape, ratesBetween, readScrape, type Scrape, scrapeUrl } from "../lib/scrape.ts";
import { inFolder } from "./probes/support.ts";

// As the kubelet of 1.37.2 prints them.
const text = `# HELP kubelet_pod_requests_get_total [ALPHA] Number of requests to the PodsAPI Get endpoint.
# TYPE kubelet_pod_requests_get_total counter
kubelet_pod_requests_get_total{server_api_version="v1alpha1",status_code="NotFound"} 7
kubelet_pod_requests_get_total{server_api_version="v1alpha1",status_code="OK"} 1.2e+02
# TYPE kubelet_pod_requests_list_total counter
kubelet_pod_requests_list_total{server_api_version="v1alpha1",status_code="OK"} 40 1764640000000
kubelet_pod_requests_total{server_api_version="v1alpha1",status_code="OK"} 999
kubelet_pod_watch_events_dropped_total 3
kubelet_pod_requests_list_totally{a="}"} 5
`;

describe("a scrape", () => {
  test("has the counters, each the sum over its labels", () => {
    assert.deepEqual(parseScrape(text), { lists: 40, gets: 127, watches: 0, drops: 3 });
  });

  test("of a kubelet of 1.36 has the dropped watchers alone", () => {
    assert.deepEqual(parseScrape("kubelet_pod_watch_events_dropped_total 0\n"), {
      lists: undefined,
      gets: undefined,
      watches: undefined,
      drops: 0,
    });
  });

  test("labels with braces, quotes and spaces, and values that are no numbers", () => {
    const odd = 'kubelet_pod_requests_list_total{a="} 9",b="\\"} 9"} 4\nkubelet_pod_requests_list_total{a="x"} NaN\n';
    assert.equal(parseScrape(odd).lists, 4);
  });

  test("of a file: what it holds and when it was written; anything else is wrong usage", () =>
    inFolder(async (folder) => {
      const path = join(folder, "m.prom");
      writeFileSync(path, text);
      utimesSync(path, 1000, 1000);
      assert.deepEqual(await readScrape(path), { atMs: 1_000_000, lists: 40, gets: 127, watches: 0, drops: 3 });
      writeFileSync(join(folder, "other"), "up 1\n");
      mkdirSync(join(folder, "folder"));
      for (const [name, message] of [
        ["none", /ENOENT/],
        ["folder", /a regular file/],
        ["other", /no metric of the Pods API/],
      ] as const) {
        await assert.rejects(readScrape(join(folder, name)), { code: "BadUsage", message });
      }
    }));
});

test("a URL is not asked where its credentials would go over http, or nothing vouches for it", async () => {
  const about = { nodeName: "node-1", timeoutMs: 20_000 };
  const http = await scrapeUrl({ ...about, url: "http://127.0.0.1:1/metrics", tokenFile: "/nonexistent" });
  assert.match(String(http), /go with https/);
  assert.match(String(await scrapeUrl({ ...about, url: "https://127.0.0.1:1/metrics" })), /needs --ca-file/);
});

describe("rates", () => {
  const scrape = (atMs: number, differs: Partial<Scrape> = {}): Scrape => ({
    atMs,
    lists: 10,
    gets: 20,
    watches: 1,
    drops: 0,
    ...differs,
  });

  test("are what was counted between two scrapes, by the second", () => {
    assert.deepEqual(ratesBetween(scrape(0), scrape(4000, { lists: 50, gets: 220, drops: 2 })), {
      seconds: 4,
      listsPerSecond: 10,
      getsPerSecond: 50,
      drops: 2,
    });
    const old = { lists: undefined, gets: undefined, watches: undefined };
    assert.deepEqual(ratesBetween(scrape(0, old), scrape(1000, old)), {
      seconds: 1,
      listsPerSecond: undefined,
      getsPerSecond: undefined,
      drops: 0,
    });
  });

  test("a counter that was not there yet was at 0", () => {
    const fresh = { lists: undefined, gets: undefined, watches: undefined };
    const rates = ratesBetween(scrape(0, fresh), scrape(2000));
    assert.deepEqual(rates, { seconds: 2, listsPerSecond: 5, getsPerSecond: 10, drops: 0 });
  });

  test("there are none of one scrape, nor over a restart", () => {
    assert.match(String(ratesBetween(scrape(5), scrape(5))), /no second scrape/);
    assert.match(String(ratesBetween(scrape(0), scrape(5, { gets: 1 }))), /was restarted/);
    assert.match(String(ratesBetween(scrape(0), scrape(5, { gets: undefined }))), /was restarted/);
  });
});
