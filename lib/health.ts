// What a pod's status says of its health, in the words an operator looks for.

import { formatDuration } from "./duration.ts";
import type { ContainerStatus, Pod } from "./pod.ts";

/** What is wrong with a pod: it has ended, or it is not ready (yet, or any more). */
export interface Illness {
  readonly kind: "failed" | "notReady";
  /** Why, with container, reason, exit code and restarts where the kubelet tells them. */
  readonly message: string;
  /** Since when, ms since the epoch; null where the kubelet gives no time. */
  readonly sinceMs: number | null;
}

/**
 * @param nowMs ms since the epoch.
 * @returns null for a pod that runs and is ready.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { createPodsClient, illness, isStatic } from "./mod.ts";
 *
 * const client = createPodsClient({ socket: "/var/lib/kubelet/pods-api/pods-api.sock" });
 * const { pods } = await client.list();
 * client.close();
 * const ill = pods.filter(isStatic).flatMap((pod) => illness(pod, Date.now()) ?? []);
 * assert.deepEqual(ill, []);
 * ```
 */
export function illness(pod: Pod, nowMs: number): Illness | null {
  if (pod.phase === "Failed" || pod.phase === "Succeeded") {
    const why = [pod.reason, pod.message].filter(Boolean).join(": ");
    const container = pod.containers.find(({ state }) => state.kind === "terminated" && state.exitCode !== 0);
    const exit = why === "" && container !== undefined ? `, ${describe(container)}` : "";
    return {
      kind: "failed",
      message: `phase ${pod.phase}${why === "" ? "" : `, ${why}`}${exit}`,
      sinceMs: pod.startMs,
    };
  }
  if (pod.deletedMs !== null) {
    return { kind: "notReady", message: "it is being terminated", sinceMs: pod.deletedMs };
  }
  if (pod.ready && pod.phase === "Running") return null;
  // The condition's own time first; a pod that never was ready has the time it was started or taken up.
  const sinceMs = pod.readySinceMs ?? pod.startMs ?? pod.seenMs;
  const age = sinceMs === null ? "" : ` for ${formatDuration(Math.max(0, nowMs - sinceMs))}`;
  const container = blamed(pod.containers);
  const why =
    container !== undefined ? describe(container) : pod.reason || (pod.readyReason === "" ? "" : pod.readyReason);
  const phase = pod.phase === "" ? "no status yet" : pod.phase === "Running" ? "not ready" : `phase ${pod.phase}`;
  return { kind: "notReady", message: `${phase}${age}${why === "" ? "" : `: ${why}`}`, sinceMs };
}

/**
 * The container to look at first: one that waits with an error, then one that has ended, then the init container that the
 * others wait for, then one that is not ready; at last one that goes on beside them (a sidecar).
 */
function blamed(containers: readonly ContainerStatus[]): ContainerStatus | undefined {
  const open = containers.filter(({ ready }) => !ready);
  // They run in their order, but for sidecars, so the last one that runs is the one that is waited for.
  const running = open.findLast(({ init, state }) => init && state.kind === "running");
  const isWaitedFor = open.some(({ init, state }) => !init && state.reason === "PodInitializing");
  const started = ["ContainerCreating", "PodInitializing", ""];
  return (
    open.find(({ state }) => state.kind === "waiting" && !started.includes(state.reason)) ??
    open.find(({ state }) => state.kind === "terminated" && state.exitCode !== 0) ??
    (isWaitedFor ? running : undefined) ??
    open.find(({ init, state }) => !init && state.kind !== "") ??
    open.find(({ init }) => !init) ??
    running
  );
}

function describe({ name, init, state, lastState, restarts }: ContainerStatus): string {
  const parts: string[] = [];
  if (state.kind === "waiting") parts.push(state.reason || "waiting");
  else if (state.kind === "terminated") parts.push(`ended with ${exitOf(state)}`);
  else if (state.kind === "running") {
    parts.push(init ? "running, neither done nor ready" : "running, its readiness probe does not pass");
  } else parts.push("no status yet");
  if (lastState.kind === "terminated") parts.push(`last ended with ${exitOf(lastState)}`);
  if (restarts > 0) parts.push(`${restarts} ${restarts === 1 ? "restart" : "restarts"}`);
  return `container ${name} ${parts.join(", ")}`;
}

function exitOf({ exitCode, signal, reason }: ContainerStatus["state"]): string {
  const how = signal === 0 ? `exit code ${exitCode}` : `signal ${signal}`;
  return reason === "" || reason === "Error" || reason === "Completed" ? how : `${how} (${reason})`;
}
