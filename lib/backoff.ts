// Growing, random pauses between tries, so that the clients of one kubelet do not come back to it in step.

/** How pauses grow. */
export interface BackoffOptions {
  /** The first pause at its longest, in ms. Default 50. */
  readonly firstMs?: number | undefined;
  /** The longest pause, in ms. Default 5000. */
  readonly mostMs?: number | undefined;
}

/** A row of pauses. */
export interface Backoff {
  /** The next pause in ms: between half and all of a length that doubles from one pause to the next up to the longest. */
  next(): number;
  /** Begins anew with the first pause. */
  reset(): void;
}

/** @param random A number from 0 to below 1, Math.random by default. */
export function createBackoff(options: BackoffOptions = {}, random: () => number = Math.random): Backoff {
  const mostMs = options.mostMs ?? 5000;
  const firstMs = Math.min(options.firstMs ?? 50, mostMs);
  let lengthMs = firstMs;
  return {
    next() {
      const pauseMs = lengthMs * (0.5 + random() / 2);
      lengthMs = Math.min(lengthMs * 2, mostMs);
      return pauseMs;
    },
    reset() {
      lengthMs = firstMs;
    },
  };
}

/**
 * Waits.
 * @throws The reason of the signal, at once when it is given.
 */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
