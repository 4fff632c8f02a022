// Public cases about the socket itself; test/cases/CASES.md has each one's source and the right behaviour.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import {
  accepts,
  age,
  asOtherUser,
  baseEnvironment,
  binary,
  binaryForAll,
  type Ended,
  execute,
  folder,
  needs,
  otherUid,
  probe,
  root,
  serve,
  simulate,
  startKubelet,
} from "../support.ts";

const isolated =
  needs.root ||
  (spawnSync("unshare", ["-m", "-p", "-f", "--mount-proc", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0
    ? false
    : "this machine allows no namespaces");

/** Runs a shell script where mounts and processes are its own; $KP is the binary, $HERE a folder. */
async function inMountNamespace(t: TestContext, script: string): Promise<Ended> {
  return execute("unshare", ["-m", "--propagation", "private", "-p", "-f", "--mount-proc", "sh", "-euc", script], {
    env: { KP: binary, HERE: folder(t) },
  });
}

// Serves at $1 as process $served; ends with the script.
const serveFunction = `
serve() {
  "$KP" simulate --scenario healthy --socket "$1" >"$HERE/served" &
  served=$!
  until grep -q serving "$HERE/served"; do kill -0 $served; sleep 0.02; done
}
stop() { kill -9 $served; wait $served || true; : >"$HERE/served"; }
trap 'kill -9 $served 2>/dev/null || true' EXIT
`;

describe("b01: the probe runs as a user that is not root (openshift/must-gather#551, kubernetes/website#42934)", () => {
  for (const [check, ...args] of [
    ["socket"],
    ["ready"],
    ["static-pods", "--expect-count", "1:"],
    ["rate-limit"],
    ["all", "--expect-count", "1:"],
  ] as const) {
    test(`${check}: UNKNOWN, never missing and never OK`, { skip: needs.otherUser }, async (t) => {
      // What the kubelet makes under umask 022, in a folder that anybody may enter.
      const { socket } = await simulate(t, "healthy");
      chmodSync(dirname(dirname(socket)), 0o755);
      assert.ok(await accepts(socket));
      const [command, ...words] = asOtherUser;
      const run = (...more: string[]) =>
        execute(command!, [...words, binaryForAll(t), check, ...args, "--socket", socket, ...more]);
      const ended = await run();
      assert.equal(ended.status, 3, ended.stdout);
      assert.match(ended.stdout, /UNKNOWN - (PermissionDenied|InventoryUnavailable): No permission to look at /);
      assert.match(ended.stdout, new RegExp(`as uid ${otherUid} `));
      assert.equal((await run("--profile", "npd")).status, 2);
      assert.equal((await run("--profile", "kube")).status, 1);
    });
  }

  test("mode 0755 is fine for root", { skip: needs.root }, async (t) => {
    const { socket } = await simulate(t, "healthy");
    assert.equal((await probe(["socket", "--socket", socket])).status, 0);
  });
});

describe("b02: the socket file is mounted as a file (DataDog/datadog-operator#1674, kubernetes/website#42339)", () => {
  const expected = caseJson("b02") as { readonly expectExit: number; readonly mustSay: string };

  test("a mount that the kubelet's restart left behind: SocketDead, mount the directory", {
    skip: isolated,
  }, async (t) => {
    const ended = await inMountNamespace(
      t,
      `${serveFunction}
      mkdir "$HERE/mounted"
      : >"$HERE/mounted/pods-api.sock"
      serve "$HERE/pods-api/pods-api.sock"
      mount --bind "$HERE/pods-api/pods-api.sock" "$HERE/mounted/pods-api.sock"
      "$KP" ready --profile npd --socket "$HERE/mounted/pods-api.sock"
      stop
      serve "$HERE/pods-api/pods-api.sock"
      "$KP" ready --profile npd --socket "$HERE/pods-api/pods-api.sock"
      set +e
      "$KP" ready --socket "$HERE/mounted/pods-api.sock"
      status=$?
      set -e
      stop
      exit $status`,
    );
    const [before, after, verdict] = ended.stdout.split("\n");
    assert.equal(before, "Ready", ended.stderr);
    assert.equal(after, "Ready");
    assert.match(verdict!, /^READY CRITICAL - SocketDead: /);
    assert.match(verdict!, new RegExp(`mount the ${expected.mustSay}, not the file`));
    assert.equal(ended.status, expected.expectExit);
  });
});

describe("b04: another kubelet root (hetznercloud/csi-driver#536, k0sproject/k0s#7585)", () => {
  const tree = readFileSync(join(root, "test", "cases", "b04", "tree.txt"), "utf8")
    .trim()
    .split("\n");
  const other = tree.find((path) => path.endsWith("pods-api.sock"))!;

  test("the default path: SocketMissing, with a hint at the root that is there", { skip: isolated }, async (t) => {
    const ended = await inMountNamespace(
      t,
      `${serveFunction}
      mount -t tmpfs -o mode=755 none /var/lib
      ${tree.map((path) => `mkdir -p ${dirname(path)}`).join("\n")}
      serve ${other}
      for args in "" "--socket ${other}" "--kubelet-root ${dirname(dirname(other))}"; do
        set +e
        "$KP" ready $args
        echo "? $?"
        set -e
      done
      stop`,
    );
    assert.equal(ended.status, 0, ended.stderr);
    const [verdict, status, bySocket, socketStatus, byRoot, rootStatus] = ended.stdout.split("\n");
    assert.match(
      verdict!,
      /^READY CRITICAL - SocketMissing: No socket at \/var\/lib\/kubelet\/pods-api\/pods-api.sock; /,
    );
    assert.ok(verdict!.includes(other), verdict);
    assert.doesNotMatch(verdict!, /disabled|gate|turned off/i);
    assert.equal(status, "? 2");
    assert.match(bySocket!, /^READY OK - Ready: /);
    assert.equal(socketStatus, "? 0");
    assert.match(byRoot!, /^READY OK - Ready: /);
    assert.equal(rootStatus, "? 0");
  });
});

describe("b06: SELinux refuses though owner and mode are right (containers/container-selinux#275, #326)", () => {
  const expected = caseJson("b06") as {
    readonly expectExit: number;
    readonly mustSay: string;
    readonly enforce: string;
  };
  const denied = "strace -f -qq -o /dev/null -e trace=connect -e inject=connect:error=EACCES";

  test("enforcing: PermissionDenied that names SELinux", { skip: isolated || needs.strace }, async (t) => {
    const ended = await inMountNamespace(
      t,
      `${serveFunction}
      serve "$HERE/pods-api/pods-api.sock"
      mount -t tmpfs none /sys/fs
      mkdir /sys/fs/selinux
      echo ${expected.enforce} >/sys/fs/selinux/enforce
      set +e
      ${denied} "$KP" ready --socket "$HERE/pods-api/pods-api.sock"
      status=$?
      set -e
      stop
      exit $status`,
    );
    assert.match(ended.stdout, /^READY UNKNOWN - PermissionDenied: /, ended.stderr);
    assert.match(ended.stdout, new RegExp(expected.mustSay));
    assert.match(ended.stdout, /mode 0755 0:0 allows it/);
    assert.doesNotMatch(ended.stdout, /chmod/);
    assert.equal(ended.status, expected.expectExit);
  });

  test("without SELinux: it names the kind of thing that refuses", { skip: needs.root || needs.strace }, async (t) => {
    const { socket } = await simulate(t, "healthy");
    const [command, ...words] = denied.split(" ");
    const ended = await execute(command!, [...words, binary, "ready", "--socket", socket]);
    assert.match(ended.stdout, /^READY UNKNOWN - PermissionDenied: .*(SELinux|security module)/);
    assert.equal(ended.status, 3);
  });
});

describe("b10: the file of a kubelet that stopped (kubernetes/kubernetes#125506, #128696)", () => {
  for (const [check, ...args] of [["socket"], ["ready"], ["all", "--expect-count", "0:"]] as const) {
    test(`${check}: SocketDead, CRITICAL`, async (t) => {
      const socket = join(folder(t), "pods-api", "pods-api.sock");
      const server = await serve(t, binary, ["simulate", "--socket", socket], { socket });
      assert.equal((await probe([check, ...args, "--socket", socket])).status, 0);
      await server.stop("SIGKILL");
      const ended = await probe([check, ...args, "--socket", socket]);
      assert.match(ended.stdout, /CRITICAL - SocketDead: Nobody listens on /);
      assert.equal(ended.status, 2);
    });
  }

  test("the name that /proc/net/unix has for it does not matter", { skip: needs.kubelet }, async (t) => {
    // The kubelet listens on a temporary name and renames the file.
    const socket = join(folder(t), "pods-api", "pods-api.sock");
    const server = await startKubelet(t, [], socket);
    assert.ok(!readFileSync("/proc/net/unix", "utf8").includes(socket));
    assert.equal((await probe(["socket", "--socket", socket])).status, 0);
    await server.stop("SIGKILL");
    const ended = await probe(["socket", "--socket", socket]);
    assert.match(ended.stdout, /^SOCKET CRITICAL - SocketDead: /);
    assert.equal(ended.status, 2);
  });

  test("a container that looks at it through a link to the folder is told the same", async (t) => {
    const simulator = await simulate(t, "dead");
    const link = join(folder(t), "host");
    symlinkSync(dirname(simulator.socket), link);
    const ended = await probe([
      "ready",
      "--socket",
      join(link, "pods-api.sock"),
      "--profile",
      "kube",
      "--for",
      "liveness",
    ]);
    assert.match(ended.stdout, /^SocketDead: /);
    assert.equal(ended.status, 1);
  });
});

describe("a15: the manifest directory does not exist on a worker (kubernetes/kops#5463, k3s-io/k3s#1691)", () => {
  test("no static pods expected, none there: OK, and it says the directory is absent", async (t) => {
    const { socket } = await simulate(t, "healthy", { staticPods: 0 });
    const absent = join(folder(t), "manifests");
    const ended = await probe(["static-pods", "--socket", socket, "--manifests", absent]);
    assert.match(ended.stdout, /^STATIC-PODS OK - StaticPodsHealthy: no static pods expected: \S+ does not exist \| /);
    assert.equal(ended.status, 0);
  });

  test("the same by staticPodPath of the kubelet's configuration", async (t) => {
    const { socket } = await simulate(t, "healthy", { staticPods: 0 });
    const home = folder(t);
    writeFileSync(join(home, "config.yaml"), `kind: KubeletConfiguration\nstaticPodPath: ${join(home, "manifests")}\n`);
    const ended = await probe(["static-pods", "--socket", socket, "--kubelet-config", join(home, "config.yaml")]);
    assert.match(ended.stdout, /^STATIC-PODS OK - StaticPodsHealthy: no static pods expected: \S+ does not exist/);
    assert.equal(ended.status, 0);
  });

  test("CRITICAL where pods are demanded", async (t) => {
    const { socket } = await simulate(t, "healthy", { staticPods: 0 });
    age(socket, 3600);
    const absent = join(folder(t), "manifests");
    const args = ["static-pods", "--socket", socket, "--manifests", absent, "--expect-count", "1:"];
    const ended = await probe(args);
    assert.match(ended.stdout, /^STATIC-PODS CRITICAL - StaticPodMissing: /);
    assert.equal(ended.status, 2);
  });

  test("a path with a file where a folder belongs is UNKNOWN", async (t) => {
    const { socket } = await simulate(t, "healthy", { staticPods: 0 });
    const ended = await probe(["static-pods", "--socket", socket, "--manifests", "/etc/passwd/manifests"]);
    assert.match(ended.stdout, /^STATIC-PODS UNKNOWN - ManifestsUnreadable: .*\/etc\/passwd\/manifests/);
    assert.equal(ended.status, 3);
  });

  test("a folder that is closed to this user is UNKNOWN", { skip: needs.otherUser }, async (t) => {
    const home = folder(t);
    chmodSync(home, 0o755);
    mkdirSync(join(home, "manifests"), { mode: 0o700 });
    const [command, ...words] = asOtherUser;
    // Its own simulator: this user may use no other socket.
    const mine = folder(t);
    spawnSync("chown", [String(otherUid), mine]);
    const socket = join(mine, "s.sock");
    const copy = binaryForAll(t);
    await serve(t, command!, [...words, copy, "simulate", "--static-pods", "0", "--socket", socket], {
      socket,
      env: baseEnvironment,
    });
    const args = ["static-pods", "--socket", socket, "--manifests", join(home, "manifests")];
    const ended = await execute(command!, [...words, copy, ...args]);
    assert.match(ended.stdout, /^STATIC-PODS UNKNOWN - ManifestsUnreadable: .*EACCES/);
    assert.equal(ended.status, 3);
  });
});

function caseJson(id: string): unknown {
  return JSON.parse(readFileSync(join(root, "test", "cases", id, "scenario.json"), "utf8"));
}
