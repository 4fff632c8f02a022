// What the command says; that it serves is shown with the built binary.

import assert from "node:assert/strict";
import { existsSync, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Fault } from "../lib/fault.ts";
import { simulate, simulateHelp } from "../lib/simulate.ts";
import { scenarios } from "../lib/simulator.ts";
import { inFolder, withSimulator } from "./probes/support.ts";

async function endOf(words: readonly string[], environment = {}): Promise<readonly [string, number]> {
  let end: readonly [string, number] | undefined;
  await simulate(words, environment, (text, status) => {
    end = [text, status];
  });
  assert.ok(end !== undefined, "it goes on");
  return end;
}

async function refused(words: readonly string[], environment = {}): Promise<string> {
  try {
    await endOf(words, environment);
  } catch (error) {
    assert.ok(error instanceof Fault && error.code === "BadUsage", String(error));
    return error.message;
  }
  throw new Error("accepted");
}

describe("simulate", () => {
  test("--help: its options, and every scenario with the code a probe meets", () => {
    const help = simulateHelp();
    assert.match(help, /^Usage: kubelet-probe simulate --socket PATH /);
    assert.match(help, /^ {2}--scenario NAME$/m);
    const lines = help.split("\n");
    for (const { name, code } of scenarios) {
      assert.ok(
        lines.some((line) => line.startsWith(`  ${name} `) && line.includes(` ${code} `)),
        name,
      );
    }
  });

  test("--list: the scenarios alone", async () => {
    const [text, status] = await endOf(["--list"]);
    assert.equal(status, 0);
    assert.equal(text.trimEnd().split("\n").length, scenarios.length);
  });

  test("needs a socket", async () => {
    assert.equal(await refused([]), "Option --socket is missing: simulate --socket PATH");
  });

  test("says what is accepted", async () => {
    assert.match(
      await refused(["--socket", "/s", "--scenario", "nope"]),
      /^Option --scenario is "nope": accepted is healthy, /,
    );
    assert.match(
      await refused(["--socket", "/s", "--pods", "-1"]),
      /^Option --pods is "-1": accepted is a whole number /,
    );
    assert.match(await refused(["--nope"]), /^Unknown option "--nope": accepted are --socket, /);
    assert.match(
      await refused([], { KUBELET_PROBE_SCENARIO: "x" }),
      /^Environment variable KUBELET_PROBE_SCENARIO is "x"/,
    );
  });

  test("a path that cannot be served on", async () => {
    assert.match(await refused(["--socket", `/${"x".repeat(200)}`]), /^Cannot serve on \/x+: the path needs 201 bytes/);
    assert.match(await refused(["--socket", "/"]), /^Cannot serve on \/: a folder is there/);
  });

  // What a node's environment tells its probes to read is what must not be written to.
  test("takes neither path from the environment", async () => {
    const environment = { KUBELET_PROBE_SOCKET: "/nonexistent/s", KUBELET_PROBE_MANIFESTS: "/nonexistent/m" };
    assert.equal(await refused([], environment), "Option --socket is missing: simulate --socket PATH");
    assert.doesNotMatch(simulateHelp(), /KUBELET_PROBE_(SOCKET|MANIFESTS)/);
    await inFolder(async (folder) => {
      const manifests = join(folder, "m");
      const ended = await refused(["--socket", folder], { KUBELET_PROBE_MANIFESTS: manifests });
      assert.match(ended, /a folder is there/);
      assert.ok(!existsSync(manifests));
    });
  });

  test("a socket that somebody serves is left alone", () =>
    withSimulator("healthy", async ({ socket }) => {
      const before = lstatSync(socket).ino;
      assert.match(
        await refused(["--socket", socket]),
        /^Cannot serve on .*: somebody serves there, accepted is a free /,
      );
      assert.equal(lstatSync(socket).ino, before);
    }));

  test("a manifest that is there already is left alone, and nothing is served", () =>
    inFolder(async (folder) => {
      const [socket, own] = [join(folder, "s.sock"), join(folder, "etcd.yaml")];
      writeFileSync(own, "precious");
      assert.match(
        await refused(["--socket", socket, "--manifests", folder]),
        /^Cannot write the manifests into .*: another etcd.yaml is there, and stays; accepted is /,
      );
      assert.equal(readFileSync(own, "utf8"), "precious");
      assert.ok(!existsSync(socket));
    }));
});
