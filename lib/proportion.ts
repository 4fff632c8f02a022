// How sure a share is that comes from a few samples.

/** A share from 0 to 1, and the interval that it lies in with the given confidence. */
export interface Share {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The exact interval of Clopper and Pearson (Biometrika 26, 1934): it covers the true share at least as often as it says,
 * for any number of samples and any share, which intervals from a normal distribution do not.
 * @param hits How many of the samples had it, 0 to `samples`.
 * @param samples At least 1.
 * @param confidence Default 0.95.
 */
export function shareOf(hits: number, samples: number, confidence = 0.95): Share {
  const tail = (1 - confidence) / 2;
  return {
    value: hits / samples,
    // The shares for which so many hits, or more, and so many, or fewer, are just not too unlikely.
    low: hits === 0 ? 0 : bisect((share) => 1 - atMost(hits - 1, samples, share) >= tail),
    high: hits === samples ? 1 : bisect((share) => atMost(hits, samples, share) <= tail),
  };
}

/** The chance of at most so many hits. */
function atMost(hits: number, samples: number, share: number): number {
  let sum = 0;
  let logWays = 0;
  for (let count = 0; count <= hits; count++) {
    sum += Math.exp(logWays + count * Math.log(share) + (samples - count) * Math.log1p(-share));
    logWays += Math.log((samples - count) / (count + 1));
  }
  return sum;
}

/** The least share of which `isSo`, which holds from some share on. */
function bisect(isSo: (share: number) => boolean): number {
  let [low, high] = [0, 1];
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2;
    if (isSo(middle)) high = middle;
    else low = middle;
  }
  return (low + high) / 2;
}
