// Asks the kubelet that runs on this node, by its command line, for what a plan would otherwise take a default for.

import { statSync } from "node:fs";
import type { Plan } from "./cli.ts";
import { findKubelet } from "./kubelet_process.ts";
import { defaultRoot, findNodeName, fromKubelet, socketBelow } from "./node.ts";
import { socketPath } from "./socket.ts";

type RunPlan = Extract<Plan, { kind: "run" }>;

/**
 * @param planned A plan that has `defaults`.
 * @param proc Where proc(5) is mounted.
 * @returns The plan with what the kubelet's command line says in place of defaults, and its own line of where that came
 *   from; the plan itself where no kubelet is found, or the plan asks another one than the one that is.
 */
export async function consultKubelet(planned: RunPlan, proc?: string): Promise<RunPlan> {
  const { run, defaults } = planned;
  // Half of the time is left for what was asked.
  const { kubelet, note } = await findKubelet(proc, run.timeoutMs / 2);
  if (kubelet === undefined) {
    return note === undefined ? planned : { ...planned, origins: [...planned.origins, `kubelet: none found, ${note}`] };
  }
  const own = socketBelow(kubelet.rootDir ?? defaultRoot);
  // Who names a socket may speak of another kubelet, of a test say.
  if (!defaults.socket && !isSame(socketPath(run.socket), own)) return planned;
  let { socket, nodeName } = run;
  let { origins } = planned;
  const tell = (what: string, line: string) => {
    origins = origins.map((origin) => (origin.startsWith(`${what}: `) ? `${what}: ${line}` : origin));
  };
  if (defaults.socket && kubelet.rootDir !== undefined) {
    socket = own;
    tell("socket", `${socket} (${fromKubelet("--root-dir", kubelet)})`);
  }
  if (defaults.node && kubelet.hostnameOverride !== undefined) {
    nodeName = findNodeName(kubelet.hostnameOverride, {}).value;
    tell("node", `${nodeName} (${fromKubelet("--hostname-override", kubelet)})`);
  }
  return { ...planned, run: { ...run, socket, nodeName, kubelet }, origins };
}

function isSame(a: string, b: string): boolean {
  if (a === b) return true;
  try {
    const [one, other] = [statSync(a), statSync(b)];
    return one.dev === other.dev && one.ino === other.ino;
  } catch {
    return false;
  }
}
