// Waits for a kubelet that comes up.

import { type BackoffOptions, createBackoff, pause } from "./backoff.ts";
import type { PodsClient } from "./client.ts";
import type { Code } from "./codes.ts";
import { Fault } from "./fault.ts";
import { impossibleUid } from "./pod.ts";

/** What passes by itself: a kubelet that starts, restarts or is busy. Anything else stays wrong however long one waits. */
export const passingCodes: ReadonlySet<Code> = new Set<Code>([
  "SocketMissing",
  "SocketDead",
  "Initializing",
  "RateLimited",
  "WatchDropped",
  "ConnectionLost",
  "Timeout",
  "ServerError",
]);

/** How to wait. */
export interface WaitOptions extends BackoffOptions {
  /** Told of each try that failed, and after how many ms the next one is made. */
  readonly onFault?: ((fault: Fault, nextMs: number) => void) | undefined;
}

/** `PodsClient.waitUntilReady`. */
export async function waitUntilReady(
  client: Pick<PodsClient, "get">,
  signal: AbortSignal | undefined,
  options: WaitOptions,
): Promise<number> {
  const backoff = createBackoff(options);
  for (let tries = 1; ; tries++) {
    try {
      await client.get(impossibleUid, { signal });
      return tries;
    } catch (error) {
      if (!(error instanceof Fault) || !passingCodes.has(error.code)) throw error;
      const nextMs = backoff.next();
      options.onFault?.(error, nextMs);
      await pause(nextMs, signal);
    }
  }
}
