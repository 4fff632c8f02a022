// The pods of the node for a check that compares them: from a listing, or from the first state of a watch.

import type { Context } from "./check.ts";
import { Fault } from "./fault.ts";
import type { Pod } from "./pod.ts";

// What a second try may get over: a kubelet that has just been restarted, or that dropped a slow reader.
const passing = new Set(["WatchDropped", "ConnectionLost"]);

/**
 * The pods, sorted by UID whichever way they come. A listing costs a token of the rate limit, unless a check of the run
 * made it before; a watch costs none.
 * @throws Fault InventoryUnavailable, with what was in the way as its cause.
 */
export async function inventory(context: Context, source: "list" | "watch"): Promise<readonly Pod[]> {
  try {
    if (source === "list") return (await context.listing()).pods;
    try {
      return await firstState(context);
    } catch (error) {
      if (!(error instanceof Fault) || !passing.has(error.code)) throw error;
      return await firstState(context);
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault("InventoryUnavailable", error.message, { ...error.details, cause: error.code });
  }
}

async function firstState({ client, remainingMs }: Context): Promise<Pod[]> {
  const pods = new Map<string, Pod>();
  for await (const event of client.watch({ timeoutMs: remainingMs() })) {
    if (event.type === "synced") break;
    if (event.type === "deleted") pods.delete(event.pod.uid);
    else pods.set(event.pod.uid, event.pod);
  }
  // As ListPods has them; a watch has them in any order.
  return [...pods.values()].sort((a, b) => (a.uid < b.uid ? -1 : a.uid > b.uid ? 1 : 0));
}
