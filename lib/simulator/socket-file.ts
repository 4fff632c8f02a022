import { randomInt } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync, type Stats, utimesSync, writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { dirname, join } from "node:path";
import { Fault } from "../fault.ts";

/** What Linux takes for a socket path, sun_path without its terminating zero. */
const maxPathBytes = 107;

/** What stands at the path, and how. */
export interface SocketFileOptions {
  /** Permission bits of the socket; the kubelet's are 0755, what umask 022 leaves. */
  readonly mode?: number;
  /** Sets the file's time of birth this many seconds back. */
  readonly ageSeconds?: number;
}

/** A file that the simulator made, and that it removes unless another has taken its place. */
export interface OwnedFile {
  remove(): void;
}

/**
 * Makes room at the path as the kubelet does: removes an old socket and makes the folder, mode 0750. Unlike the
 * kubelet it removes nothing but a socket, since a user names the path.
 */
export function clearPath(path: string): void {
  // The temporary name that `listen` uses first has ten digits.
  const longest = Math.max(Buffer.byteLength(path), Buffer.byteLength(join(dirname(path), "0".repeat(10))));
  if (longest > maxPathBytes) {
    throw new Fault(
      "BadUsage",
      `Cannot serve on ${path}: the path needs ${longest} bytes, at most ${maxPathBytes} fit`,
    );
  }
  const old = lookAt(path);
  if (old !== undefined && !old.isSocket()) {
    throw new Fault(
      "BadUsage",
      `Cannot serve on ${path}: ${kind(old)} is there, accepted is a free path or an old socket`,
    );
  }
  try {
    if (old !== undefined) rmSync(path);
    mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  } catch (error) {
    throw cannotServe(path, error);
  }
}

/** Listens on a temporary name in the same folder and renames it, so that the path never refuses a client. */
export async function listen(server: Server, path: string, options: SocketFileOptions = {}): Promise<OwnedFile> {
  const temporary = join(dirname(path), String(randomInt(1_000_000_000, 9_999_999_999)));
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(temporary, () => {
        server.off("error", reject);
        resolve();
      });
    });
    // Set outright: a umask is the whole process's, and not the simulator's to change.
    chmodSync(temporary, options.mode ?? 0o755);
    if (options.ageSeconds !== undefined) {
      const birth = Date.now() / 1000 - options.ageSeconds;
      utimesSync(temporary, birth, birth);
    }
    renameSync(temporary, path);
  } catch (error) {
    server.close();
    throw cannotServe(path, error);
  }
  return owned(path);
}

/** Puts a regular file where the socket should be. */
export function createRegularFile(path: string): OwnedFile {
  try {
    writeFileSync(path, "", { flag: "wx" });
  } catch (error) {
    throw cannotServe(path, error);
  }
  return owned(path);
}

function owned(path: string): OwnedFile {
  const made = lstatSync(path);
  return {
    remove() {
      const now = lookAt(path);
      // The number of a removed inode is soon used again, the time of birth is not.
      const same = now?.ino === made.ino && now.dev === made.dev && now.mtimeMs === made.mtimeMs;
      if (same) rmSync(path, { force: true });
    },
  };
}

function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw cannotServe(path, error);
  }
}

function kind(stats: Stats): string {
  if (stats.isDirectory()) return "a folder";
  if (stats.isSymbolicLink()) return "a symbolic link";
  return stats.isFile() ? "a regular file" : "a special file";
}

function cannotServe(path: string, error: unknown): Fault {
  return new Fault("BadUsage", `Cannot serve on ${path}: ${error instanceof Error ? error.message : String(error)}`);
}
