import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { findKubelet } from "../lib/kubelet_process.ts";
import { inFolder } from "./probes/support.ts";

interface FakeProcess {
  readonly comm?: string;
  readonly words?: readonly string[];
  /** Its root folder. */
  readonly root?: string;
  readonly cwd?: string;
}

/** A folder that looks like /proc. */
function withProc<T>(processes: Readonly<Record<string, FakeProcess>>, use: (proc: string) => Promise<T>): Promise<T> {
  return inFolder((proc) => {
    for (const name of ["self", "sys", "uptime", "0", "12x"]) mkdirSync(join(proc, name));
    for (const [pid, { comm = "kubelet", words = ["/usr/bin/kubelet"], root = "/", cwd = "/" }] of Object.entries(
      processes,
    )) {
      const folder = join(proc, pid);
      mkdirSync(folder);
      writeFileSync(join(folder, "comm"), `${comm}\n`);
      writeFileSync(join(folder, "cmdline"), words.map((word) => `${word}\0`).join(""));
      symlinkSync(root, join(folder, "root"));
      symlinkSync(cwd, join(folder, "cwd"));
    }
    return use(proc);
  });
}

const nothing = {
  workingFolder: "/",
  rootDir: undefined,
  hostnameOverride: undefined,
  config: undefined,
  configDir: undefined,
  podManifestPath: undefined,
  manifestUrl: false,
  fileCheckFrequency: undefined,
};

describe("the kubelet's command line", () => {
  const optionsOf = (words: readonly string[], cwd = "/") =>
    withProc(
      { 812: { words: ["/usr/bin/kubelet", ...words], cwd } },
      async (proc) => (await findKubelet(proc)).kubelet,
    );

  test("as kubeadm has it: one option that counts, the rest is passed over", async () => {
    const words = ["--bootstrap-kubeconfig=/etc/b", "--kubeconfig=/etc/k", "--config=/var/lib/kubelet/config.yaml"];
    assert.deepEqual(await optionsOf([...words, "--pod-infra-container-image=x"]), {
      ...nothing,
      pid: 812,
      config: "/var/lib/kubelet/config.yaml",
    });
  });

  test("every option a probe goes by, with = and without", async () => {
    const words = [
      ...["--root-dir", "/data/kubelet", "--hostname-override=CP-1", "--config", "/c", "--config-dir=/d"],
      ...["--pod-manifest-path", "/m", "--manifest-url=http://user:secret@host/", "--file-check-frequency", "5s"],
    ];
    const expected = {
      pid: 812,
      workingFolder: "/",
      rootDir: "/data/kubelet",
      hostnameOverride: "CP-1",
      config: "/c",
      configDir: "/d",
      podManifestPath: "/m",
      // Only that there is one: it may hold a password.
      manifestUrl: true,
      fileCheckFrequency: 5000,
    };
    assert.deepEqual(await optionsOf(words), expected);
  });

  // cmd/kubelet/app/server.go normalizes words as component-base does; pflag keeps the last value.
  test("underscores, repeated options, empty ones, and --", async () => {
    assert.equal((await optionsOf(["--root_dir=/a"]))?.rootDir, "/a");
    assert.equal((await optionsOf(["--root-dir=/a", "--root-dir=/b"]))?.rootDir, "/b");
    assert.equal((await optionsOf(["--root-dir=/a", "--root-dir="]))?.rootDir, undefined);
    assert.equal((await optionsOf(["--", "--root-dir=/a"]))?.rootDir, undefined);
    assert.equal((await optionsOf(["--hostname-override", "--root-dir"]))?.rootDir, undefined);
    assert.equal((await optionsOf(["--file-check-frequency=0s"]))?.fileCheckFrequency, undefined);
  });

  test("relative paths start at its working folder", async () => {
    const found = await optionsOf(["--config=c.yaml", "--pod-manifest-path=m/"], "/srv/kubelet");
    assert.deepEqual([found?.config, found?.podManifestPath], ["/srv/kubelet/c.yaml", "/srv/kubelet/m"]);
  });
});

describe("which process is the kubelet", () => {
  const pidOf = (processes: Parameters<typeof withProc>[0]) =>
    withProc(processes, async (proc) => (await findKubelet(proc)).kubelet?.pid);

  test("one of that name, by its first argument too", async () => {
    assert.equal(await pidOf({ 1: { comm: "systemd" }, 7: {}, 8: { comm: "kubelet-probe" } }), 7);
    assert.equal(await pidOf({ 7: { words: ["kubelet"] } }), 7);
    // A script is called as its file is; its first argument is the shell.
    assert.equal(await pidOf({ 7: { words: ["/bin/sh", "/usr/local/bin/kubelet"] } }), undefined);
    assert.equal(await pidOf({ 7: { words: [] } }), undefined);
  });

  // k3s-io/k3s, canonical/microk8s: the kubelet runs inside another process, whose options are not the kubelet's.
  test("k3s and MicroK8s have none; k0s and RKE2 start one", async () => {
    assert.equal(await pidOf({ 7: { comm: "k3s-server", words: ["/usr/local/bin/k3s server"] } }), undefined);
    assert.equal(await pidOf({ 7: { comm: "kubelite", words: ["/snap/microk8s/1/kubelite"] } }), undefined);
    assert.equal(await pidOf({ 7: { words: ["/var/lib/k0s/bin/kubelet", "--root-dir=/var/lib/k0s/kubelet"] } }), 7);
  });

  test("with several there is none to go by, and they are named", () =>
    withProc({ 7: {}, 8: {} }, async (proc) => {
      assert.deepEqual(await findKubelet(proc), { note: "several processes are kubelets: 7, 8" });
    }));

  // kind runs kubelets in containers, which a host sees: their paths are not the host's.
  test("one with another root folder is not this node's", async () => {
    assert.equal(await pidOf({ 7: { root: "/usr" } }), undefined);
    assert.equal(await pidOf({ 7: { root: "/usr" }, 8: {} }), 8);
    assert.equal(await pidOf({ 7: { root: "/nonexistent" } }), undefined);
  });

  test("no /proc, and that of this machine", async () => {
    assert.deepEqual(await findKubelet("/nonexistent"), {});
    await findKubelet();
  });
});
