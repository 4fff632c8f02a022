// What strace tells of one run, apart from the measured ones, which it would slow down: how many system calls it makes,
// and how much of its memory is its own.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "./trials.ts";

/** Whether there is a strace that may trace. */
export function canTrace(): boolean {
  return spawnSync("strace", ["-qq", "-o", "/dev/null", "true"]).status === 0;
}

/** The system calls of all its threads. */
export function countSystemCalls({ argv }: Command): number {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-bench-"));
  try {
    const file = join(folder, "calls");
    spawnSync("strace", ["-f", "-c", "-o", file, ...argv], { stdio: "ignore" });
    const total = /^\s*[\d.]+\s+[\d.]+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$/m.exec(readFileSync(file, "utf8"));
    if (total === null) throw new Error(`strace counted nothing of ${argv.join(" ")}`);
    return Number(total[1]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** MiB at the end of a run: its own (RssAnon), and pages of files, which all processes of the same binary share (RssFile). */
export interface Memory {
  readonly ownMiB: number;
  readonly fileMiB: number;
}

/** Holds a run at its end, and reads there what the kernel says of its memory (proc(5), status). */
export async function readMemory({ argv }: Command): Promise<Memory> {
  const held = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=exit_group", "-e", "inject=exit_group:delay_enter=500000"];
  const tracer = spawn("strace", [...held, ...argv], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => tracer.on("exit", resolve));
  // What it prints is the last thing it does.
  await new Promise((resolve) => tracer.stdout.once("data", resolve));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const children = readFileSync(`/proc/${tracer.pid}/task/${tracer.pid}/children`, "utf8");
  const status = readFileSync(`/proc/${children.trim().split(" ")[0]}/status`, "utf8");
  const mebibytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
  const memory = { ownMiB: mebibytes("RssAnon"), fileMiB: mebibytes("RssFile") };
  await ended;
  return memory;
}
