// One commit gives the same bytes wherever it is packed: times are the commit's, modes a package's, orders sorted.
import { createHash } from "node:crypto";
import { chmodSync, lutimesSync, readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { run } from "../tools.mjs";

/** The commit's time in seconds, or that of SOURCE_DATE_EPOCH, as reproducible-builds.org has it. */
export const seconds = commitSeconds();

function commitSeconds() {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  const head = run("git", ["show", "--no-patch", "--format=%ct", "HEAD"]);
  // 2026-01-01, for an archive without a history.
  return head.failed === undefined ? Number(head.stdout.trim()) : 1_767_225_600;
}

/** Modes and times as a package has them, whatever the umask and the checkout gave. */
export function normalize(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) lutimesSync(path, seconds, seconds);
    else {
      if (entry.isDirectory()) normalize(path);
      chmodSync(path, entry.isDirectory() || (statSync(path).mode & 0o111) !== 0 ? 0o755 : 0o644);
      utimesSync(path, seconds, seconds);
    }
  }
  chmodSync(folder, 0o755);
  utimesSync(folder, seconds, seconds);
}

/** Every file below a folder, links left out, in one order. */
export function filesBelow(folder) {
  return entriesBelow(folder)
    .filter(({ entry }) => entry.isFile())
    .map(({ path }) => path);
}

/** Every folder, file and link below a folder, in one order: `path`, and `entry` as readdir has it. */
export function entriesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return [{ path, entry }, ...(entry.isDirectory() ? entriesBelow(path) : [])];
    });
}

/** A checksum in hexadecimal. */
export function digest(bytes, algorithm = "sha256") {
  return createHash(algorithm).update(bytes).digest("hex");
}
