// Public cases about static pods in the listing; test/cases/CASES.md has each one's source and the right behaviour.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { checkOf, metricOf, probe, probeJson, root, simulate } from "../support.ts";
import { type CasePod, servePods } from "./pods_server.ts";

function podsOf(id: string): readonly CasePod[] {
  return JSON.parse(readFileSync(join(root, "test", "cases", id, "pods.json"), "utf8"));
}

function expectOf(pods: readonly CasePod[]): string {
  return pods.map(({ namespace, name }) => `${namespace}/${name}`).join(",");
}

const hour = 3_600_000;

describe("d01: an evicted static pod stays listed (kubernetes/kubernetes#76598, #71134)", () => {
  const pods = podsOf("d01");

  test("StaticPodFailed, CRITICAL, with phase and reason", async (t) => {
    const socket = await servePods(t, pods);
    for (const [profile, status] of [
      ["nagios", 2],
      ["npd", 1],
      ["kube", 1],
    ] as const) {
      const run = await probeJson([
        "static-pods",
        "--socket",
        socket,
        "--expect",
        expectOf(pods),
        "--profile",
        profile,
      ]);
      assert.equal(run.code, "StaticPodFailed");
      assert.equal(run.ended.status, status);
      assert.match(run.summary, /^kube-system\/etcd-cp-1: phase Failed, Evicted/);
      // Present by name, and yet not healthy.
      assert.equal(metricOf(run, "static-pods", "present"), 2);
      assert.equal(metricOf(run, "static-pods", "ready"), 1);
      assert.equal(metricOf(run, "static-pods", "missing"), 0);
    }
  });

  test("Succeeded counts as not running too", async (t) => {
    const done = pods.map((pod) => ({ ...pod, status: { ...pod.status, phase: "Succeeded", reason: "" } }));
    const socket = await servePods(t, done);
    const ended = await probe(["static-pods", "--socket", socket, "--expect", expectOf(pods)]);
    assert.match(ended.stdout, /^STATIC-PODS CRITICAL - StaticPodFailed: \S+: phase Succeeded.* \(and 1 more\) \| /);
    assert.equal(ended.status, 2);
  });

  test("without names, by number alone, it is not healthy either", async (t) => {
    const socket = await servePods(t, pods);
    const ended = await probe(["static-pods", "--socket", socket, "--expect-count", "2:2"]);
    assert.match(ended.stdout, /^STATIC-PODS CRITICAL - StaticPodFailed: /);
  });
});

describe("d03: crash-looping or stuck Pending, and listed (kubernetes/kubernetes#71134, rancher/rke2#4864)", () => {
  const pods = podsOf("d03");

  test("StaticPodNotReady with each one's reason; ready and total stand apart from present and expected", async (t) => {
    const socket = await servePods(t, pods);
    const run = await probeJson(["static-pods", "--socket", socket, "--expect", expectOf(pods)]);
    assert.equal(run.code, "StaticPodNotReady");
    assert.equal(run.ended.status, 1);
    const found = checkOf(run, "static-pods").findings.map(({ code, subject }) => `${code} ${subject}`);
    assert.deepEqual(found, [
      "StaticPodNotReady kube-system/kube-proxy-cp-1",
      "StaticPodNotReady kube-system/kube-apiserver-cp-1",
    ]);
    assert.match(checkOf(run, "static-pods").findings[0]!.message, /Pending/);
    assert.match(checkOf(run, "static-pods").findings[1]!.message, /CrashLoopBackOff/);
    for (const [name, value] of [
      ["expected", 2],
      ["present", 2],
      ["ready", 0],
      ["not_ready", 2],
      ["missing", 0],
    ] as const) {
      assert.equal(metricOf(run, "static-pods", name), value, name);
    }
  });

  test("for hours: CRITICAL, and it says for how long", async (t) => {
    const socket = await servePods(t, pods, { startedMs: Date.now() - 3 * hour });
    const ended = await probe(["static-pods", "--socket", socket, "--expect", expectOf(pods)]);
    assert.match(ended.stdout, /^STATIC-PODS CRITICAL - StaticPodNotReady: kube-system\/kube-proxy-cp-1: .*\b3 h\b/);
    assert.equal(ended.status, 2);
    const patient = await probe(["static-pods", "--socket", socket, "--expect", expectOf(pods), "--ready-grace", "4h"]);
    assert.equal(patient.status, 1);
  });
});

describe("d07: performance data in every locale, pipes and line breaks (nagios-plugins/nagios-plugins#526)", () => {
  const pods = podsOf("d07");
  const locales = [
    {},
    { LC_ALL: "de_DE.UTF-8", LANG: "hu_HU.UTF-8" },
    { LC_ALL: "ar_EG.UTF-8", LANGUAGE: "ar" },
    { LC_NUMERIC: "fr_FR.UTF-8", LANG: "de_CH.UTF-8" },
    { LC_ALL: "C" },
  ];
  // 'label'=value[unit];[warn];[crit];[min];[max], with a point and never an exponent.
  const item = /^[a-z_]+=-?\d+(\.\d{1,6})?(s|B)?(;[-\d.:@~]*){0,2}(;-?\d+(\.\d+)?){0,2}$/;

  test("the text of the node is in one line with exactly one bar, the same bytes in every locale", async (t) => {
    const socket = await servePods(t, pods);
    const lines = new Set<string>();
    for (const env of locales) {
      const ended = await probe(["static-pods", "--socket", socket, "--expect", expectOf(pods)], { env });
      assert.equal(ended.status, 2);
      lines.add(ended.stdout);
    }
    assert.equal(lines.size, 1, [...lines].join(""));
    const [line] = lines;
    assert.match(line!, /^[^\n|]* \| [^\n|]*\n$/);
    assert.match(line!, /bad .? ?reason second line/);
    for (const one of performanceData(line!)) assert.match(one, item);
  });

  test("times and sizes: a point, no exponent, no separators of thousands", async (t) => {
    const { socket, expect } = await simulate(t, "healthy", { pods: 500, podBytes: 2000 });
    for (const env of locales) {
      const args = ["all", "--socket", socket, "--expect", expect.join(",")];
      const { stdout } = await probe(args, { env });
      const items = performanceData(stdout);
      assert.ok(items.length > 10);
      for (const one of items) assert.match(one, item);
      assert.match(stdout, /ready_time=\d+\.\d+s/);
      assert.match(stdout, /ready_size=\d{7}B/);
    }
  });

  test("-v: no bar in any line but the first, and there only one", async (t) => {
    const socket = await servePods(t, pods);
    const { stdout } = await probe(["static-pods", "-v", "--socket", socket, "--expect", expectOf(pods)]);
    const [first, ...rest] = stdout.trimEnd().split("\n");
    assert.equal(first!.split("|").length, 2);
    assert.ok(rest.length > 2);
    for (const line of rest) assert.ok(!line.includes("|"), line);
  });
});

describe("d11: the mirror pod is missing, or there (kubernetes/kubernetes#103587, #16627, #42554)", () => {
  const pods = podsOf("d11");

  test("the static pod itself is the truth: OK", async (t) => {
    const socket = await servePods(t, pods);
    const ended = await probe(["static-pods", "--socket", socket, "--expect", expectOf(pods)]);
    assert.match(ended.stdout, /^STATIC-PODS OK - StaticPodsHealthy: 1 of 1 /);
    assert.equal(ended.status, 0);
  });

  test("a mirror pod alone, which no kubelet lists, would not count for it", async (t) => {
    const annotations = { "kubernetes.io/config.source": "api", "kubernetes.io/config.mirror": "x" };
    const socket = await servePods(
      t,
      pods.map((pod) => ({ ...pod, annotations })),
    );
    const run = await probeJson(["static-pods", "--socket", socket, "--expect", expectOf(pods)]);
    assert.equal(run.code, "StaticPodMissing");
  });
});

/** The items behind the bar of the first line. */
function performanceData(text: string): string[] {
  const [, data] = /^[^|\n]* \| ([^|\n]*)$/m.exec(text) ?? [];
  return data?.split(" ") ?? [];
}
