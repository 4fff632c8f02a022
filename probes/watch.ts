import { defineCheck } from "../lib/check.ts";
import { duration, flag, option } from "../lib/option.ts";

/** Whether a watch of the pods opens, reaches its first state and holds, and whether it shows what a listing does. */
export const watch = defineCheck({
  name: "watch",
  summary: "does a watch open, sync, hold, and show what a listing does (1 token)",
  okCode: "WatchHealthy",
  onRequest: true,
  metric: { name: "sync", description: "time to the first state in seconds", codes: [] },
  options: {
    hold: option(...duration, {
      value: "DURATION",
      description: "how long it has to hold (default: 5s, at most half of what is left of --timeout)",
    }),
    slow: flag("also stop reading a second watch, and see whether the kubelet drops it once it has fallen behind"),
  },
  misuse: ({ hold }, timeoutMs) =>
    hold !== undefined && hold > timeoutMs * 0.9
      ? `--hold ${hold}ms does not fit into --timeout ${timeoutMs}ms: accepted is at most nine tenths of it`
      : undefined,
  // Only who asks for it loads it: no other check takes this long.
  run: async (context, options) => (await import("../lib/hold.ts")).hold(context, options),
});
