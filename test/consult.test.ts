import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Plan, plan } from "../lib/cli.ts";
import { consultKubelet } from "../lib/consult.ts";
import { checks } from "../probes/list.ts";
import { inFolder } from "./probes/support.ts";

type RunPlan = Extract<Plan, { kind: "run" }>;

function planOf(words: readonly string[], environment: Record<string, string> = {}): RunPlan {
  const planned = plan(checks, { name: "kubelet-probe", words, environment });
  assert.equal(planned.kind, "run");
  return planned as RunPlan;
}

/** The plan after a look at a /proc with one kubelet of these options, process 812. */
function consulted(words: readonly string[], options: readonly string[], environment: Record<string, string> = {}) {
  return inFolder(async (proc) => {
    const folder = join(proc, "812");
    mkdirSync(folder);
    writeFileSync(join(folder, "comm"), "kubelet\n");
    writeFileSync(join(folder, "cmdline"), ["/usr/bin/kubelet", ...options].join("\0"));
    symlinkSync("/", join(folder, "root"));
    return consultKubelet(planOf(words, environment), proc);
  });
}

const options = ["--root-dir=/data/kubelet", "--hostname-override=CP-1"];

describe("what the kubelet's command line is looked at for", () => {
  const consult = (...given: Parameters<typeof planOf>) => planOf(...given).consult;

  test("the name of the node and its manifests, by checks that go by them", () => {
    for (const name of ["static-pods", "manifests", "all"]) {
      assert.ok(consult([name, "--socket", "/s"]), name);
      assert.ok(consult([name, "--socket", "/s", "--node-name", "n"]), name);
      assert.ok(consult([name, "--socket", "/s", "--manifests", "/m"]), name);
      assert.ok(!consult([name, "--socket", "/s", "--manifests", "/m", "--node-name", "n"]), name);
      assert.ok(!consult([name, "--socket", "/s", "--manifests", "/m"], { NODE_NAME: "n" }), name);
    }
  });
  test("not where a socket is given, and nothing else is gone by", () => {
    for (const name of ["socket", "ready", "rate-limit"]) {
      assert.ok(!consult([name, "--socket", "/s"]), name);
      assert.ok(!consult([name, "--kubelet-root", "/r"]), name);
      assert.ok(!consult([name], { KUBELET_PROBE_SOCKET: "/s" }), name);
    }
    assert.ok(!consult(["static-pods", "--socket", "/s", "--expect", "ns/a"]));
    assert.ok(!consult(["static-pods", "--socket", "/s", "--expect-count", "1:"]));
  });
  test("the socket plays no part in an offline check", () => {
    assert.ok(!consult(["manifests", "--manifests", "/m", "--node-name", "n"]));
  });
});

describe("what it says goes before defaults, and behind options and the environment", () => {
  test("the root folder and the node's name, each with where it is from", async () => {
    const { run, origins } = await consulted(["all"], options);
    assert.equal(run.socket, "/data/kubelet/pods-api/pods-api.sock");
    assert.equal(run.nodeName, "cp-1");
    assert.equal(run.kubelet?.pid, 812);
    assert.deepEqual(origins, [
      "socket: /data/kubelet/pods-api/pods-api.sock (--root-dir of the kubelet, process 812)",
      "node: cp-1 (--hostname-override of the kubelet, process 812)",
    ]);
  });

  test("what is given stays", async () => {
    const { run } = await consulted(["all", "--node-name", "mine"], options);
    assert.equal(run.nodeName, "mine");
    assert.equal((await consulted(["all"], options, { NODE_NAME: "theirs" })).run.nodeName, "theirs");
  });

  test("who names the socket of another kubelet hears nothing of this one", async () => {
    for (const words of [
      ["all", "--socket", "/s"],
      ["all", "--kubelet-root", "/var/lib/kubelet"],
    ]) {
      const { run, origins } = await consulted(words, options);
      assert.equal(run.kubelet, undefined);
      assert.deepEqual(origins, planOf(words).origins);
    }
    const { run } = await consulted(["all", "--kubelet-root", "/data/kubelet"], options);
    assert.deepEqual([run.kubelet?.pid, run.nodeName], [812, "cp-1"]);
  });

  test("a kubelet without options leaves the defaults, and their names", async () => {
    const { run, origins } = await consulted(["all"], []);
    assert.deepEqual(origins, planOf(["all"]).origins);
    assert.equal(run.kubelet?.pid, 812);
  });

  test("no kubelet leaves the plan; several are a line of their own", async () => {
    const planned = planOf(["all"]);
    assert.equal(await consultKubelet(planned, "/nonexistent"), planned);
  });
});
