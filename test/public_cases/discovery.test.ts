// Where the kubelet is said to be by nothing but its own command line, on the built binary: a process of that name, in a
// process namespace of its own so that no other kubelet of this machine is seen.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, type TestContext, test } from "node:test";
import { binary, type Ended, execute, folder, needs } from "../support.ts";

const skip =
  needs.root ||
  (spawnSync("unshare", ["-m", "-p", "--fork", "--kill-child", "--mount-proc", "true"]).status === 0
    ? false
    : "this machine does not allow a process namespace");

// `kubelet NAME OPTION...` is a shell under the kubelet's name: it stays until it is ended, whatever its options are.
// `serve NODE` is a simulator below $HERE/root.
const functions = `
cp "$(readlink -f /bin/sh)" "$HERE/kubelet"
kubelet() {
  "$HERE/kubelet" -c 'sleep 60; :' "$@" &
  until [ "$(cat /proc/$!/comm)" = kubelet ]; do sleep 0.02; done
}
serve() {
  mkdir "$HERE/root"
  "$KP" simulate --scenario healthy --node-name "$1" --socket "$HERE/root/pods-api/pods-api.sock" >"$HERE/served" &
  until grep -q serving "$HERE/served"; do kill -0 $! || exit 9; sleep 0.02; done
  touch -d '1 hour ago' "$HERE/root/pods-api/pods-api.sock"
}
pod() { printf 'apiVersion: v1\\nkind: Pod\\nmetadata: {name: %s, namespace: kube-system}\\nspec: {containers: [{name: c, image: "%s"}]}\\n' "$1" "$2"; }
`;

/** Runs a shell script in which $KP is the binary and $HERE a folder; whatever it started ends with it. */
function alone(t: TestContext, script: string): Promise<Ended> {
  return execute(
    "unshare",
    ["-m", "-p", "--fork", "--kill-child", "--mount-proc", "sh", "-uc", `${functions}\n${script}`],
    {
      env: { KP: binary, HERE: folder(t) },
    },
  );
}

describe("the kubelet's own command line (k0sproject/k0s#7585, kubernetes/kubernetes#120626)", { skip }, () => {
  test("its root folder, node name, configuration and drop-in files are gone by, and -v says so", async (t) => {
    const ended = await alone(
      t,
      `serve cp-1
      mkdir "$HERE/static" "$HERE/conf.d"
      pod etcd registry.k8s.io/etcd:3.6.6-0 >"$HERE/static/etcd.yaml"
      echo 'staticPodPath: /nowhere' >"$HERE/c.yaml"
      echo "staticPodPath: $HERE/static" >"$HERE/conf.d/10.conf"
      kubelet --v=2 --root-dir="$HERE/root" --hostname-override CP-1 --config="$HERE/c.yaml" --config-dir="$HERE/conf.d"
      "$KP" static-pods -v
      echo "? $?"
      "$KP" ready
      "$KP" manifests --profile npd
      "$KP" all --profile npd
      "$KP" ready --socket /nowhere/s.sock --profile npd`,
    );
    const lines = ended.stdout.split("\n");
    const about = (start: string) => lines.find((line) => line.trimStart().startsWith(start)) ?? "";
    // Three of the simulator's four have no manifest there.
    assert.match(lines[0]!, /^STATIC-PODS WARNING - StaticPodUnexpected: .* expected=1;;;0 present=1;;;0 ready=1;/);
    assert.match(about("? "), /^\? 1$/);
    assert.match(about("manifests: /"), /\/static \(staticPodPath of \/.*\/conf\.d\/10\.conf\)$/);
    assert.match(about("socket: "), /\/root\/pods-api\/pods-api\.sock \(--root-dir of the kubelet, process \d+\)$/);
    assert.match(about("node: "), /^node: cp-1 \(--hostname-override of the kubelet, process \d+\)$/);
    assert.match(about("READY "), /^READY OK - Ready: /);
    assert.ok(lines.includes("ManifestsClean"));
    assert.match(about("StaticPodUnexpected: kube-system/"), / and others$/);
    assert.ok(lines.includes("SocketMissing: no Pods API socket at this path"));
  });

  test("options and the environment go before it", async (t) => {
    const ended = await alone(
      t,
      `serve cp-1
      kubelet --root-dir="$HERE/root" --hostname-override=other --pod-manifest-path="$HERE/none"
      "$KP" static-pods -v --node-name cp-1 --manifests "$HERE/mine" | grep -E '^(node|  manifests)'
      NODE_NAME=cp-1 "$KP" static-pods -v | grep -E '^(node|  manifests)'`,
    );
    assert.match(
      ended.stdout,
      /^ {2}manifests: \S+\/mine \(--manifests\)\nnode: cp-1 \(--node-name\)\n {2}manifests: \S+\/none \(--pod-manifest-path of the kubelet, process \d+\)\nnode: cp-1 \(NODE_NAME\)\n$/,
    );
  });

  test("several kubelets are none", async (t) => {
    const ended = await alone(
      t,
      `kubelet --root-dir="$HERE/root"
      kubelet --root-dir="$HERE/other"
      "$KP" ready -v`,
    );
    assert.match(ended.stdout, /^READY CRITICAL - SocketMissing: No socket at \/var\/lib\/kubelet\//);
    assert.match(ended.stdout, /^kubelet: none found, several processes are kubelets: \d+, \d+$/m);
  });

  test("a dead socket, and a kubelet elsewhere: socket says where", async (t) => {
    const ended = await alone(
      t,
      `serve cp-1
      kubelet --root-dir="$HERE/root"
      "$KP" simulate --scenario dead --socket "$HERE/old.sock" >"$HERE/old" &
      until [ -S "$HERE/old.sock" ]; do sleep 0.02; done
      "$KP" socket --socket "$HERE/old.sock"`,
    );
    assert.match(
      ended.stdout,
      /^SOCKET CRITICAL - SocketDead: .*; the kubelet that runs serves \S+\/root\/pods-api\/pods-api\.sock \(--root-dir of the kubelet, process \d+\)\n$/,
    );
  });
});
