// Public cases about who starts the probe; test/cases/CASES.md has each one's source and the right behaviour.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { scenarios } from "../../lib/simulator.ts";
import { age, baseEnvironment, binary, root, simulate, until } from "../support.ts";

/** What node-problem-detector makes of one run of a plugin. */
interface PluginResult {
  readonly status: "OK" | "NonOK" | "Unknown";
  readonly message: string;
  /** Ended by a signal, that of the timeout mostly. */
  readonly signaled: boolean;
  readonly pid: number;
}

/**
 * Runs a command by the rules of node-problem-detector's pkg/custompluginmonitor/plugin/plugin.go: a process group of
 * its own, SIGKILL for the group at the timeout; of the output the first 4096 bytes are read and the rest thrown away;
 * it is trimmed, then cut to `max_output_length` bytes; exit status 0 is OK, 1 is NonOK, anything else is Unknown.
 */
async function runPlugin(
  command: string,
  args: readonly string[],
  { timeoutMs, maxOutputLength }: { readonly timeoutMs: number; readonly maxOutputLength: number },
): Promise<PluginResult> {
  const child = spawn(command, args, { detached: true, env: baseEnvironment, stdio: ["ignore", "pipe", "pipe"] });
  let output = Buffer.alloc(0);
  child.stdout.on("data", (chunk: Buffer) => {
    output = Buffer.concat([output, chunk]).subarray(0, 4096);
  });
  child.stderr.resume();
  const timer = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), timeoutMs);
  const [exit, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once("close", (...result) => resolve(result)),
  );
  clearTimeout(timer);
  let text = Buffer.from(output.toString("latin1").trim(), "latin1");
  if (signal !== null) text = Buffer.from(`Timeout when running plugin "${command}": state - ${signal}. output - ""`);
  return {
    status: exit === 0 ? "OK" : exit === 1 ? "NonOK" : "Unknown",
    message: text.subarray(0, maxOutputLength).toString("latin1"),
    signaled: signal !== null,
    pid: child.pid!,
  };
}

// For what does not hang: on a machine that is busy with other tests nothing else is to meet its deadline.
const patient = ["--timeout", "20s"];

/** Whether a process of the group is left. */
function groupLives(pid: number): boolean {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("d05: node-problem-detector, exit 2 is Unknown and 80 bytes are shown (node-problem-detector#145, #1110)", () => {
  const config = JSON.parse(readFileSync(join(root, "test", "cases", "d05", "npd.json"), "utf8"));
  const limits = {
    // Far over what it takes on a machine that is busy with other tests: nothing here is about time.
    timeoutMs: 60_000,
    maxOutputLength: config.pluginConfig.max_output_length as number,
  };

  const expected: Readonly<Record<string, PluginResult["status"]>> = {
    healthy: "OK",
    initializing: "OK",
    "rate-limited": "OK",
    "unexpected-pod": "OK",
    "not-ready": "OK",
    "initializing-old": "Unknown",
    "missing-pod": "NonOK",
    "failed-pod": "NonOK",
    "not-ready-old": "NonOK",
    "hostile-text": "NonOK",
    missing: "Unknown",
    dead: "Unknown",
    "wrong-service": "Unknown",
    http1: "Unknown",
    undecodable: "Unknown",
  };
  // What the listing could not be had for is UNKNOWN of the pods, whatever it is of the socket.
  const inventory = { ...expected, initializing: "Unknown", "rate-limited": "Unknown" } as const;

  for (const [scenario, status] of Object.entries(inventory)) {
    test(`static-pods, ${scenario}: ${status}`, async (t) => {
      const simulator = await simulate(t, scenario);
      if (["missing-pod", "hostile-text"].includes(scenario)) age(simulator.socket, 3600);
      const expect = simulator.expect.join(",");
      const args = ["static-pods", "--profile", "npd", "--socket", simulator.socket, "--expect", expect, ...patient];
      const result = await runPlugin(binary, args, limits);
      assert.equal(result.status, status, result.message);
      assert.equal(result.signaled, false);
      assert.match(result.message, /^[ -~]{1,80}$/);
      assert.match(result.message, /^[A-Z][A-Za-z]+(: |$)/);
      assert.ok(!result.message.includes("|"));
    });
  }

  for (const [scenario, status] of [
    ["missing", "NonOK"],
    ["dead", "NonOK"],
    ["initializing", "OK"],
    ["initializing-old", "NonOK"],
    ["rate-limited", "NonOK"],
    ["wrong-service", "Unknown"],
  ] as const) {
    test(`all, ${scenario}: ${status}`, async (t) => {
      const simulator = await simulate(t, scenario);
      const expect = simulator.expect.join(",");
      const args = ["all", "--profile", "npd", "--socket", simulator.socket, "--expect", expect, ...patient];
      const result = await runPlugin(binary, args, limits);
      assert.equal(result.status, status, result.message);
      assert.match(result.message, /^[ -~]{1,80}$/);
    });
  }

  test("--npd-warning problem: WARNING is NonOK", async (t) => {
    const { socket } = await simulate(t, "initializing");
    const args = ["ready", "--profile", "npd", "--npd-warning", "problem", "--socket", socket];
    assert.equal((await runPlugin(binary, args, limits)).status, "NonOK");
  });

  test("one message while nothing changes: a message that differs is a new event", async (t) => {
    for (const { name, check } of scenarios) {
      const isBroken = ["not-ready", "not-ready-old", "initializing", "failed-pod", "rate-limited", "server-error"];
      if (!isBroken.includes(name)) continue;
      const simulator = await simulate(t, name);
      const messages = new Set<string>();
      for (const seconds of [3600, 7261]) {
        age(simulator.socket, seconds);
        const expect = check === "static-pods" ? ["--expect", simulator.expect.join(",")] : [];
        const args = [check, "--profile", "npd", "--socket", simulator.socket, ...expect];
        messages.add((await runPlugin(binary, args, limits)).message);
      }
      assert.equal(messages.size, 1, [...messages].join("\n"));
      assert.doesNotMatch([...messages][0]!.replace(/node-1|OOM|-\d+/g, ""), /\d/);
    }
  });

  test("a server that hangs: NonOK by the probe's own deadline, and nobody has to kill it", async (t) => {
    const { socket } = await simulate(t, "hang");
    // Its default, 4 s, is below node-problem-detector's 5 s.
    const result = await runPlugin(binary, ["ready", "--profile", "npd", "--socket", socket], limits);
    assert.equal(result.status, "NonOK");
    assert.equal(result.signaled, false);
    assert.equal(result.message, "Timeout: no answer before the deadline");
    assert.equal(groupLives(result.pid), false);
  });

  test("killed by node-problem-detector: Unknown, and no process is left", async (t) => {
    const simulator = await simulate(t, "hang");
    const args = ["ready", "--profile", "npd", "--timeout", "10m", "--socket", simulator.socket];
    const result = await runPlugin(binary, args, { ...limits, timeoutMs: 1000 });
    assert.equal(result.status, "Unknown");
    assert.equal(result.signaled, true);
    await until("the end of the group", () => !groupLives(result.pid));
  });

  test("bad usage is Unknown, one line of at most 80 bytes", async () => {
    const result = await runPlugin(binary, ["static-pods", "--profile", "npd", "--expect", "x".repeat(500)], limits);
    assert.equal(result.status, "Unknown");
    assert.match(result.message, /^BadUsage: Option --expect [ -~]{1,70}$/);
  });
});

describe("d09: an exec probe of 1 s (kubernetes/kubernetes#82440, #100198, #124226, #94115)", () => {
  // A kubelet kills the probe at its timeoutSeconds; here the bound is so wide that only a probe that hangs meets it.
  const limits = { timeoutMs: 60_000, maxOutputLength: 10 * 1024 };

  test("the manifest of the case asks for less than its timeout", () => {
    const manifest = readFileSync(join(root, "test", "cases", "d09", "probe.yaml"), "utf8");
    assert.match(manifest, /periodSeconds: 10\n/);
    assert.doesNotMatch(manifest, /timeoutSeconds/, "so it is 1 s");
  });

  for (const purpose of ["startup", "readiness", "liveness"]) {
    test(`${purpose}: a server that hangs fails it, by its own deadline, without a process left`, async (t) => {
      const simulator = await simulate(t, "hang");
      const args = ["ready", "--profile", "kube", "--for", purpose, "--socket", simulator.socket];
      const result = await runPlugin(binary, args, limits);
      assert.equal(result.status, "NonOK");
      assert.equal(result.signaled, false);
      // 900 ms by default: under the second that a kubelet waits.
      assert.match(result.message, /^Timeout: .* within (899|900) ms$/);
      assert.equal(groupLives(result.pid), false);
      await until("the end of its connection", () => simulator.openConnections === 0);
    });
  }

  for (const scenario of ["initializing", "initializing-old", "rate-limited", "server-error", "lost", "http1"]) {
    test(`liveness: ${scenario} does not restart the container`, async (t) => {
      const { socket } = await simulate(t, scenario);
      const args = ["ready", "--profile", "kube", "--for", "liveness", "--socket", socket, ...patient];
      assert.equal((await runPlugin(binary, args, limits)).status, "OK");
    });
  }

  for (const scenario of ["missing", "dead", "not-a-socket"]) {
    test(`liveness: ${scenario} does, for only a new mount helps`, async (t) => {
      const { socket } = await simulate(t, scenario);
      const args = ["ready", "--profile", "kube", "--for", "liveness", "--socket", socket, ...patient];
      assert.equal((await runPlugin(binary, args, limits)).status, "NonOK");
    });
  }

  test("WARNING does not fail it", async (t) => {
    const { socket, expect } = await simulate(t, "unexpected-pod");
    const args = ["static-pods", "--profile", "kube", "--socket", socket, "--expect", expect.join(","), ...patient];
    const result = await runPlugin(binary, args, limits);
    assert.equal(result.status, "OK");
    assert.match(result.message, /^StaticPodUnexpected: /);
    assert.equal((await runPlugin(binary, [...args, "--strict"], limits)).status, "NonOK");
  });
});
