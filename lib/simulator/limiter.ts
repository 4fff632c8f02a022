/** How a token bucket is set up, in the words of golang.org/x/time/rate. */
export interface LimiterOptions {
  /** Tokens that come back per second, continuously. */
  readonly rate: number;
  /** The most tokens the bucket holds; it starts full. */
  readonly burst: number;
}

/** The kubelet's bucket for ListPods and GetPod together (pkg/kubelet/server, v1.37). */
export const kubeletLimit: LimiterOptions = { rate: 100, burst: 10 };

/**
 * A token bucket as golang.org/x/time/rate has it: `allow` takes a token or, when there is none, takes nothing.
 *
 * @param now milliseconds on a clock that never goes back
 */
export function createLimiter(options: LimiterOptions, now: () => number = () => performance.now()): () => boolean {
  let tokens = options.burst;
  let last = now();
  return function allow(): boolean {
    const moment = now();
    tokens = Math.min(options.burst, tokens + ((moment - last) * options.rate) / 1000);
    last = moment;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  };
}
