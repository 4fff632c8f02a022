// What the tests of deploy/ share: the files, and the programs that read them.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { cleanUp, root } from "../support.ts";

/** The text of a file below deploy/. */
export function deployed(path: string): string {
  return readFileSync(join(root, "deploy", path), "utf8");
}

// Debian keeps daemons where an ordinary user's PATH does not look.
const folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib/nagios/plugins"];

/** The path of a program of the machine, or undefined. */
export function find(name: string): string | undefined {
  return folders.map((folder) => join(folder, name)).find(existsSync);
}

/** A reason to skip, or false. */
export function needing(name: string, debianPackage: string): string | false {
  return find(name) === undefined ? `needs ${name} (Debian package ${debianPackage})` : false;
}

/** Runs a program of the machine and gives all that it printed. */
export function tool(name: string, args: readonly string[], input = ""): { status: number | null; printed: string } {
  const { status, stdout, stderr, error } = spawnSync(find(name) ?? name, args, {
    cwd: root,
    encoding: "utf8",
    input,
    timeout: 120_000,
  });
  if (error !== undefined) throw error;
  return { status, printed: `${stdout}${stderr}` };
}

/** A port of 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** Starts a daemon in the foreground; it ends with the test. */
export function daemon(t: TestContext, name: string, args: readonly string[]): { output(): string } {
  const child = spawn(find(name)!, args, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const ended = new Promise((resolve) => child.once("close", resolve));
  cleanUp(t, async () => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // Ended meanwhile.
    }
    await ended;
  });
  return { output: () => output };
}
