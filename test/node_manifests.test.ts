import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Fault } from "../lib/fault.ts";
import { type ManifestFile, type Manifests, readManifests } from "../lib/manifests.ts";
import { changedMs, isBroken, isUnread, nodeManifests, otherFolderHint, sourceDetails } from "../lib/node_manifests.ts";
import { fakeContext, inFolder, manifestText, writeFiles } from "./probes/support.ts";

const unset = { manifests: undefined, kubeletConfig: undefined, kubeletConfigDir: undefined, ignore: undefined };

describe("the manifests of a node", () => {
  test("are found and read once a run", () =>
    inFolder(async (folder) => {
      writeFiles(folder, {
        "m/a.yaml": manifestText("a"),
        "c.yaml": `staticPodPath: ${folder}/m\nfileCheckFrequency: 5s`,
      });
      const context = fakeContext();
      const options = { ...unset, kubeletConfig: join(folder, "c.yaml") };
      const found = await nodeManifests(context, options);
      assert.deepEqual(
        found.manifests.pods.map(({ name }) => name),
        ["a-node-1"],
      );
      assert.deepEqual(sourceDetails(found), [
        `manifests: ${folder}/m (staticPodPath of ${folder}/c.yaml)`,
        `scan period: 5 s (fileCheckFrequency of ${folder}/c.yaml)`,
      ]);
      rmSync(folder, { recursive: true });
      assert.equal(await nodeManifests(context, options), found);
      await assert.rejects(nodeManifests(fakeContext(), options), Fault);
    }));

  test("of a kubelet that is given no folder: the default, and that it reads none", async () => {
    const kubelet = { pid: 7, workingFolder: "/", manifestUrl: true } as never;
    const lines = sourceDetails(await nodeManifests({ ...fakeContext(), kubelet }, unset));
    assert.equal(
      lines[0],
      "manifests: /etc/kubernetes/manifests (default; the kubelet is given no folder and reads none)",
    );
    assert.match(lines[2]!, /^a URL gives static pods too \(--manifest-url of the kubelet, process 7\)/);
  });

  test("what cannot be read names the path", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { file: "x" });
      const path = join(folder, "file", "m");
      await assert.rejects(nodeManifests(fakeContext(), { ...unset, manifests: path }), (error) => {
        assert.ok(error instanceof Fault && error.code === "ManifestsUnreadable");
        assert.ok(error.message.startsWith(`Cannot read ${path}: `), error.message);
        return true;
      });
    }));
});

// A runner's host name in CI may be one that no node can have.
test("a node's name that no kubelet takes is not blamed on the manifests", () =>
  inFolder(async (folder) => {
    for (const nodeName of ["runner_1", "-a", "a..b", "", "a".repeat(254)]) {
      const reading = nodeManifests(fakeContext({ nodeName }), { ...unset, manifests: folder });
      await assert.rejects(
        reading,
        /^Fault: Cannot name the static pods of node ".*": accepted is .*; see --node-name$/,
      );
    }
    await nodeManifests(fakeContext({ nodeName: "worker-01.example.test" }), { ...unset, manifests: folder });
  }));

describe("when a manifest changed", () => {
  const year = 365 * 24 * 3600;
  const changed = async (folder: string, path = folder) => {
    const manifests = await readManifests(path, "node-1");
    return changedMs(manifests, manifests.pods[0]!);
  };

  // mv keeps the time of change, so a manifest that was put back looks old.
  test("moved into the folder just now", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { "away/a.yaml": manifestText("a") }, year);
      mkdirSync(join(folder, "m"));
      const before = Date.now();
      renameSync(join(folder, "away/a.yaml"), join(folder, "m/a.yaml"));
      assert.ok((await changed(join(folder, "m"))) > before - 5000);
    }));

  test("the path of one file, and a link that was turned", () =>
    inFolder(async (folder) => {
      const before = Date.now();
      writeFiles(folder, { "a.yaml": manifestText("a") }, year);
      assert.ok((await changed(folder, join(folder, "a.yaml"))) > before - 5000);
      mkdirSync(join(folder, "m"));
      symlinkSync("../a.yaml", join(folder, "m/a.yaml"));
      assert.ok((await changed(join(folder, "m"))) > before - 5000);
    }));

  // tar and rsync bring times along, from a clock that was wrong as well.
  test("a time that is yet to come is not when it changed", () =>
    inFolder(async (folder) => {
      writeFiles(folder, { "a.yaml": manifestText("a") }, -year);
      assert.ok((await changed(folder)) < Date.now() + 5000);
    }));

  test("gone since: what the reader saw", () =>
    inFolder(async (folder) => {
      writeFileSync(join(folder, "a.yaml"), manifestText("a"));
      utimesSync(join(folder, "a.yaml"), 1000, 1000);
      const manifests = await readManifests(folder, "node-1");
      rmSync(join(folder, "a.yaml"));
      assert.equal(changedMs(manifests, manifests.pods[0]!), 1_000_000);
    }));
});

describe("what to make of an ignored file", () => {
  const read = async (text: string) => {
    const { files } = await inFolder((folder) => readManifests(writeFiles(folder, { file: text }), "node-1"));
    return files[0]!;
  };
  test("broken text may hold a pod, another object does not", async () => {
    assert.ok(isBroken(await read("a: [")));
    assert.ok(isBroken(await read('{"kind":"Pod",')));
    for (const text of ["", "kind: Namespace\napiVersion: v1\n", "hello", manifestText("a")]) {
      assert.ok(!isBroken(await read(text)), text);
    }
  });
  test("what this user cannot read is not known", async () => {
    const file = (reason: string): ManifestFile => ({
      ...{ file: "a", verdict: "ignored", pod: null, reason, furtherDocuments: false },
    });
    assert.ok(isUnread(file("cannot be opened by this user (EACCES)")));
    assert.ok(isUnread(file("cannot be looked at (EIO)")));
    assert.ok(!isUnread(file("a link to nothing")));
    assert.ok(!isUnread(await read("")));
  });
});

test("a folder that is not there, while another distribution's is", () =>
  inFolder((folder) => {
    const manifests: Manifests = { path: "/etc/kubernetes/manifests", absent: true, pods: [], files: [] };
    const source = { path: "/x", from: "default", scanMs: 1, scanFrom: "default", urlFrom: undefined, unset: false };
    const others = [join(folder, "none"), folder];
    assert.equal(otherFolderHint({ source, manifests }, others), `; there is ${folder}: see --manifests`);
    assert.equal(otherFolderHint({ source: { ...source, from: "--manifests" }, manifests }, others), "");
    assert.equal(otherFolderHint({ source, manifests: { ...manifests, absent: false } }, others), "");
    assert.equal(otherFolderHint({ source, manifests }, [join(folder, "none")]), "");
  }));
