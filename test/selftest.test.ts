import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Check } from "../lib/check.ts";
import { codes } from "../lib/codes.ts";
import { profiles } from "../lib/exit.ts";
import { Fault } from "../lib/fault.ts";
import { type SimulatorModule, selftest, selftestHelp } from "../lib/selftest.ts";
import { scenarios, startSimulator } from "../lib/simulator.ts";
import { checks } from "../probes/list.ts";

/** A few of the nodes: what every one of them comes to is seen where the binary runs it (test/deploy). */
const few = (...names: string[]): SimulatorModule => ({
  scenarios: scenarios.filter(({ name }) => names.includes(name)),
  startSimulator,
});

async function run(checks: readonly Check[], simulator: SimulatorModule, words: readonly string[] = []) {
  const home = mkdtempSync(join(tmpdir(), "kp-"));
  try {
    const result = await selftest(checks, simulator, ["--dir", home, ...words], {});
    assert.deepEqual(readdirSync(home), [], "nothing is left behind");
    return result;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

test("a line for each node, with the exit status in each profile", async () => {
  const { text, status } = await run(checks, few("healthy", "failed-pod", "http1", "initializing"));
  assert.equal(status, 0, text);
  const [head, ...lines] = text.split("\n");
  assert.match(head!, new RegExp(`^code +simulated node +${profiles.join(" +")}$`));
  for (const [code, node, exits] of [
    ["StaticPodsHealthy", "healthy", "0 +0 +0"],
    ["StaticPodFailed", "failed-pod", "2 +1 +1"],
    ["NotGrpc", "http1", "3 +2 +1"],
    ["Initializing", "initializing", "1 +0 +0"],
    ["PathTooLong", "a long path", "3 +2 +1"],
    ["ThresholdExceeded", "a narrow range", "2 +1 +1"],
    ["BadUsage", "a wrong option", "3 +2 +1"],
  ]) {
    assert.ok(
      lines.some((line) => new RegExp(`^${code} +${node} +${exits}$`).test(line)),
      `${code}\n${text}`,
    );
  }
  assert.match(text, /\n\d+ nodes, \d+ codes, 3 profiles: all right\n$/);
});

test("codes that were not tried are named, and no others", async () => {
  const { text } = await run(checks, few("healthy"));
  const untried = /^Not tried: (.*)$/m.exec(text)![1]!.split(", ");
  const tried = new Set([...text.matchAll(/^(\w+) +\S.* \d +\d +\d$/gm)].map(([, code]) => code!));
  assert.deepEqual([...untried, ...tried].sort(), Object.keys(codes).sort());
});

test("a check that gives another code is found out, with the command line that shows it", async () => {
  const lying = checks.map((check) =>
    check.name === "static-pods"
      ? { ...check, run: async () => ({ summary: "fine", findings: [], metrics: [] }) }
      : check,
  );
  const { text, status } = await run(lying, few("failed-pod"));
  assert.equal(status, 1);
  assert.match(text, /^StaticPodFailed +failed-pod .*WRONG\n {2}nagios: StaticPodsHealthy$/m);
  assert.match(text, /^ {2}kubelet-probe static-pods .*--expect /m);
  assert.match(text, /: 1 wrong\n$/);
});

test("--verbose gives every command line", async () => {
  const { text } = await run(checks, few("healthy"), ["-v"]);
  const [, count] = /^(\d+) nodes/m.exec(text)!;
  assert.equal(text.match(/^ {2}kubelet-probe /gm)?.length, Number(count));
});

test("takes no other option, and a folder that is there", async () => {
  await assert.rejects(
    selftest(checks, few(), ["--nope"], {}),
    (error) => error instanceof Fault && error.code === "BadUsage",
  );
  await assert.rejects(selftest(checks, few(), ["--dir", "/nonexistent"], {}), /ENOENT/);
  assert.match(selftestHelp(), /--dir DIR\n/);
});
