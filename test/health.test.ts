import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { illness } from "../lib/health.ts";
import type { ContainerState, ContainerStatus, Pod } from "../lib/pod.ts";

const nowMs = Date.parse("2026-01-01T12:00:00Z");
const minute = 60_000;

const noState: ContainerState = { kind: "", reason: "", message: "", exitCode: 0, signal: 0 };

/** A pod that runs and is ready, with what differs. */
function pod(differs: Partial<Pod> = {}): Pod {
  return {
    namespace: "kube-system",
    name: "etcd-cp-1",
    uid: "u",
    source: "file",
    seenMs: nowMs - 90 * minute,
    deletedMs: null,
    nodeName: "cp-1",
    images: [],
    phase: "Running",
    reason: "",
    message: "",
    startMs: nowMs - 80 * minute,
    ready: true,
    readySinceMs: nowMs - 10 * minute,
    readyReason: "",
    containers: [],
    ...differs,
  };
}

function container(differs: Partial<ContainerStatus> = {}): ContainerStatus {
  return { name: "etcd", init: false, ready: false, restarts: 0, state: noState, lastState: noState, ...differs };
}

const waiting = (reason: string): ContainerState => ({ ...noState, kind: "waiting", reason });
const running: ContainerState = { ...noState, kind: "running" };
const ended = (exitCode: number, reason = "Error", signal = 0): ContainerState => ({
  ...noState,
  kind: "terminated",
  exitCode,
  reason,
  signal,
});

/** The pods of a public case, as far as its file describes them. */
function casePods(name: string): Pod[] {
  const text = readFileSync(new URL(`cases/${name}/pods.json`, import.meta.url), "utf8");
  interface CasePod {
    readonly name: string;
    readonly status: {
      readonly phase: string;
      readonly reason: string;
      readonly conditions: readonly { readonly type: string; readonly status: string }[];
      readonly containerStatuses: readonly { name: string; state: { waiting: { reason: string } } }[];
    };
  }
  return (JSON.parse(text) as CasePod[]).map(({ name: full, status }) =>
    pod({
      name: full,
      phase: status.phase,
      reason: status.reason,
      ready: status.conditions.some(({ type, status: is }) => type === "Ready" && is === "True"),
      seenMs: null,
      startMs: null,
      readySinceMs: null,
      containers: status.containerStatuses.map((found) =>
        container({ name: found.name, state: waiting(found.state.waiting.reason) }),
      ),
    }),
  );
}

describe("a pod that is well", () => {
  test("runs and is ready", () => assert.equal(illness(pod(), nowMs), null));

  test("may have an init container that is done, and one that goes on running", () => {
    const containers = [
      container({ ready: true, state: running }),
      container({ name: "setup", init: true, ready: true, state: ended(0, "Completed") }),
      container({ name: "sidecar", init: true, ready: false, state: running }),
    ];
    assert.equal(illness(pod({ containers }), nowMs), null);
  });
});

describe("a pod that has ended", () => {
  // kubernetes/kubernetes#76598: an evicted static pod stays listed.
  test("case d01: evicted", () => {
    const [etcd, scheduler] = casePods("d01");
    assert.deepEqual(illness(etcd!, nowMs), { kind: "failed", message: "phase Failed, Evicted", sinceMs: null });
    assert.equal(illness(scheduler!, nowMs), null);
  });

  test("says why, in the kubelet's own words", () => {
    const ill = illness(
      pod({ phase: "Failed", ready: false, reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" }),
      nowMs,
    );
    assert.equal(ill?.message, "phase Failed, OutOfcpu: Node didn't have enough resource: cpu");
  });

  test("without a reason: how its container ended", () => {
    const containers = [
      container({ name: "done", state: ended(0, "Completed") }),
      container({ state: ended(137, "OOMKilled"), restarts: 1 }),
    ];
    const ill = illness(pod({ phase: "Failed", ready: false, containers }), nowMs);
    assert.deepEqual(
      [ill?.kind, ill?.message],
      ["failed", "phase Failed, container etcd ended with exit code 137 (OOMKilled), 1 restart"],
    );
  });

  test("Succeeded is no success of a static pod", () => {
    const containers = [container({ state: ended(0, "Completed") })];
    const ill = illness(pod({ phase: "Succeeded", ready: false, containers }), nowMs);
    assert.deepEqual([ill?.kind, ill?.message], ["failed", "phase Succeeded"]);
  });

  test("has ended, also while it is being deleted", () => {
    assert.equal(illness(pod({ phase: "Failed", deletedMs: nowMs }), nowMs)?.kind, "failed");
  });
});

describe("a pod that is not ready", () => {
  // kubernetes/kubernetes#71134, rancher/rke2#4864 and #4775.
  test("case d03: pending, and a crash loop, both of them present", () => {
    const [proxy, apiserver] = casePods("d03");
    assert.deepEqual(illness(proxy!, nowMs), { kind: "notReady", message: "phase Pending", sinceMs: null });
    assert.deepEqual(illness(apiserver!, nowMs), {
      kind: "notReady",
      message: "not ready: container main CrashLoopBackOff",
      sinceMs: null,
    });
  });

  test("a crash loop: since when, how it ended last, how often", () => {
    const containers = [
      container({ state: waiting("CrashLoopBackOff"), lastState: ended(137, "OOMKilled"), restarts: 7 }),
    ];
    assert.deepEqual(illness(pod({ ready: false, containers }), nowMs), {
      kind: "notReady",
      message:
        "not ready for 10 min: container etcd CrashLoopBackOff, last ended with exit code 137 (OOMKilled), 7 restarts",
      sinceMs: nowMs - 10 * minute,
    });
  });

  test("Error and Completed say nothing that the exit code does not; a signal does", () => {
    const message = (lastState: ContainerState) =>
      illness(pod({ ready: false, containers: [container({ state: waiting("CrashLoopBackOff"), lastState })] }), nowMs)
        ?.message;
    assert.match(message(ended(1)) ?? "", /CrashLoopBackOff, last ended with exit code 1$/);
    assert.match(message(ended(0, "Completed")) ?? "", /last ended with exit code 0$/);
    assert.match(message(ended(137, "Error", 9)) ?? "", /last ended with signal 9$/);
  });

  test("an image that cannot be pulled", () => {
    const containers = [container({ state: waiting("ImagePullBackOff") })];
    const ill = illness(pod({ phase: "Pending", ready: false, containers }), nowMs);
    assert.equal(ill?.message, "phase Pending for 10 min: container etcd ImagePullBackOff");
  });

  test("an init container that fails is to blame, not the ones that wait for it", () => {
    const containers = [
      container({ state: waiting("PodInitializing") }),
      container({ name: "done", init: true, ready: true, state: ended(0, "Completed") }),
      container({ name: "setup", init: true, state: waiting("CrashLoopBackOff"), lastState: ended(2), restarts: 3 }),
    ];
    assert.equal(
      illness(pod({ phase: "Pending", ready: false, containers }), nowMs)?.message,
      "phase Pending for 10 min: container setup CrashLoopBackOff, last ended with exit code 2, 3 restarts",
    );
  });

  test("an init container that has just failed", () => {
    const containers = [
      container({ state: waiting("PodInitializing") }),
      container({ name: "setup", init: true, state: ended(2) }),
    ];
    assert.equal(
      illness(pod({ phase: "Pending", ready: false, containers }), nowMs)?.message,
      "phase Pending for 10 min: container setup ended with exit code 2",
    );
  });

  test("an init container that still runs is to blame, not the ones that wait for it", () => {
    const containers = [
      container({ state: waiting("PodInitializing") }),
      container({ name: "sidecar", init: true, state: running }),
      container({ name: "setup", init: true, state: running }),
      container({ name: "next", init: true, state: waiting("PodInitializing") }),
    ];
    assert.equal(
      illness(pod({ phase: "Pending", ready: false, containers }), nowMs)?.message,
      "phase Pending for 10 min: container setup running, neither done nor ready",
    );
  });

  test("a sidecar that is not ready beside containers that are", () => {
    const containers = [
      container({ ready: true, state: running }),
      container({ name: "proxy", init: true, state: running, restarts: 2 }),
    ];
    assert.equal(
      illness(pod({ ready: false, readyReason: "ContainersNotReady", containers }), nowMs)?.message,
      "not ready for 10 min: container proxy running, neither done nor ready, 2 restarts",
    );
  });

  test("a container that runs", () => {
    const containers = [
      container({ name: "other", ready: true, state: running }),
      container({ state: running, restarts: 1 }),
    ];
    assert.equal(
      illness(pod({ ready: false, containers }), nowMs)?.message,
      "not ready for 10 min: container etcd running, its readiness probe does not pass, 1 restart",
    );
  });

  test("one that fails before one that only starts", () => {
    const containers = [
      container({ name: "a", state: waiting("ContainerCreating") }),
      container({ name: "b", state: waiting("CreateContainerConfigError") }),
    ];
    assert.match(illness(pod({ ready: false, containers }), nowMs)?.message ?? "", /container b CreateContainer/);
  });

  test("all containers are ready: the condition's reason", () => {
    const containers = [container({ ready: true, state: running })];
    assert.equal(
      illness(pod({ ready: false, readyReason: "ReadinessGatesNotReady", containers }), nowMs)?.message,
      "not ready for 10 min: ReadinessGatesNotReady",
    );
  });

  test("the pod's reason where no container has one", () => {
    assert.equal(
      illness(pod({ ready: false, reason: "NodeLost", readyReason: "x" }), nowMs)?.message,
      "not ready for 10 min: NodeLost",
    );
  });

  test("ready, and its phase is not Running", () => {
    assert.equal(illness(pod({ phase: "Unknown" }), nowMs)?.message, "phase Unknown for 10 min");
  });

  test("no status yet", () => {
    const ill = illness(pod({ phase: "", ready: false, readySinceMs: null, startMs: null }), nowMs);
    assert.deepEqual(ill, { kind: "notReady", message: "no status yet for 1 h 30 min", sinceMs: nowMs - 90 * minute });
  });

  test("without the condition's time: since it was started", () => {
    const ill = illness(pod({ ready: false, readySinceMs: null }), nowMs);
    assert.equal(ill?.sinceMs, nowMs - 80 * minute);
  });

  test("a time that is yet to come, by a clock that was set back", () => {
    assert.equal(illness(pod({ ready: false, readySinceMs: nowMs + minute }), nowMs)?.message, "not ready for 0 ms");
  });

  test("it is being deleted, ready or not", () => {
    assert.deepEqual(illness(pod({ deletedMs: nowMs - minute }), nowMs), {
      kind: "notReady",
      message: "it is being terminated",
      sinceMs: nowMs - minute,
    });
  });
});
