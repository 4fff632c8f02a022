// The kubelet's own Pods API server with generated pods, for one trial.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dist, peer } from "./trials.ts";

/** The node's name, which is the end of its static pods' names. */
export const nodeName = "cp-1";
export const staticPods = 4;

/** The static pods as `--expect` takes them. */
export const expected: string = Array.from(
  { length: staticPods },
  (_, i) => `kube-system/static-${String(i).padStart(3, "0")}-${nodeName}`,
).join(",");

// A generated pod without padding, in bytes.
const leastPodBytes = 1284;

const running = new Set<ChildProcess>();
const folders = new Set<string>();
process.on("exit", () => {
  for (const server of running) server.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));

/**
 * Serves `pods` pods of about `podBytes` bytes while `work` runs.
 * @throws Error for a server that does not serve.
 */
export async function withServer<T>(pods: number, podBytes: number, work: (socket: string) => T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-bench-"));
  folders.add(folder);
  const socket = join(folder, "pods-api.sock");
  const counts = ["--static", String(staticPods), "--pods", String(pods - staticPods)];
  const pad = ["--pad", String(Math.max(0, podBytes - leastPodBytes))];
  const words = ["--socket", socket, ...counts, ...pad, "--node", nodeName];
  const server = spawn(join(dist, "kubelet-server"), words, { stdio: ["ignore", "ignore", "pipe"] });
  running.add(server);
  let said = "";
  server.stderr.on("data", (chunk) => {
    said = (said + chunk).slice(-4000);
  });
  try {
    for (let tries = 0; ; tries++) {
      if (server.exitCode !== null || tries === 300) throw new Error(`dist/kubelet-server does not serve\n${said}`);
      if (existsSync(socket) && spawnSync(peer, [socket]).status === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return await work(socket);
  } finally {
    server.kill("SIGKILL");
    running.delete(server);
    rmSync(folder, { recursive: true, force: true });
  }
}
