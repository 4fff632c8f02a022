// deploy/systemd, by systemd's own tools, and its restrictions held against what the binary does.

import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { age, baseEnvironment, binary, execute, folder, needs, root, simulate } from "../support.ts";
import { deployed, find, needing, tool } from "./consumers.ts";

const skip = needing("systemd-analyze", "systemd");
const service = deployed("systemd/kubelet-probe.service");

/** The units in a folder of their own, with the path of the binary that is there. */
function units(t: TestContext, dropIn = false): string {
  const home = folder(t);
  for (const name of ["kubelet-probe.service", "kubelet-probe.timer", "kubelet-probe-failed@.service"]) {
    const text = deployed(`systemd/${name}`).replaceAll("/usr/bin/kubelet-probe", binary);
    writeFileSync(join(home, name), text);
  }
  if (dropIn)
    cpSync(join(root, "deploy/systemd/kubelet-probe.service.d"), join(home, "kubelet-probe.service.d"), {
      recursive: true,
    });
  return home;
}

describe("systemd-analyze verify", () => {
  for (const dropIn of [false, true]) {
    test(dropIn ? "with the drop-in for the textfile" : "the units as they are", { skip }, (t) => {
      const home = units(t, dropIn);
      for (const name of ["kubelet-probe.service", "kubelet-probe.timer", "kubelet-probe-failed@x.service"]) {
        if (name.includes("@")) copyFileSync(join(home, "kubelet-probe-failed@.service"), join(home, name));
        const { status, printed } = tool("systemd-analyze", ["verify", "--man=no", join(home, name)]);
        // What it says of other units of the machine is theirs.
        const own = printed.split("\n").filter((line) => line.includes("kubelet-probe"));
        assert.deepEqual(own, [], printed);
        assert.equal(status, 0, printed);
      }
    });
  }

  test("would say what is wrong", { skip }, (t) => {
    const home = units(t);
    writeFileSync(
      join(home, "kubelet-probe.service"),
      service.replace("ProtectSystem=strict", "ProtectSystem=very").replace("/usr/bin/kubelet-probe", "/nonexistent"),
    );
    const { printed } = tool("systemd-analyze", ["verify", "--man=no", join(home, "kubelet-probe.service")]);
    assert.match(printed, /protect system/i);
    assert.match(printed, /nonexistent/);
  });
});

test("systemd-analyze security: the exposure of the unit is below 2 of 10", { skip }, (t) => {
  const home = units(t);
  const args = ["security", "--offline=true", "--threshold=20", join(home, "kubelet-probe.service")];
  const { status, printed } = tool("systemd-analyze", args);
  assert.equal(status, 0, printed);
});

test("WARNING is no failure of the unit, CRITICAL and UNKNOWN are", () => {
  const success = /^SuccessExitStatus=(.*)$/m.exec(service)?.[1];
  assert.equal(success, "1");
  assert.match(service, /^OnFailure=kubelet-probe-failed@%N\.service$/m);
});

describe("what the unit takes away, the binary does without", () => {
  const words = ["all", "--output", "json"];

  async function onNode(t: TestContext, command: readonly string[], extra: readonly string[] = []) {
    const simulator = await simulate(t, "healthy");
    age(simulator.socket, 3600);
    const [program = "", ...args] = [...command, binary, ...words, ...extra];
    const env = {
      KUBELET_PROBE_SOCKET: simulator.socket,
      KUBELET_PROBE_EXPECT: simulator.expect.join(","),
      KUBELET_PROBE_OWNER: String(process.geteuid?.()),
    };
    return execute(program, args, { env });
  }

  // The kernel's own form of MemoryDenyWriteExecute=, since 6.3; systemd 252 does the same by a filter of system calls.
  const denying = `
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(65, 1, 0, 0, 0) != 0: sys.exit(77)
try:
    mmap.mmap(-1, 4096, prot=7)
    sys.exit(78)
except OSError:
    os.execv(sys.argv[1], sys.argv[1:])
`;

  test("MemoryDenyWriteExecute: the runtime's compiler is refused its memory", {
    skip: needing("python3", "python3"),
  }, async (t) => {
    assert.match(service, /^MemoryDenyWriteExecute=yes$/m);
    const ended = await onNode(t, [find("python3")!, "-c", denying]);
    if (ended.status === 77) return t.skip("this kernel has no such restriction");
    assert.equal(ended.status, 0, `${ended.stdout}${ended.stderr}`);
    assert.equal(JSON.parse(ended.stdout).status, "OK");
  });

  test("CapabilityBoundingSet and NoNewPrivileges: root without any capability", {
    skip: needs.otherUser,
  }, async (t) => {
    assert.match(service, /^CapabilityBoundingSet=$/m);
    const ended = await onNode(t, ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]);
    assert.equal(ended.status, 0, ended.stdout);
  });

  test("PrivateNetwork, ProtectSystem: no network, and a file system that cannot be written", {
    skip: needs.root,
  }, async (t) => {
    const script = 'mount -o remount,bind,ro / 2>/dev/null || mount --bind -o ro / / || exit 77; exec "$@"';
    const ended = await onNode(t, ["unshare", "--net", "--mount", "sh", "-c", script, "sh"]);
    if (ended.status === 77) return t.skip("this machine lets nobody mount");
    assert.equal(ended.status, 0, `${ended.stdout}${ended.stderr}`);
  });

  test("SystemCallFilter and RestrictAddressFamilies: every call it makes is let through", {
    skip: skip || needs.strace,
  }, async (t) => {
    const allowed = callsOf("@system-service");
    assert.ok(allowed.has("openat") && !allowed.has("mount"));
    const trace = join(folder(t), "trace");
    const output = join(folder(t), "a.prom");
    const ended = await onNode(
      t,
      ["strace", "-f", "-qq", "-o", trace],
      ["--output", "prometheus", "--output-file", output],
    );
    assert.equal(ended.status, 0);
    const text = readFileSync(trace, "utf8");
    const made = new Set([...text.matchAll(/^\d+ +(\w+)\(/gm)].map(([, name]) => name!));
    assert.ok(made.size > 20);
    assert.deepEqual(
      [...made].filter((name) => !allowed.has(name)),
      [],
    );
    const families = new Set([...text.matchAll(/\bsocket\((\w+)/g)].map(([, family]) => family));
    assert.deepEqual([...families], ["AF_UNIX"]);
  });

  /** The system calls of a group of systemd's, and of the groups in it. */
  function callsOf(group: string, seen = new Set<string>()): Set<string> {
    const { printed } = tool("systemd-analyze", ["syscall-filter", group]);
    for (const line of printed.split("\n").map((text) => text.trim())) {
      if (line === group || line === "" || line.startsWith("#") || seen.has(line)) continue;
      seen.add(line);
      if (line.startsWith("@")) callsOf(line, seen);
    }
    return seen;
  }
});

describe("cron", () => {
  const line = deployed("cron/kubelet-probe")
    .split("\n")
    .find((text) => text.startsWith("*"))!;

  test("a line of a system crontab", () => {
    assert.match(line, /^(\S+ ){5}root \/usr\/bin\/kubelet-probe all -q$/);
    // cron passes over files of /etc/cron.d whose names have a dot.
    assert.match(basename("cron/kubelet-probe"), /^[A-Za-z0-9_-]+$/);
    assert.ok(deployed("cron/kubelet-probe").endsWith("\n"), "cron passes over a last line without an end");
  });

  test("a mail when something is wrong, none when all is well", async (t) => {
    const command = line.split(" ").slice(6).join(" ").replace("/usr/bin/kubelet-probe", binary);
    for (const [scenario, mail] of [
      ["healthy", /^$/],
      ["failed-pod", /^ALL CRITICAL - StaticPodFailed: [^\n]+\n$/],
      ["missing", /^ALL CRITICAL - SocketMissing: [^\n]+\n$/],
    ] as const) {
      const simulator = await simulate(t, scenario);
      if (scenario !== "missing") age(simulator.socket, 3600);
      const env = {
        ...baseEnvironment,
        KUBELET_PROBE_SOCKET: simulator.socket,
        KUBELET_PROBE_EXPECT: simulator.expect.join(","),
        KUBELET_PROBE_OWNER: String(process.geteuid?.()),
      };
      const home = join(folder(t), "home");
      mkdirSync(home);
      const { stdout, stderr } = await execute("/bin/sh", ["-c", command], { env, cwd: home });
      assert.match(`${stdout}${stderr}`, mail);
    }
  });
});
