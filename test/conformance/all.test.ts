// The built binary against the kubelet's own server: `all` on nodes that are well, not ready, busy, large and broken,
// in each profile.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { profiles } from "../../lib/exit.ts";
import {
  age,
  checkOf,
  cleanUp,
  type Ended,
  folder,
  independentClient,
  metricOf,
  needs,
  type ProbeJson,
  probe,
  probeJson,
  root,
  startKubelet,
  until,
} from "../support.ts";

const statics = ["000", "001", "002", "003"].map((number) => `kube-system/static-${number}-node-1`);
const expectStatics = ["--expect", statics.join(",")];

// On a machine that is busy with other tests nothing is to meet its deadline.
const patient = ["--timeout", "20s"];

type Exits = readonly [nagios: number, npd: number, kube: number];
const ok: Exits = [0, 0, 0];
const warning: Exits = [1, 0, 0];
const critical: Exits = [2, 1, 1];

/** Runs `all` in each profile, by JSON and by text, and gives the first run's JSON. */
async function allProfiles(socket: string, args: readonly string[], code: string, exits: Exits): Promise<ProbeJson> {
  const runs: ProbeJson[] = [];
  for (const [at, profile] of profiles.entries()) {
    const words = ["all", "--socket", socket, ...args, "--profile", profile, ...patient];
    const run = await probeJson(words);
    assert.equal(run.code, code, run.ended.stdout);
    assert.equal(run.ended.status, exits[at], `${profile}: ${run.ended.stdout}`);
    assert.equal(run.exitStatus, exits[at]);
    assert.ok(run.tokensSpent <= 4, `${run.tokensSpent} tokens`);
    runs.push(run);
    await refilled();
    const text = await probe(words);
    assert.equal(text.status, exits[at], `${profile}: ${text.stdout}`);
    assert.match(text.stdout, profile === "nagios" ? new RegExp(` - ${code}: `) : new RegExp(`^${code}(: |\n)`));
    if (profile === "npd") assert.match(text.stdout, /^[ -~]{1,80}\n$/);
    await refilled();
  }
  return runs[0]!;
}

/** Waits for the tokens that a run of `all` takes; one that meets an empty bucket is another test's. */
function refilled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 60));
}

describe("all, against the kubelet's own server", { skip: needs.kubelet }, () => {
  test("a healthy node: OK, for at most 4 tokens", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--pods", "106", "--mirrors"]);
    const run = await allProfiles(socket, expectStatics, "SocketSecure", ok);
    assert.deepEqual(
      run.checks.filter(({ check }) => check !== "manifests").map(({ check, code }) => `${check} ${code}`),
      ["socket SocketSecure", "ready Ready", "static-pods StaticPodsHealthy", "rate-limit RateLimitHeadroom"],
    );
    assert.equal(metricOf(run, "ready", "pods"), 110);
    assert.equal(metricOf(run, "static-pods", "ready"), 4);
    assert.equal(run.tokensSpent, 4);
  });

  test("the pods by a watch: no token for them", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--pods", "106"]);
    const run = await probeJson(["static-pods", "--source", "watch", "--socket", socket, ...expectStatics]);
    assert.equal(run.code, "StaticPodsHealthy", run.ended.stdout);
    assert.equal(run.tokensSpent, 0);
  });

  test("not ready: WARNING Initializing, and what it holds up is skipped with that cause", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--ready=false"]);
    for (const [at, profile] of profiles.entries()) {
      const run = await probeJson(["all", "--socket", socket, ...expectStatics, "--profile", profile, ...patient]);
      assert.equal(run.code, "Initializing");
      assert.equal(run.ended.status, warning[at]);
      const found = (name: string) => {
        const { code, status, skipped } = checkOf(run, name);
        return skipped === undefined ? [code, status] : [code, skipped.cause];
      };
      assert.deepEqual(found("socket"), ["SocketSecure", "OK"]);
      assert.deepEqual(found("ready"), ["Initializing", "WARNING"]);
      assert.deepEqual(found("static-pods"), ["InventoryUnavailable", "Initializing"]);
      assert.deepEqual(found("rate-limit"), ["RateLimitHeadroom", "OK"]);
      assert.doesNotMatch(run.ended.stdout, /StaticPodMissing/);
      await refilled();
    }
  });

  test("not ready for long: CRITICAL", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--ready=false"]);
    age(socket, 900);
    for (const [at, profile] of profiles.entries()) {
      const run = await probeJson(["all", "--socket", socket, ...expectStatics, "--profile", profile, ...patient]);
      assert.equal(run.code, "Initializing");
      assert.equal(run.ended.status, critical[at]);
      await refilled();
    }
  });

  test("ready after a while: --wait waits for it", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--ready-after", "1s"]);
    const args = ["ready", "--socket", socket, "--wait", "--timeout", "20s", "--profile", "kube", "--for", "startup"];
    const ended = await probe(args);
    assert.match(ended.stdout, /^Ready: /);
    assert.equal(ended.status, 0);
  });

  test("another client drains the limiter: RateLimited, and never a word of missing pods", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--pods", "6"]);
    const stop = await drain(t, socket);
    for (const [at, profile] of profiles.entries()) {
      const words = ["all", "--socket", socket, ...expectStatics, "--profile", profile, ...patient];
      // On a machine that is busy the other client may lose its turn, and tokens come back meanwhile.
      const run = await until("a run that meets an empty bucket", async () => {
        const one = await probeJson(words);
        assert.ok(["RateLimited", "SocketSecure"].includes(one.code), one.ended.stdout);
        return one.code === "RateLimited" && one;
      });
      // CRITICAL only where none of the calls came through.
      assert.ok(["WARNING", "CRITICAL"].includes(run.status), run.status);
      assert.equal(run.ended.status, (run.status === "WARNING" ? warning : critical)[at]);
      assert.doesNotMatch(run.ended.stdout, /StaticPodMissing/);
      const pods = checkOf(run, "static-pods");
      if (pods.skipped !== undefined) assert.deepEqual(pods.skipped, { cause: "RateLimited" });
      else assert.equal(pods.code, "StaticPodsHealthy");
    }
    stop();
    // And all is well again.
    await until("tokens", async () => (await probe(["rate-limit", "--socket", socket])).status === 0);
  });

  test("200 calls at once, once: the probe gets the listing all the same", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--pods", "6"]);
    const client = independentClient(t, socket);
    const burst = Promise.allSettled(Array.from({ length: 200 }, () => client.getPod({ podUID: "drain" })));
    const run = await probeJson(["static-pods", "--socket", socket, ...expectStatics]);
    await burst;
    assert.equal(run.code, "StaticPodsHealthy", run.ended.stdout);
  });

  test("a listing of 5 MB", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--pods", "500", "--pad", "10000"]);
    const run = await allProfiles(socket, expectStatics, "SocketSecure", ok);
    assert.ok(metricOf(run, "ready", "size")! > 5e6);
    assert.equal(metricOf(run, "ready", "pods"), 504);
  });

  test("a listing over --max-bytes", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--pods", "500", "--pad", "10000"]);
    await allProfiles(socket, [...expectStatics, "--max-bytes", "4194304"], "AnswerTooLarge", [3, 2, 1]);
  });

  test("a pod that is expected and not there, one that nobody expects", async (t) => {
    const { socket } = await startKubelet(t, ["--static", "4", "--pods", "6"]);
    age(socket, 3600);
    await allProfiles(
      socket,
      ["--expect", [...statics, "kube-system/x-node-1"].join(",")],
      "StaticPodMissing",
      critical,
    );
    await allProfiles(socket, ["--expect", statics.slice(1).join(",")], "StaticPodUnexpected", warning);
  });

  test("not ready and failed pods", async (t) => {
    const notReady = await startKubelet(t, ["--static", "4", "--pod-ready=false"]);
    await allProfiles(notReady.socket, expectStatics, "StaticPodNotReady", warning);
    const failed = await startKubelet(t, ["--static", "4", "--phase", "Failed"]);
    await allProfiles(failed.socket, expectStatics, "StaticPodFailed", critical);
    // A pod without a status of its own is Pending to the kubelet.
    const pending = await startKubelet(t, ["--static", "4", "--no-status"]);
    await allProfiles(pending.socket, expectStatics, "StaticPodNotReady", warning);
  });
});

/**
 * Takes every token there is: 200 calls of GetPod at a time without an end, by a program that reads no answer but the
 * first, so that no answer it waits for lets a token go by.
 */
async function drain(t: TestContext, path: string): Promise<() => void> {
  const socket = connect(path);
  socket.on("error", () => {});
  cleanUp(t, () => socket.destroy());
  const answered = new Promise((resolve) => socket.once("data", resolve));
  socket.resume();
  const fields = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/v1alpha1.Pods/GetPod",
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
  };
  const block = literals(fields);
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(frame(4, 0, 0, Buffer.alloc(0)));
  let stream = 1;
  const timer = setInterval(() => {
    // A server that cannot follow is busy enough.
    if (socket.writableLength > 100_000) return;
    for (let calls = 0; calls < 20; calls++, stream += 2) {
      socket.write(frame(1, 4, stream, block));
      socket.write(frame(0, 1, stream, Buffer.alloc(5)));
    }
  }, 2);
  cleanUp(t, () => clearInterval(timer));
  await answered;
  await until("a bucket that is empty", async () => {
    const run = await probeJson(["rate-limit", "--socket", path]);
    return run.code === "RateLimited";
  });
  return () => clearInterval(timer);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Header fields as HPACK literals that are not indexed. */
function literals(fields: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

describe("pods of public cases in the kubelet's own pod manager", { skip: needs.kubelet }, () => {
  for (const [id, about, code, exits] of [
    ["d01", "an evicted static pod stays listed (kubernetes/kubernetes#76598)", "StaticPodFailed", critical],
    ["d03", "crash-looping or stuck Pending (kubernetes/kubernetes#71134)", "StaticPodNotReady", warning],
    ["d07", "a bar and a line break in a reason (nagios-plugins/nagios-plugins#526)", "StaticPodFailed", critical],
    ["d11", "the mirror pod is missing (kubernetes/kubernetes#103587)", "SocketSecure", ok],
  ] as const) {
    test(`${id}: ${about}`, async (t) => {
      const { file, expect } = casePods(t, id);
      const { socket } = await startKubelet(t, ["--node", "cp-1", "--pods-json", file]);
      const run = await allProfiles(socket, ["--expect", expect.join(",")], code, exits);
      assert.equal(metricOf(run, "static-pods", "present"), expect.length);
      assert.equal(metricOf(run, "static-pods", "missing"), 0);
    });
  }
});

interface CasePod {
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly status: unknown;
}

/** The case's pods as whole core/v1 Pods in a file for --pods-json. */
function casePods(t: TestContext, id: string): { readonly file: string; readonly expect: readonly string[] } {
  const path = join(root, "test", "cases", id, "pods.json");
  const cases: readonly CasePod[] = JSON.parse(readFileSync(path, "utf8"));
  const pods = cases.map(({ namespace, name, annotations, status }, at) => ({
    raw: {
      metadata: { namespace, name, annotations, uid: String(at + 1).padStart(32, "0") },
      spec: { nodeName: "cp-1", containers: [{ name: "main", image: "registry.test/main:1" }] },
      status,
    },
  }));
  const file = join(folder(t), "pods.json");
  writeFileSync(file, JSON.stringify({ pods }));
  return { file, expect: cases.map(({ namespace, name }) => `${namespace}/${name}`) };
}

describe("manifests that the kubelet itself reads", { skip: needs.kubelet }, () => {
  for (const [id, node, code, exits] of [
    ["a01", "cp-1", "StaticPodsHealthy", ok],
    ["a03", "cp-1", "StaticPodsHealthy", ok],
    ["a05", "cp-1", "StaticPodsHealthy", ok],
    ["a08", "Worker-01.EXAMPLE.test", "StaticPodsHealthy", ok],
    ["a13", "cp-1", "ManifestRefused", critical],
    ["a17", "cp-1", "StaticPodsHealthy", ok],
  ] as const) {
    test(`${id}: what runs is what its folder asks for`, async (t) => {
      const manifests = join(root, "test", "cases", id, "manifests");
      const lower = node.toLowerCase();
      const { socket } = await startKubelet(t, ["--node", lower, "--manifests", manifests]);
      assert.equal((await probe(["ready", "--wait", "--socket", socket])).status, 0);
      for (const [at, profile] of profiles.entries()) {
        const args = ["static-pods", "--socket", socket, "--manifests", manifests, "--node-name", ` ${node}\n`];
        const run = await probeJson([...args, "--profile", profile, ...patient]);
        assert.equal(run.code, code, run.ended.stdout);
        assert.equal(run.ended.status, exits[at]);
        assert.equal(metricOf(run, "static-pods", "missing"), 0);
        assert.equal(metricOf(run, "static-pods", "unexpected"), 0);
        const { pods } = JSON.parse(readFileSync(join(dirname(manifests), "expected.json"), "utf8"));
        assert.equal(metricOf(run, "static-pods", "ready"), pods.length);
      }
    });
  }
});

describe("the kubelet restarts in the middle of a call", { skip: needs.kubelet }, () => {
  /** Starts a probe and waits until its connection is there, on a kubelet that does not look at it. */
  async function whileStopped(
    t: TestContext,
    args: readonly string[],
    act: (socket: string, kill: () => Promise<void>) => Promise<void>,
  ): Promise<Ended> {
    const kubelet = await startKubelet(t, ["--static", "4"]);
    process.kill(kubelet.pid, "SIGSTOP");
    const running = probe([...args, "--socket", kubelet.socket, "--timeout", "30s"]);
    await until("a connection", () => connections(dirname(kubelet.socket)) > 0);
    await act(kubelet.socket, () => kubelet.stop("SIGKILL"));
    return running;
  }

  for (const args of [["ready"], ["static-pods", ...expectStatics], ["all", ...expectStatics]]) {
    test(`${args[0]}: one retry finds the kubelet that came up`, async (t) => {
      const ended = await whileStopped(t, args, async (socket, kill) => {
        await startKubelet(t, ["--static", "4"], socket);
        await kill();
      });
      assert.equal(ended.status, 0, ended.stdout);
    });

    test(`${args[0]}: none came up`, async (t) => {
      const ended = await whileStopped(t, args, (_, kill) => kill());
      const unavailable = args[0] === "static-pods";
      assert.match(ended.stdout, unavailable ? /InventoryUnavailable/ : /CRITICAL - (SocketDead|ConnectionLost): /);
      assert.equal(ended.status, unavailable ? 3 : 2);
      assert.doesNotMatch(ended.stdout, /StaticPodMissing/);
    });
  }
});

/** Connections to sockets of a folder, as proc_net_unix has them: 02 waits to be accepted, 03 is. */
function connections(path: string): number {
  const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
  return lines.filter((line) => / 0[23] +\d+ /.test(line) && line.includes(` ${path}/`)).length;
}
