// The command `install`: the binary copies itself, for images without a shell and a `cp`. Loaded only when asked for.

import { copyFile, lstat, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault } from "./fault.ts";
import { plain } from "./plain.ts";

/**
 * @param words The path to copy to: an absolute one, whose folder is there.
 * @param binary The path of the running binary; undefined where the program runs from its sources.
 * @throws Fault BadUsage; whatever else keeps the file from being written
 */
export async function install(words: readonly string[], binary: string | undefined): Promise<string> {
  const [path = "", ...more] = words;
  if (!path.startsWith("/") || path.endsWith("/") || more.length > 0) {
    throw new Fault(
      "BadUsage",
      `Cannot install to "${plain(words.join(" "), 100)}": accepted is one absolute path of a file`,
    );
  }
  if (binary === undefined) throw new Fault("BadUsage", "Cannot install: this runs from its sources, and is no binary");
  const before = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (before !== undefined && !before.isFile()) {
    throw new Fault("BadUsage", `Cannot install to "${plain(path, 100)}": it is there and is no regular file`);
  }
  // Whoever starts it meanwhile gets the old one or the new one. A copy has the mode of what is copied: 0755.
  const beside = join(dirname(path), `.${basename(path)}.${process.pid}`);
  try {
    await copyFile(binary, beside);
    await rename(beside, path);
  } catch (error) {
    await unlink(beside).catch(() => {});
    throw error;
  }
  return `installed ${plain(path, 400)}\n`;
}
