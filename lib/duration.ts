const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** What `parseDuration` accepts, for messages. */
export const durationForm = "a duration such as 900ms, 10s, 1m30s or 1h";

/**
 * Reads a duration as Go writes it, for operators know it from the kubelet's own options: `900ms`, `1.5s`, `1m30s`.
 * @returns ms, or undefined for anything else; a number without a unit is refused, for nobody can tell what it means.
 */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, value, , unit] of text.matchAll(/(\d+(\.\d+)?)(ms|s|m|h)/g)) total += Number(value) * unitMs[unit!]!;
  return total;
}

/**
 * @param ms Not negative.
 * @returns Two units at the most, such as `350 ms`, `12 s`, `5 min 3 s`, `2 h 5 min` or `3 d 4 h`.
 */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(Math.max(1000, ms) / 1000);
  if (seconds < 60) return `${seconds} s`;
  const pair = (big: number, bigUnit: string, small: number, smallUnit: string) =>
    small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, "min", seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, "h", minutes % 60, "min");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}
