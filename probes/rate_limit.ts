import { type Context, defineCheck } from "../lib/check.ts";
import { parseDuration } from "../lib/duration.ts";
import { Fault } from "../lib/fault.ts";
import { absolutePath, listOf, option, optionWithDefault, wholeNumber } from "../lib/option.ts";
import { parseRange } from "../lib/range.ts";

// GetPod looks a UID up and copies nothing, so this is the cheapest call that costs a token.
const impossibleUid = "kubelet-probe-no-such-pod";

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
const twoPaths: [typeof parsePaths, string] = [
  (text) => {
    const paths = parsePaths(text);
    return paths !== undefined && paths.length <= 2 ? paths : undefined;
  },
  `${acceptedPaths}, at most two`,
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
    metrics: option(...twoPaths, {
      value: "FILE[,FILE]",
      description:
        "two scrapes of the kubelet's metrics, or one file that is read before and after: adds admitted rates",
    }),
  },
  misuse: ({ samples, interval }, timeoutMs) =>
    samples > 1 && samples * interval > timeoutMs * 0.9
      ? `--samples ${samples} with --interval ${interval}ms take ${samples * interval}ms: accepted is nine tenths of --timeout ${timeoutMs}ms`
      : undefined,
  async run(context, { burst, samples, interval, metrics }) {
    if (samples > 1 || metrics !== undefined) {
      const { headroom } = await import("../lib/headroom.ts");
      return headroom(context, { burst, samples, interval, metrics }, async (count) => {
        const answers = await Promise.all(Array.from({ length: count }, () => isAdmitted(context)));
        return answers.filter(Boolean).length;
      });
    }
    // The limiter is asked as it stands, by calls that come in together.
    await context.client.connect({ timeoutMs: context.remainingMs() });
    const tokensBefore = context.client.tokensSpent;
    let rounds = 0;
    let admitted = 0;
    do {
      if (rounds++ > 0) await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
      const answers = await Promise.all(Array.from({ length: burst }, () => isAdmitted(context)));
      admitted = answers.filter(Boolean).length;
    } while (admitted === 0 && rounds < 2 && context.remainingMs() > retryAfterMs * 2);

    const rejected = burst - admitted;
    const tokens = context.client.tokensSpent - tokensBefore;
    return {
      summary: `all of ${burst} calls made at once were admitted`,
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
