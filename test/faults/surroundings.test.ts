// What the probe is run in, at its worst: signals at every point of a run, and surroundings that lack something. The
// transcripts of test/cli hold what a shell can say; here is what takes timing, privileges or another program.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { profiles } from "../../lib/exit.ts";
import {
  baseEnvironment,
  binary,
  binaryForAll,
  cleanUp,
  execute,
  folder,
  needs,
  root,
  simulate,
  until,
} from "../support.ts";
import { runtimes } from "./cells.ts";
import { serveFault } from "./servers.ts";
import { exits } from "./table.ts";

const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGXCPU", "SIGUSR1", "SIGUSR2"] as const;

/** A run that is left to itself until it is told to end. */
interface Run {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly status: number | null; readonly signal: string | null; readonly stdout: string }>;
}

function start(command: readonly string[], words: readonly string[]): Run {
  const [program = "", ...args] = [...command, ...words];
  const child = spawn(program, args, { env: baseEnvironment, stdio: ["ignore", "pipe", "inherit"] });
  let stdout = "";
  child.stdout!.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  const ended = once(child, "close").then(([status, signal]) => ({ status, signal, stdout }));
  return { child, ended };
}

/** A server that waits in one phase of a call, and tells when a client is there. */
const phases: Readonly<Record<string, readonly [fault: string, ...words: string[]]>> = {
  "no settings yet": ["hang-settings", "ready"],
  "no answer yet": ["hang-headers", "ready"],
  "half an answer": ["dribble-settings", "ready"],
  "an answer that never ends": ["empty-data-flood", "ready"],
  "settings without an end": ["settings-flood-first", "ready"],
  "a watch without an end": ["watch-flood", "static-pods", "--source", "watch", "--expect-count", "0:"],
};

async function serve(t: TestContext, fault: string) {
  const path = join(folder(t), "pods-api.sock");
  const server = await serveFault(fault, path);
  cleanUp(t, () => server.close());
  return { path, server };
}

describe("a signal ends a run with UNKNOWN and a line, whatever it waits for", { concurrency: 2 }, () => {
  for (const [phase, [fault, ...words]] of Object.entries(phases)) {
    test(phase, async (t) => {
      const { path, server } = await serve(t, fault);
      for (const [at, signal] of signals.entries()) {
        const profile = profiles[at % profiles.length]!;
        const run = start([binary], [...words, "--socket", path, "--profile", profile, "--timeout", "50s"]);
        await until("a client", () => server.clients > at);
        run.child.kill(signal);
        const { status, signal: by, stdout } = await run.ended;
        assert.deepEqual([status, by], [exits[profile].UNKNOWN, null], `${signal}: ${stdout}`);
        assert.match(stdout, new RegExp(`^(KUBELET-PROBE UNKNOWN - )?InternalError: ended by ${signal} [^\\n]*\\n$`));
      }
    });
  }

  test("between two tries of --wait", async (t) => {
    const simulator = await simulate(t, "initializing");
    const run = start([binary], ["ready", "--wait", "--socket", simulator.socket, "--timeout", "50s"]);
    await until("the third try", () => simulator.calls > 2);
    run.child.kill("SIGTERM");
    assert.equal((await run.ended).status, exits.nagios.UNKNOWN);
  });

  test("with a verdict that nobody reads, it is the verdict's", async (t) => {
    const path = join(folder(t), "none");
    const never = join(folder(t), "never");
    const script =
      'mkfifo "$2"; sleep 60 <>"$2" & s=$!; "$0" ready --socket "$1" --timeout 3s >"$2" & p=$!; sleep 0.5; kill -TERM $p; wait $p; r=$?; kill $s; exit $r';
    const filled = await execute("sh", ["-c", script, binary, path, never]);
    assert.equal(filled.status, exits.nagios.CRITICAL);
  });

  for (const runtime of ["bun", "deno", "node"]) {
    test(`on ${runtime}`, async (t) => {
      const { path, server } = await serve(t, "hang-headers");
      for (const [at, signal] of (["SIGTERM", "SIGINT", "SIGHUP"] as const).entries()) {
        const run = start(runtimes[runtime]!, ["ready", "--socket", path, "--timeout", "50s"]);
        await until("a client", () => server.clients > at);
        run.child.kill(signal);
        const { status, stdout } = await run.ended;
        assert.equal(status, exits.nagios.UNKNOWN, stdout);
        assert.match(stdout, new RegExp(`InternalError: ended by ${signal} `));
      }
    });
  }

  test("before the program has begun, it is the signal's own end and never a status of the table", async (t) => {
    const { path } = await serve(t, "hang-headers");
    let [early, told] = [0, 0];
    for (let delayMs = 0; delayMs <= 60; delayMs += 4) {
      const run = start([binary], ["ready", "--socket", path, "--timeout", "50s"]);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      run.child.kill("SIGTERM");
      const { status, signal, stdout } = await run.ended;
      if (signal === "SIGTERM") early++;
      else {
        assert.equal(status, exits.nagios.UNKNOWN, stdout);
        assert.match(stdout, /ended by SIGTERM/);
        told++;
      }
    }
    t.diagnostic(`${early} of ${early + told} ended before the program had begun`);
  });
});

describe("what cannot be ended from inside ends by the timeout that docs/faults.md puts around it", () => {
  const document = readFileSync(join(root, "docs", "faults.md"), "utf8");
  const line = /```sh\n(timeout .*kubelet-probe all;.*)\n```/.exec(document)![1]!;
  // As it is there, with the program and the times of a test.
  const around = (seconds: string, kill: string) =>
    line.replace("kubelet-probe all", '"$@"').replace("--kill-after=2s 15s", `--kill-after=${kill} ${seconds}`);

  for (const runtime of Object.keys(runtimes)) {
    test(`${runtime}: it is asked first, and answers`, async (t) => {
      const { path } = await serve(t, "hang-headers");
      const words = [...runtimes[runtime]!, "ready", "--socket", path, "--timeout", "50s"];
      const { status, stdout } = await start(["sh", "-c", around("2s", "30s"), "sh"], words).ended;
      assert.equal(status, exits.nagios.UNKNOWN);
      assert.match(stdout, /^KUBELET-PROBE UNKNOWN - InternalError: ended by SIGTERM /);
    });

    test(`${runtime}: one that spins, and hears nothing any more, is killed`, async (t) => {
      const { path } = await serve(t, "hang-headers");
      const spin = join(folder(t), "spin.mjs");
      writeFileSync(spin, 'process.on("SIGTERM", () => {}); setTimeout(() => { for (;;); }, 300);');
      const [program = "", ...args] = runtimes[runtime]!;
      const command = [program, ...(runtime === "deno" ? ["run", `--preload=${spin}`, ...args.slice(1)] : args)];
      const env = ["env", `BUN_OPTIONS=--preload=${spin}`, `NODE_OPTIONS=--import=${spin}`];
      // Its own deadline would come long before.
      const words = [...env, ...command, "ready", "--socket", path, "--timeout", "800ms"];
      const { status, stdout } = await start(["sh", "-c", around("3s", "0.5s"), "sh"], words).ended;
      assert.deepEqual([status, stdout], [exits.nagios.UNKNOWN, ""]);
    });
  }

  test("a verdict passes through it", async (t) => {
    const words = [binary, "ready", "--socket", join(folder(t), "none")];
    const { status, stdout } = await start(["sh", "-c", around("15s", "2s"), "sh"], words).ended;
    assert.equal(status, exits.nagios.CRITICAL);
    assert.match(stdout, /SocketMissing/);
  });
});

describe("surroundings that lack something", () => {
  const readOnly =
    needs.root ||
    (spawnSync("unshare", ["-m", "sh", "-c", "mount --bind -o ro / / || mount -o remount,bind,ro /"]).status === 0
      ? false
      : "needs to be allowed to mount");

  test("a read-only file system, the folder of --output-file too", { skip: readOnly }, async (t) => {
    const { socket, expect } = await simulate(t, "healthy");
    const script = `(mount --bind -o ro / / || mount -o remount,bind,ro /) && cd / && exec "$0" all --socket "$1" --expect "$2"`;
    const ended = await execute("unshare", ["-m", "sh", "-c", script, binary, socket, expect.join(",")]);
    assert.equal(ended.status, exits.nagios.OK, ended.stdout + ended.stderr);
    const out = join(folder(t), "a.prom");
    const withFile = `${script} --output prometheus --output-file "$3"`;
    const refused = await execute("unshare", ["-m", "sh", "-c", withFile, binary, socket, expect.join(","), out]);
    assert.equal(refused.status, exits.nagios.OK, "the verdict's status, written or not");
    assert.equal(existsSync(out), false);
    assert.match(refused.stdout, /^ALL OK - /);
  });

  for (const [what, script] of Object.entries({
    "no HOME and no user": 'exec env -i "$0" "$@"',
    "a HOME that is not there": 'HOME=/nonexistent TMPDIR=/nonexistent XDG_CACHE_HOME=/nonexistent exec "$0" "$@"',
    "no /dev": 'mount -t tmpfs none /dev && exec "$0" "$@"',
    "a /tmp that is full": 'mount -t tmpfs -o size=4k none /mnt && cd /mnt && TMPDIR=/mnt exec "$0" "$@"',
    "a locale of its own": 'LC_ALL=tr_TR.UTF-8 LANG=de_DE exec "$0" "$@"',
    "a time zone that is none": 'TZ=:/nonexistent exec "$0" "$@"',
    "every signal ignored": 'trap "" TERM INT HUP PIPE QUIT ALRM USR1 USR2; exec "$0" "$@"',
    "the lowest priority": 'exec nice -n 19 "$0" "$@"',
  })) {
    const skip = /mount/.test(script) ? readOnly : false;
    test(what, { skip }, async (t) => {
      const { socket, expect } = await simulate(t, "healthy");
      const shell = /mount/.test(script) ? ["unshare", "-m", "sh"] : ["sh"];
      const [command = "", ...args] = [...shell, "-c", script, binary];
      const words = ["all", "--socket", socket, "--expect", expect.join(","), "--timeout", "20s"];
      const ended = await execute(command, [...args, ...words]);
      assert.equal(ended.status, exits.nagios.OK, `${ended.stdout}${ended.stderr}`);
      assert.match(ended.stdout, /^ALL OK - /);
      const dead = await execute(command, [...args, "ready", "--socket", join(folder(t), "none"), "--profile", "npd"]);
      assert.equal(dead.status, exits.npd.CRITICAL, `${dead.stdout}${dead.stderr}`);
    });
  }

  test("no /proc, which the runtime needs: its own end, and no status of the table", { skip: readOnly }, async () => {
    const script = 'umount -l /proc && exec "$0" ready --socket /nonexistent';
    const { status, signal, stdout } = await execute("unshare", ["-m", "sh", "-c", script, binary]);
    assert.deepEqual([status, signal, stdout], [null, "SIGABRT", ""]);
  });

  test("memory: an answer takes under 48 MiB of its own, a flood of frames or of pods under 96", {
    skip: needsPython(),
  }, async (t) => {
    const peakOf = async (fault: string, ...words: string[]) => {
      const { path } = await serve(t, fault);
      const { stdout } = await execute("python3", ["-c", peak, binary, ...words, "--socket", path]);
      const mebibytes = Number(/peak (\d+)/.exec(stdout)?.[1]);
      assert.ok(mebibytes > 1, stdout);
      return mebibytes;
    };
    // How many pages of the binary's file are counted to a run depends on how the file came into the page cache.
    const least = await peakOf("empty-listing", "ready");
    const peaks: string[] = [];
    for (const [fault, ...words] of [
      ["answer-64-mib", "ready"],
      ["header-bomb", "ready"],
      ["message-1mb", "ready"],
      ["prefix-4gib", "ready"],
      ["many-fields", "ready"],
      ["settings-flood", "ready", "--timeout", "3s"],
      ["unknown-flood", "ready", "--timeout", "3s"],
      ["tiny-pods", "ready"],
    ] as const) {
      const more = (await peakOf(fault, ...words)) - least;
      peaks.push(`${fault} ${more}`);
      assert.ok(more < (/flood$|^tiny-pods$/.test(fault) ? 96 : 48), `${fault}: ${more} MiB more than ${least}`);
    }
    t.diagnostic(`MiB resident at most beyond those of an empty listing, ${least}: ${peaks.join(", ")}`);
  });

  test("memory: a watch that adds pods for ever and never syncs", { skip: needsPython() }, async (t) => {
    for (const fault of ["watch-flood", "watch-flood-large"]) {
      const { path } = await serve(t, fault);
      const words = ["static-pods", "--source", "watch", "--expect-count", "0:", "--timeout", "30s", "--socket", path];
      const { stdout } = await execute("python3", ["-c", peak, binary, ...words]);
      const mebibytes = Number(/peak (\d+)/.exec(stdout)?.[1]);
      assert.ok(mebibytes > 1 && mebibytes < 256, `${fault}: ${mebibytes} MiB`);
    }
  });

  test("a memory limit of 64 MiB by systemd", {
    skip: existsSync("/run/systemd/system") && needs.root === false ? false : "only as root on a system run by systemd",
  }, async (t) => {
    const { socket, expect } = await simulate(t, "healthy");
    const limits = ["-p", "MemoryMax=64M", "-p", "MemorySwapMax=0"];
    const words = [binaryForAll(t), "all", "--socket", socket, "--expect", expect.join(",")];
    const ended = await execute("systemd-run", ["--pipe", "--wait", "--quiet", ...limits, ...words]);
    assert.equal(ended.status, exits.nagios.OK, ended.stdout + ended.stderr);
  });
});

const peak = `
import os, sys
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print("peak", usage.ru_maxrss // 1024)
`;

function needsPython(): string | false {
  return spawnSync("python3", ["--version"]).error === undefined ? false : "needs python3 (Debian package python3)";
}

describe("files", { skip: needs.strace }, () => {
  /** The calls that name a file, with what they name. */
  async function trace(t: TestContext, words: readonly string[]) {
    const log = join(folder(t), "strace.log");
    const args = ["-f", "-qq", "-s", "300", "-e", "signal=none", "-e", "trace=%file", "-o", log];
    const ended = await execute("strace", [...args, binary, ...words]);
    const calls = [...readFileSync(log, "utf8").matchAll(/^\d+\s+(\w+)\((.*)$/gm)].map(([, name, rest]) => ({
      name: name!,
      rest: rest!,
      paths: [...rest!.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, path]) => path!),
    }));
    return { ended, calls };
  }

  const changing =
    /^(creat|mk\w+|unlink\w*|rmdir|rename\w*|link\w*|symlink\w*|chmod|fchmodat\w*|l?chown|fchownat|truncate|utimensat)$/;

  test("with --output-file nothing else is written, not even for a moment", async (t) => {
    const simulator = await simulate(t, "healthy");
    const home = folder(t);
    const file = join(home, "kubelet.prom");
    const beside = /^\/.*\/\.kubelet\.prom\.\d+$/;
    for (let run = 0; run < 2; run++) {
      const words = ["all", "--socket", simulator.socket, "--expect", simulator.expect.join(",")];
      const { ended, calls } = await trace(t, [...words, "--output", "prometheus", "--output-file", file]);
      assert.equal(ended.status, exits.nagios.OK, ended.stdout);
      const opened = calls
        .filter(({ name, rest }) => name.startsWith("open") && /O_WRONLY|O_RDWR|O_CREAT/.test(rest))
        .map(({ paths }) => paths[0]!)
        .filter((path) => !/^\/(proc\/self|dev)\/fd\/1$|^\/dev\/null$/.test(path));
      assert.ok(opened.length > 0 && opened.every((path) => beside.test(path)), opened.join(" "));
      const changed = calls.filter(({ name }) => changing.test(name)).flatMap(({ paths }) => paths);
      assert.ok(changed.includes(file));
      assert.deepEqual(
        changed.filter((path) => path !== file && !beside.test(path)),
        [],
      );
      assert.deepEqual(readdirSync(home), ["kubelet.prom"]);
      assert.equal(statSync(file).mode & 0o7777, 0o644);
    }
  });

  test("it reads what SECURITY.md lists, and nothing else", async (t) => {
    const simulator = await simulate(t, "failed-pod");
    const manifests = join(folder(t), "manifests");
    mkdirSync(manifests);
    for (const [name, content] of Object.entries(simulator.manifests)) writeFileSync(join(manifests, name), content);
    const document = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
    const known = [
      // The loader of the C library, and the program itself.
      /^\/etc\/ld\.so|^\/(usr\/)?lib/,
      new RegExp(`^${binary}$|^/proc/self/(exe|fd(/\\d+)?)$`),
      // Looking for the process called kubelet.
      /^\/proc(\/\d+(\/(comm|cmdline|exe|root|cwd|status|stat))?\/?)?$/,
      /^\/sys\/fs\/cgroup\//,
    ];
    for (const words of [
      ["all", "-v", "--socket", simulator.socket, "--manifests", manifests],
      ["socket", "-v", "--socket", simulator.socket],
      ["ready", "--socket", join(folder(t), "none")],
      ["static-pods", "--kubelet-root", join(folder(t), "root"), "-v"],
    ]) {
      const { calls } = await trace(t, words);
      const read = calls
        .filter(({ name }) => /^(open|openat|openat2|readlink|readlinkat)$/.test(name))
        .flatMap(({ paths }) => paths.slice(0, 1))
        // What the command line names.
        .filter((path) => path !== "" && !path.startsWith(tmpdir()));
      const unknown = read.filter((path) => !known.some((one) => one.test(path)) && !document.includes(`\`${path}\``));
      assert.deepEqual(unknown, [], words.join(" "));
    }
  });
});

describe("variables of the runtime", () => {
  /** A file that leaves a mark when it is run, and what would run it. */
  function hostile(t: TestContext) {
    const home = folder(t);
    const canary = join(home, "canary.js");
    const mark = join(home, "mark");
    writeFileSync(canary, `require("fs").writeFileSync(${JSON.stringify(mark)}, "")`);
    mkdirSync(join(home, "empty"));
    return { canary, ran: () => existsSync(mark) };
  }

  const variables = (canary: string) => ({
    BUN_OPTIONS: `--preload=${canary}`,
    BUN_CONFIG_PRELOAD: canary,
    NODE_OPTIONS: `--require=${canary}`,
    DENO_OPTIONS: `--import=${canary}`,
  });

  test("BUN_OPTIONS and BUN_BE_BUN do what SECURITY.md says, so that there is something to shut out", async (t) => {
    const { canary, ran } = hostile(t);
    const socket = join(folder(t), "none");
    await execute(binary, ["ready", "--socket", socket], { env: { BUN_OPTIONS: `--preload=${canary}` } });
    const byOptions = ran();
    const asBun = await execute(binary, ["-e", "console.log('bun')"], { env: { BUN_BE_BUN: "1" } });
    t.diagnostic(`BUN_OPTIONS runs code: ${byOptions}; BUN_BE_BUN: ${asBun.stdout.trim()}`);
    const text = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
    assert.match(text, /BUN_OPTIONS/);
    assert.match(text, /BUN_BE_BUN/);
  });

  test("NODE_OPTIONS and the like do nothing", async (t) => {
    const { canary, ran } = hostile(t);
    const { BUN_OPTIONS: _, ...others } = variables(canary);
    const { socket } = await simulate(t, "healthy");
    const ended = await execute(binary, ["ready", "--socket", socket], { env: others });
    assert.equal(ended.status, exits.nagios.OK);
    assert.equal(ran(), false);
  });

  test("env -i, as SECURITY.md has it", async (t) => {
    const { canary, ran } = hostile(t);
    const { socket } = await simulate(t, "healthy");
    const env = { ...variables(canary), BUN_BE_BUN: "1" };
    const ended = await execute("env", ["-i", binary, "ready", "--socket", socket], { env });
    assert.equal(ended.status, exits.nagios.OK, ended.stdout);
    assert.equal(ran(), false);
  });

  test("the lines of SECURITY.md for a unit, each alone", async (t) => {
    const { canary, ran } = hostile(t);
    const { socket } = await simulate(t, "healthy");
    const text = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
    const lines = /```ini\n\[Service\]\n([\s\S]*?)```/.exec(text)![1]!;
    const command = /^ExecStart=(.*)$/m.exec(lines)![1]!;
    assert.ok(command.startsWith("/usr/bin/env -i /usr/local/bin/kubelet-probe "), command);
    const unset = /^UnsetEnvironment=(.*)$/m.exec(lines)![1]!.split(" ");
    const env = { ...variables(canary), BUN_BE_BUN: "1" };
    const words = [binary, "ready", "--socket", socket];
    const cleared = await execute("/usr/bin/env", ["-i", ...words], { env });
    const without = await execute("/usr/bin/env", [...unset.flatMap((name) => ["-u", name]), ...words], { env });
    assert.deepEqual([cleared.status, without.status], [exits.nagios.OK, exits.nagios.OK]);
    assert.equal(ran(), false);
  });

  const sudo =
    needs.root || (spawnSync("sudo", ["--version"]).error === undefined ? false : "needs sudo (Debian package sudo)");
  test("sudo with the rule of SECURITY.md", { skip: sudo || readOnlySudo() }, async (t) => {
    const { canary, ran } = hostile(t);
    const program = binaryForAll(t);
    const { socket } = await simulate(t, "healthy");
    const text = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
    const rule = /```sudoers\n([\s\S]*?)```/.exec(text)?.[1];
    assert.ok(rule, "SECURITY.md has a rule for sudo");
    const rules = join(folder(t), "rules");
    mkdirSync(rules);
    // root stands for the user of the agent: there need not be one.
    const own = rule
      .replaceAll("/usr/local/bin/kubelet-probe", program)
      .replaceAll(/ready --socket \S+/g, `ready --socket ${socket}`)
      .replace(/^nagios /m, "root ");
    writeFileSync(join(rules, "kubelet-probe"), own, { mode: 0o440 });
    const script = 'mount --bind "$1" /etc/sudoers.d && shift && exec env "$@"';
    const hostileEnvironment = Object.entries({ ...variables(canary), BUN_BE_BUN: "1" }).map(
      ([key, value]) => `${key}=${value}`,
    );
    const words = ["sudo", "-n", program, "ready", "--socket", socket];
    const ended = await execute("unshare", ["-m", "sh", "-c", script, "sh", rules, ...hostileEnvironment, ...words]);
    assert.equal(ended.status, exits.nagios.OK, ended.stdout + ended.stderr);
    assert.equal(ran(), false);
  });

  function readOnlySudo(): string | false {
    const tried = spawnSync("unshare", ["-m", "sh", "-c", "mount --bind /etc/sudoers.d /etc/sudoers.d"]);
    return tried.status === 0 ? false : "needs to be allowed to mount";
  }
});
