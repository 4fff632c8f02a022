// `--output-file`: the only file that a probe writes. Loaded only when asked for.

import { constants } from "node:fs";
import { lstat, open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * Puts a text into a file that readers find whole, old or new, and never half-written.
 * @throws Error One clause that says why there is no new file.
 */
export async function writeOutputFile(path: string, text: string): Promise<void> {
  const before = await lstat(path).catch(unlessMissing);
  // A rename would put a file in the place of a device, say of /dev/null.
  if (before !== undefined && !before.isFile()) throw new Error(`${path} is there and is no regular file`);
  // Not *.prom, which the collector would read half-written.
  const beside = join(dirname(path), `.${basename(path)}.${process.pid}`);
  await unlink(beside).catch(unlessMissing);
  // Whoever owns the folder must not get to choose where the text goes: a link of that name is not followed.
  const file = await open(beside, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644);
  try {
    try {
      await file.writeFile(text);
      // Whatever the umask is: the reader is another user.
      await file.chmod(0o644);
    } finally {
      await file.close();
    }
    await rename(beside, path);
  } catch (error) {
    await unlink(beside).catch(() => {});
    throw error;
  }
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
