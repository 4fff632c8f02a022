import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Fault } from "../lib/fault.ts";
import { readKubeletConfig } from "../lib/kubelet_config.ts";
import { inFolder, writeFiles } from "./probes/support.ts";

/** What a configuration of these files says; `config.yaml` is the file, `conf.d` the drop-in folder. */
function read(files: Readonly<Record<string, string>>, workingFolder?: string) {
  return inFolder(async (folder) => {
    writeFiles(folder, files);
    const has = (start: string) => Object.keys(files).some((name) => name.startsWith(start));
    const config = await readKubeletConfig({
      file: has("config.yaml") ? join(folder, "config.yaml") : undefined,
      required: true,
      dropIns: has("conf.d/") ? join(folder, "conf.d") : undefined,
      workingFolder,
    });
    const plainly = (path: string | undefined) => path?.replace(folder, "");
    return {
      path: plainly(config?.staticPodPath?.value),
      from: plainly(config?.staticPodPath?.file),
      scan: config?.fileCheckFrequency?.value,
      url: config?.staticPodURL?.value,
    };
  });
}

const nothing = { path: undefined, from: undefined, scan: undefined, url: undefined };

describe("one file", () => {
  test("YAML and JSON", async () => {
    const expected = { path: "/m", from: "/config.yaml", scan: 90_000, url: true };
    const yaml = "kind: KubeletConfiguration\nstaticPodPath: /m\nfileCheckFrequency: 1m30s\nstaticPodURL: https://x/\n";
    assert.deepEqual(await read({ "config.yaml": yaml }), expected);
    const json = '\n\t{"staticPodPath":"/m","fileCheckFrequency":"1m30s","staticPodURL":"https://x/"}';
    assert.deepEqual(await read({ "config.yaml": json }), expected);
  });
  test("what it leaves out, or has in another form", async () => {
    for (const text of [
      "kind: X\n",
      "staticPodPath:\n",
      'staticPodPath: ""\n',
      "staticPodPath: 5\nstaticPodURL: {}\n",
    ]) {
      assert.deepEqual(await read({ "config.yaml": text }), nothing, text);
    }
  });
  test("the last of two keys counts", async () => {
    assert.equal((await read({ "config.yaml": "staticPodPath: /a\nstaticPodPath: /b\n" })).path, "/b");
  });
  test("none at all", async () => {
    assert.equal(await readKubeletConfig({ file: "/nonexistent/c", required: false, dropIns: undefined }), undefined);
    assert.equal(await readKubeletConfig({ file: undefined, required: false, dropIns: undefined }), undefined);
  });
});

// cmd/kubelet/app/server.go, mergeKubeletConfigurations.
describe("drop-in files", () => {
  test("the last by name wins, what it leaves out stays, and other files are passed over", async () => {
    const found = await read({
      "config.yaml": "staticPodPath: manifests\nfileCheckFrequency: 5s\n",
      "conf.d/20.conf": "staticPodPath: /twenty\n",
      "conf.d/10.conf": "staticPodPath: /ten\n",
      "conf.d/30.yaml": "staticPodPath: /thirty\n",
      "conf.d/99.conf.bak": "staticPodPath: /bak\n",
    });
    assert.deepEqual(found, { ...nothing, path: "/twenty", from: "/conf.d/20.conf", scan: 5000 });
  });
  test("folders below, where their names stand", async () => {
    const files = { "conf.d/a/9.conf": "staticPodPath: /a9\n", "conf.d/a.conf": "staticPodPath: /a\n" };
    // "a" before "a.conf".
    assert.equal((await read(files)).path, "/a");
    assert.equal((await read({ ...files, "conf.d/b/1.conf": "staticPodPath: /b1\n" })).path, "/b1");
  });
  test("a patch that takes a value away (RFC 7386)", async () => {
    const files = { "config.yaml": "staticPodPath: /a\nstaticPodURL: http://x/\n" };
    assert.deepEqual(await read({ ...files, "conf.d/1.conf": "staticPodPath: null\nstaticPodURL:\n" }), nothing);
  });
  test("its relative paths start at the kubelet's working folder, those of the file at the file's", async () => {
    assert.equal((await read({ "conf.d/1.conf": "staticPodPath: m\n" }, "/work")).path, "/work/m");
    assert.equal((await read({ "conf.d/1.conf": "staticPodPath: m\n" })).path, "/m");
    assert.equal((await read({ "config.yaml": "staticPodPath: ./m/../n\n" }, "/work")).path, "/n");
  });
});

describe("what cannot be read is ManifestsUnreadable, and not the default", () => {
  const refused = async (files: Parameters<typeof readKubeletConfig>[0], pattern: RegExp) => {
    await assert.rejects(readKubeletConfig(files), (error) => {
      assert.ok(error instanceof Fault);
      assert.equal(error.code, "ManifestsUnreadable");
      assert.match(error.message, /^Cannot read the kubelet's configuration \//);
      assert.match(error.message, pattern);
      return true;
    });
  };
  test("a file that is not there, a folder, a device, a large one", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { large: "#".repeat((1 << 20) + 1) });
      const file = (path: string) => ({ file: path, required: true, dropIns: undefined });
      await refused(file(join(folder, "none")), /: ENOENT$/);
      await refused(file(folder), /: it is a folder$/);
      // Reading it would not end.
      await refused(file("/dev/zero"), /: it is a device$/);
      await refused(file(join(folder, "large")), /: it has 1048577 bytes, over 1048576$/);
    }));
  test("a drop-in folder that is not there, a broken drop-in file", () =>
    inFolder(async (folder) => {
      const dropIns = (path: string) => ({ file: undefined, required: false, dropIns: path });
      await refused(dropIns(join(folder, "none")), /none: ENOENT$/);
      mkdirSync(join(folder, "d"));
      symlinkSync("nowhere", join(folder, "d", "1.conf"));
      await refused(dropIns(join(folder, "d")), /1\.conf: ENOENT$/);
      writeFiles(folder, { "e/1.conf": "a: [" });
      await refused(dropIns(join(folder, "e")), /1\.conf: it is not YAML$/);
    }));
});
