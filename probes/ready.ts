import { defineCheck } from "../lib/check.ts";
import { Fault } from "../lib/fault.ts";
import { duration, flag, oneOf, option, optionWithDefault } from "../lib/option.ts";
import { isStatic } from "../lib/pod.ts";

// What a kubelet that is coming up does, and what passes by itself; anything else stays wrong however long one waits.
const passing = new Set(["SocketMissing", "SocketDead", "Initializing", "RateLimited", "ConnectionLost"]);

/** Whether the kubelet serves the inventory of its node. */
export const ready = defineCheck({
  name: "ready",
  summary: "does the API serve the local inventory (1 token of the rate limit)",
  okCode: "Ready",
  metric: { name: "time", description: "time to the answer in seconds", codes: [] },
  options: {
    wait: flag("try again until it is ready or the deadline is near, with growing pauses (1 token a try)"),
    for: option(...oneOf("startup", "readiness", "liveness"), {
      value: "startup|readiness|liveness",
      alone: true,
      description: "with --profile kube: which probe of a container asks",
    }),
    initGrace: optionWithDefault(...duration, {
      value: "DURATION",
      fallback: "5m",
      description: "how long the kubelet may be initializing before that is CRITICAL",
    }),
  },
  async run(context, options) {
    const startMs = performance.now();
    let tries = 0;
    let pauseMs = 50;
    for (;;) {
      tries++;
      try {
        const { pods, bytes } = await context.listing({ again: tries > 1 });
        const seconds = (performance.now() - startMs) / 1000;
        const statics = pods.filter(isStatic).length;
        return {
          summary: `the kubelet serves its inventory of ${pods.length} pods, ${statics} of them static`,
          findings: [],
          metrics: [
            { name: "time", value: seconds, unit: "s", min: 0 },
            { name: "pods", value: pods.length, unit: "", min: 0 },
            { name: "size", value: bytes, unit: "B", min: 0 },
          ],
          details: tries > 1 ? [`ready at try ${tries}`] : [],
          data: { pods: pods.length, staticPods: statics, bytes, tries },
        };
      } catch (error) {
        if (!options.wait || !(error instanceof Fault) || !passing.has(error.code)) throw error;
        // Between half and all of the pause, so that several probes of one node do not try in step.
        const nextMs = pauseMs * (0.5 + Math.random() / 2);
        if (nextMs >= context.remainingMs()) throw error;
        await new Promise((resolve) => setTimeout(resolve, nextMs));
        pauseMs = Math.min(pauseMs * 2, 2000);
      }
    }
  },
});
