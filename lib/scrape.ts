// Reads what the kubelet's metrics say of the Pods API, from files in which somebody keeps them or from their URL.

import { constants, type FileHandle, open } from "node:fs/promises";
import { Fault } from "./fault.ts";
import type { MetricsRequest } from "./fetch_metrics.ts";
import { urlMisuse } from "./metrics_url.ts";

/** The counters of one scrape; a kubelet of 1.36 has only the last. */
export interface Scrape {
  /** When the file was last written or the answer began, ms since the epoch. */
  readonly atMs: number;
  /** Calls that the limiter let through. */
  readonly lists: number | undefined;
  readonly gets: number | undefined;
  /** Watches that have ended. */
  readonly watches: number | undefined;
  /** Watchers that were dropped. */
  readonly drops: number | undefined;
}

// The metrics of a kubelet with hundreds of pods have some megabytes.
const maxBytes = 64 << 20;

const counters = {
  lists: "kubelet_pod_requests_list_total",
  gets: "kubelet_pod_requests_get_total",
  watches: "kubelet_pod_requests_watch_total",
  drops: "kubelet_pod_watch_events_dropped_total",
} as const;

/**
 * Reads a file in the text format of Prometheus.
 * @throws Fault BadUsage for one that cannot be read, or has no metric of the Pods API.
 */
export async function readScrape(path: string): Promise<Scrape> {
  let file: FileHandle | undefined;
  try {
    // A FIFO without a writer must not be waited for.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > maxBytes) {
      throw new Fault(
        "BadUsage",
        `Cannot read --metrics ${path}: accepted is a regular file of at most ${maxBytes} bytes`,
      );
    }
    const scrape = { atMs: stats.mtimeMs, ...parseScrape(await file.readFile("utf8")) };
    if (isEmpty(scrape)) throw new Fault("BadUsage", `--metrics ${path} has ${noMetric}`);
    return scrape;
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault("BadUsage", `Cannot read --metrics ${path}: ${(error as NodeJS.ErrnoException).code ?? error}`);
  } finally {
    await file?.close();
  }
}

/** @returns What the URL of a kubelet's metrics says, or in words why it says nothing. */
export async function scrapeUrl(request: MetricsRequest): Promise<Scrape | string> {
  // The command line was asked before; who uses the library was not.
  const misuse = urlMisuse(request.url, request);
  if (misuse !== undefined) return misuse;
  // In the binary a file beside the bundle; scripts/flags.mjs says why.
  const { fetchMetrics } = await import("./fetch_metrics.ts");
  const answer = await fetchMetrics(request);
  if (typeof answer === "string") return answer;
  const scrape = { atMs: answer.atMs, ...parseScrape(answer.text) };
  return isEmpty(scrape) ? `the answer has ${noMetric}` : scrape;
}

const noMetric = `no metric of the Pods API, such as ${counters.lists}`;

function isEmpty({ drops, lists }: Scrape): boolean {
  return drops === undefined && lists === undefined;
}

/** The counters in a text, each the sum over its labels. */
export function parseScrape(text: string): Omit<Scrape, "atMs"> {
  const sum = (name: string) => {
    // Labels may hold spaces and braces in quotes; a timestamp may follow the value.
    const line = new RegExp(`^${name}(?:\\{(?:[^"}]|"(?:[^"\\\\]|\\\\.)*")*\\})?[ \\t]+(\\S+)`, "gm");
    const values = [...text.matchAll(line)].map(([, value]) => Number(value)).filter(Number.isFinite);
    return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0);
  };
  const found = {
    lists: sum(counters.lists),
    gets: sum(counters.gets),
    watches: sum(counters.watches),
    drops: sum(counters.drops),
  };
  // A counter with labels is not there before its first call: with one of its kind there, it is 0.
  if ((found.lists ?? found.gets ?? found.watches) === undefined) return found;
  return { ...found, lists: found.lists ?? 0, gets: found.gets ?? 0, watches: found.watches ?? 0 };
}

/** What went on between two scrapes. */
export interface Rates {
  readonly seconds: number;
  /** Calls a second that were let through; undefined for a kubelet that does not count them. */
  readonly listsPerSecond: number | undefined;
  readonly getsPerSecond: number | undefined;
  /** Watchers that were dropped in the time. */
  readonly drops: number | undefined;
}

/** @returns The rates, or in words why there are none. */
export function ratesBetween(first: Scrape, second: Scrape): Rates | string {
  const seconds = (second.atMs - first.atMs) / 1000;
  if (seconds <= 0) return "no second scrape: the file has not been written since the first";
  const grown = (name: "lists" | "gets" | "watches" | "drops") => {
    const [before, after] = [first[name], second[name]];
    // A kubelet that has counted no call yet does not name its counters.
    return before === undefined && after === undefined ? undefined : (after ?? 0) - (before ?? 0);
  };
  const all = [grown("lists"), grown("gets"), grown("watches"), grown("drops")] as const;
  if (all.some((growth) => growth !== undefined && growth < 0)) {
    return "no rate: a counter went back, so the kubelet was restarted between the scrapes";
  }
  const [lists, gets, , drops] = all;
  return {
    seconds,
    listsPerSecond: lists === undefined ? undefined : lists / seconds,
    getsPerSecond: gets === undefined ? undefined : gets / seconds,
    drops,
  };
}
