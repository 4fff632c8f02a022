// examples/agent.ts and the exec probes of its manifest, as processes.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { parse } from "yaml";
import { baseEnvironment, cleanUp, probe, root } from "./support.ts";

const [container] = parse(readFileSync(join(root, "examples/agent.yaml"), "utf8")).spec.containers;

/** An agent that runs. */
export interface Agent {
  /** What it keeps its counts in. */
  readonly textfile: string;
  stop(signal: NodeJS.Signals): void;
  /** Settles with its exit status. */
  readonly ended: Promise<number | null>;
  /** What it has complained of so far. */
  stderr(): string;
}

/** Starts an agent; it ends with the test. */
export function startAgent(t: TestContext, socket: string, textfile: string): Agent {
  const [, script] = container.command as string[];
  assert.equal(script, "/examples/agent.ts");
  const child = spawn(process.execPath, [join(root, script!), "--socket", socket, "--textfile", textfile], {
    env: { ...baseEnvironment, NODE_NO_WARNINGS: "1" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  cleanUp(t, () => child.kill("SIGKILL"));
  return { textfile, stop: (signal) => void child.kill(signal), ended, stderr: () => stderr };
}

/** What an agent's file says, by metric; nothing where there is none. */
export function readTextfile(path: string): Readonly<Record<string, number>> {
  if (!existsSync(path)) return {};
  const lines = readFileSync(path, "utf8").trim().split("\n");
  return Object.fromEntries(
    lines
      .filter((line) => !line.startsWith("#"))
      .map((line) => line.split(" "))
      .map(([name, value]) => [name, Number(value)]),
  );
}

/** The exit statuses of the manifest's exec probes, run with this socket. */
export async function execProbes(socket: string): Promise<Readonly<Record<string, number | null>>> {
  const statuses: Record<string, number | null> = {};
  for (const purpose of ["startup", "readiness", "liveness"]) {
    const [program, ...args] = container[`${purpose}Probe`].exec.command;
    assert.equal(program, "/kubelet-probe");
    const env = { KUBELET_PROBE_SOCKET: socket, KUBELET_PROBE_TIMEOUT: "20s" };
    statuses[purpose] = (await probe(args, { env })).status;
  }
  return statuses;
}
