import { type Context, defineCheck } from "../lib/check.ts";
import { parseDuration } from "../lib/duration.ts";
import { Fault } from "../lib/fault.ts";
import { isUrl, urlMisuse } from "../lib/metrics_url.ts";
import { absolutePath, listOf, option, optionWithDefault, wholeNumber } from "../lib/option.ts";
import { impossibleUid } from "../lib/pod.ts";
import { parseRange } from "../lib/range.ts";

// At 100 tokens a second ten are back by then: who is refused still is refused by steady use, not by a passing burst.
const retryAfterMs = 100;

const sampleInterval: [(text: string) => number | undefined, string] = [
  (text) => {
    const ms = parseDuration(text);
    return ms !== undefined && ms >= 200 && ms <= 3_600_000 ? ms : undefined;
  },
  "a duration from 200ms to 1h",
];

const [parsePaths, acceptedPaths] = listOf(absolutePath);
const metricsSource: [typeof parsePaths, string] = [
  (text) => {
    // What is wrong with a URL, `misuse` says without showing it.
    if (isUrl(text)) return [text];
    const paths = parsePaths(text);
    return paths !== undefined && paths.length <= 2 ? paths : undefined;
  },
  `a URL, or ${acceptedPaths}, at most two`,
];

/** How much of the rate limit, which all clients of the kubelet share, is left for one more. */
export const rateLimit = defineCheck({
  name: "rate-limit",
  summary: "how much of the shared rate limit is left for a client (as many tokens as --burst x --samples)",
  okCode: "RateLimitHeadroom",
  metric: {
    name: "admitted",
    description: "calls admitted of a burst, their mean with --samples, by default -w BURST: -c 1:",
    codes: ["RateLimited"],
    defaults: ({ burst }) => ({ warning: parseRange(`${burst}:`), critical: parseRange("1:") }),
  },
  options: {
    burst: optionWithDefault(...wholeNumber(1, 10), {
      value: "N",
      fallback: "3",
      description: "how many calls to make at once, at most 10, the limit's whole burst",
    }),
    samples: optionWithDefault(...wholeNumber(1, 100), {
      value: "N",
      fallback: "1",
      description: "how many such bursts to make, at most 100, to estimate how much of the time a client is refused",
    }),
    interval: optionWithDefault(...sampleInterval, {
      value: "DURATION",
      fallback: "400ms",
      description: "with --samples: one burst in each such stretch of time, at a random moment",
    }),
    metrics: option(...metricsSource, {
      value: "URL|FILE[,FILE]",
      description:
        "the kubelet's metrics, by a URL or a file that are read before and after, or two files: adds admitted rates",
    }),
    tokenFile: option(...absolutePath, {
      value: "PATH",
      description: "with --metrics URL: a bearer token, read at each scrape",
    }),
    caFile: option(...absolutePath, {
      value: "PATH",
      description: "with --metrics URL: the certificates that the kubelet's is signed by",
    }),
    certFile: option(...absolutePath, {
      value: "PATH",
      description: "with --metrics URL: a client certificate",
    }),
    keyFile: option(...absolutePath, {
      value: "PATH",
      description: "with --metrics URL: the key of --cert-file",
    }),
  },
  misuse: ({ samples, interval, metrics, ...credentials }, timeoutMs) => {
    // A URL is asked before and after, by a fifth of the time each.
    const [share, words] = metrics?.some(isUrl) ? [0.5, "half"] : [0.9, "nine tenths"];
    return samples > 1 && samples * interval > timeoutMs * share
      ? `--samples ${samples} with --interval ${interval}ms take ${samples * interval}ms: accepted is ${words} of --timeout ${timeoutMs}ms`
      : urlMisuse(metrics?.[0], credentials);
  },
  async run(context, options) {
    const { burst } = options;
    if (options.samples > 1 || options.metrics !== undefined) {
      const { headroom } = await import("../lib/headroom.ts");
      return headroom(context, options, (count) => countAdmitted(context, count));
    }
    // The limiter is asked as it stands, by calls that come in together.
    await context.client.connect({ timeoutMs: context.remainingMs() });
    const tokensBefore = context.client.tokensSpent;
    let rounds = 0;
    let admitted = 0;
    do {
      if (rounds++ > 0) await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
      admitted = await countAdmitted(context, burst);
    } while (admitted === 0 && rounds < 2 && context.remainingMs() > retryAfterMs * 2);

    const rejected = burst - admitted;
    const tokens = context.client.tokensSpent - tokensBefore;
    return {
      summary: `${rejected === 0 ? "all" : admitted} of ${burst} calls made at once were admitted`,
      findings:
        rejected === 0
          ? []
          : [
              {
                code: "RateLimited",
                subject: "",
                message: `${rejected} of ${burst} calls made at once were refused: other clients use up the limit of 100 a second`,
              },
            ],
      metrics: [
        { name: "admitted", value: admitted, unit: "", min: 0, max: burst },
        { name: "rejected", value: rejected, unit: "", min: 0, max: burst },
        { name: "tokens", value: tokens, unit: "", min: 0 },
      ],
      details:
        rounds > 1 ? [`none of the first ${burst} calls was admitted; asked again after ${retryAfterMs} ms`] : [],
      data: { burst, admitted, rejected, rounds },
    };
  },
});

/** How many of so many calls made at once the limiter lets through. */
async function countAdmitted(context: Context, count: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: count }, () => isAdmitted(context)));
  return answers.filter(Boolean).length;
}

/** Whether the limiter let a call through, whatever was answered behind it. */
async function isAdmitted({ client, remainingMs }: Context): Promise<boolean> {
  try {
    await client.get(impossibleUid, { timeoutMs: remainingMs() });
    return true;
  } catch (error) {
    if (error instanceof Fault && error.code === "RateLimited") return false;
    if (error instanceof Fault && (error.code === "Initializing" || error.code === "ServerError")) return true;
    throw error;
  }
}
