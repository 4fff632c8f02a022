// What the file system says of the socket, before anything is sent to it.

import { type Stats, statSync } from "node:fs";
import { Fault } from "./fault.ts";
import { refusal } from "./refusal.ts";

/** Linux cuts off or refuses a socket path from 108 bytes on: sun_path holds 108 with its end mark. */
export const maxPathBytes = 107;

/** A socket file that is there. */
export interface SocketFile {
  readonly path: string;
  readonly stats: Stats;
  /** The moment the server began to listen, ms since the epoch: a later chmod does not move it. */
  readonly bornMs: number;
}

/**
 * @param text A path, or a path behind `unix:`, or an absolute one behind `unix://`: the forms gRPC has for a unix
 *   socket.
 * @returns The path.
 */
export function socketPath(text: string): string {
  return text.replace(/^unix:(?:\/\/(?=\/)|(?!\/\/))/, "");
}

/**
 * @throws Fault PathTooLong, SocketMissing, SocketNotASocket or PermissionDenied.
 */
export function inspectSocket(path: string): SocketFile {
  const bytes = Buffer.byteLength(path);
  if (bytes > maxPathBytes) {
    throw new Fault("PathTooLong", `The socket path has ${bytes} bytes, Linux takes ${maxPathBytes}: ${path}`);
  }
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (error) {
    throw refusal(path, error as NodeJS.ErrnoException, "look at");
  }
  if (!stats.isSocket()) {
    throw new Fault("SocketNotASocket", `There is ${kindOf(stats)} where the socket should be: ${path}`);
  }
  return { path, stats, bornMs: stats.mtimeMs };
}

/** "a folder", "a file" or another word for what stands there. */
export function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return "a folder";
  if (stats.isFile()) return "a file";
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isSymbolicLink()) return "a link";
  if (stats.isSocket()) return "a socket";
  return "a device";
}
