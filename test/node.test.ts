import assert from "node:assert/strict";
import * as fs from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Fault } from "../lib/fault.ts";
import type { KubeletProcess } from "../lib/kubelet_process.ts";
import { findManifests, findNodeName, findSocket, type ManifestOptions } from "../lib/node.ts";

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = fs.mkdtempSync(join(tmpdir(), "kubelet-probe-"));
  try {
    await use(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

describe("the node's name", () => {
  // Case a08: the kubelet trims and lower-cases it, and keeps the dots.
  test("--node-name, trimmed and in lower case, with its dots", () => {
    assert.deepEqual(findNodeName(" Worker-01.EXAMPLE.test\n", {}), {
      value: "worker-01.example.test",
      from: "--node-name",
    });
  });
  test("then NODE_NAME, in the same way", () => {
    assert.deepEqual(findNodeName(undefined, { NODE_NAME: "CP-1\n" }), { value: "cp-1", from: "NODE_NAME" });
    assert.deepEqual(findNodeName(" ", { NODE_NAME: "cp-1" }), { value: "cp-1", from: "NODE_NAME" });
    assert.deepEqual(findNodeName("cp-2", { NODE_NAME: "cp-1" }).value, "cp-2");
  });
  test("then the host name", () => {
    const expected = { value: hostname().trim().toLowerCase(), from: "host name" };
    assert.deepEqual(findNodeName(undefined, {}), expected);
    assert.deepEqual(findNodeName(undefined, { NODE_NAME: " " }), expected);
  });
});

describe("the socket", () => {
  test("--socket, then --kubelet-root, then the kubelet's default", () => {
    assert.deepEqual(findSocket("/s", "/r"), { value: "/s", from: "--socket" });
    assert.deepEqual(findSocket(undefined, "/var/lib/k0s/kubelet/"), {
      value: "/var/lib/k0s/kubelet/pods-api/pods-api.sock",
      from: "--kubelet-root",
    });
    assert.deepEqual(findSocket(undefined, undefined), {
      value: "/var/lib/kubelet/pods-api/pods-api.sock",
      from: "default",
    });
  });
});

describe("the manifests", () => {
  const find = (options: Partial<ManifestOptions>) =>
    findManifests({
      manifests: undefined,
      kubeletConfig: undefined,
      kubeletConfigDir: undefined,
      kubeletRoot: undefined,
      ...options,
    });
  const unknown = { scanMs: 20_000, scanFrom: "default", urlFrom: undefined, unset: false };
  const defaults = { path: "/etc/kubernetes/manifests", from: "default", ...unknown };

  test("--manifests wins, and no configuration is looked for", () =>
    inFolder(async (folder) => {
      fs.writeFileSync(join(folder, "config.yaml"), "staticPodPath: /x\nfileCheckFrequency: 1m\n");
      assert.deepEqual(await find({ manifests: "/m", kubeletRoot: folder }), {
        ...unknown,
        path: "/m",
        from: "--manifests",
      });
    }));

  test("--manifests with --kubelet-config: the path of one, the period of the other", () =>
    inFolder(async (folder) => {
      const file = join(folder, "c.yaml");
      fs.writeFileSync(file, "staticPodPath: /x\nfileCheckFrequency: 1m\n");
      assert.deepEqual(await find({ manifests: "/m", kubeletConfig: file }), {
        ...unknown,
        path: "/m",
        from: "--manifests",
        scanMs: 60_000,
        scanFrom: `fileCheckFrequency of ${file}`,
      });
    }));

  test("staticPodPath of the configuration in the root folder", () =>
    inFolder(async (folder) => {
      const file = join(folder, "config.yaml");
      fs.writeFileSync(file, "kind: KubeletConfiguration\nstaticPodPath: /srv/manifests\n");
      assert.deepEqual(await find({ kubeletRoot: folder }), {
        ...unknown,
        path: "/srv/manifests",
        from: `staticPodPath of ${file}`,
      });
    }));

  // pkg/kubelet/kubeletconfig/configfiles resolves it so.
  test("a relative staticPodPath starts at the folder of the configuration", () =>
    inFolder(async (folder) => {
      const file = join(folder, "config.yaml");
      fs.writeFileSync(file, "staticPodPath: ../manifests\n");
      assert.equal((await find({ kubeletConfig: file })).path, join(folder, "..", "manifests"));
    }));

  test("a configuration in JSON", () =>
    inFolder(async (folder) => {
      const file = join(folder, "c.json");
      fs.writeFileSync(file, '{"staticPodPath":"/j","fileCheckFrequency":"1m30s"}');
      assert.deepEqual(await find({ kubeletConfig: file }), {
        ...unknown,
        path: "/j",
        from: `staticPodPath of ${file}`,
        scanMs: 90_000,
        scanFrom: `fileCheckFrequency of ${file}`,
      });
    }));

  test("no configuration, or one without the field: the default", () =>
    inFolder(async (folder) => {
      assert.deepEqual(await find({ kubeletRoot: folder }), defaults);
      assert.deepEqual(await find({ kubeletRoot: join(folder, "none") }), defaults);
      const file = join(folder, "config.yaml");
      for (const text of ["kind: KubeletConfiguration\n", 'staticPodPath: ""\n', "staticPodPath: 5\n"]) {
        fs.writeFileSync(file, text);
        assert.deepEqual(await find({ kubeletRoot: folder }), defaults, text);
      }
    }));

  // "0s" stands for the default, as it does for the kubelet.
  test("a scan period that says nothing is the default", () =>
    inFolder(async (folder) => {
      const file = join(folder, "config.yaml");
      for (const text of ["fileCheckFrequency: 0s", "fileCheckFrequency: 20", "fileCheckFrequency: soon"]) {
        fs.writeFileSync(file, `${text}\n`);
        assert.equal((await find({ kubeletRoot: folder })).scanMs, 20_000, text);
      }
    }));

  describe("the kubelet that runs", () => {
    const kubelet: KubeletProcess = {
      pid: 812,
      workingFolder: "/work",
      rootDir: undefined,
      hostnameOverride: undefined,
      config: undefined,
      configDir: undefined,
      podManifestPath: undefined,
      manifestUrl: false,
      fileCheckFrequency: undefined,
    };

    test("its own options go before its configuration, and behind --manifests", () =>
      inFolder(async (folder) => {
        const config = join(folder, "c.yaml");
        fs.writeFileSync(config, "staticPodPath: /c\nfileCheckFrequency: 1m\nstaticPodURL: http://u/\n");
        const process = { ...kubelet, config, podManifestPath: "/p", fileCheckFrequency: 5000, manifestUrl: true };
        assert.deepEqual(await find({ kubelet: process }), {
          path: "/p",
          from: "--pod-manifest-path of the kubelet, process 812",
          scanMs: 5000,
          scanFrom: "--file-check-frequency of the kubelet, process 812",
          urlFrom: "--manifest-url of the kubelet, process 812",
          unset: false,
        });
        assert.equal((await find({ kubelet: process, manifests: "/m" })).path, "/m");
        assert.deepEqual(await find({ kubelet: { ...kubelet, config } }), {
          path: "/c",
          from: `staticPodPath of ${config}`,
          scanMs: 60_000,
          scanFrom: `fileCheckFrequency of ${config}`,
          urlFrom: `staticPodURL of ${config}`,
          unset: false,
        });
      }));

    test("one that was started without --config reads no config.yaml", () =>
      inFolder(async (folder) => {
        fs.writeFileSync(join(folder, "config.yaml"), "staticPodPath: /c\n");
        assert.deepEqual(await find({ kubelet, kubeletRoot: folder }), { ...defaults, unset: true });
      }));

    test("its drop-in folder is read, and where it starts from", () =>
      inFolder(async (folder) => {
        fs.writeFileSync(join(folder, "10.conf"), "staticPodPath: manifests\n");
        assert.equal((await find({ kubelet: { ...kubelet, configDir: folder } })).path, "/work/manifests");
        assert.equal((await find({ kubeletConfigDir: folder, kubeletRoot: folder })).path, "/manifests");
      }));

    test("a configuration of its own that is gone is not passed over", async () => {
      await assert.rejects(find({ kubelet: { ...kubelet, config: "/nonexistent/c.yaml" } }), Fault);
    });
  });

  describe("a configuration that cannot be read is ManifestsUnreadable", () => {
    const refused = async (options: Parameters<typeof find>[0]) => {
      await assert.rejects(find(options), (error) => {
        assert.ok(error instanceof Fault);
        assert.equal(error.code, "ManifestsUnreadable");
        assert.match(error.message, /^Cannot read the kubelet's configuration .+: .+$/);
        return true;
      });
    };
    test("one that was asked for and is not there", () =>
      inFolder(async (folder) => {
        await refused({ kubeletConfig: join(folder, "none.yaml") });
        await refused({ kubeletConfig: join(folder, "none.yaml"), manifests: "/m" });
      }));
    test("a folder", () =>
      inFolder(async (folder) => {
        fs.mkdirSync(join(folder, "config.yaml"));
        await refused({ kubeletRoot: folder });
      }));
    test("no YAML, or no mapping", () =>
      inFolder(async (folder) => {
        const file = join(folder, "config.yaml");
        for (const text of ["a: [", "", "text", "- 1\n", "a: &a [*a, *a]\nb: [*c]\n"]) {
          fs.writeFileSync(file, text);
          await refused({ kubeletRoot: folder });
        }
      }));
    test("aliases that blow up", () =>
      inFolder(async (folder) => {
        const file = join(folder, "config.yaml");
        const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
        for (let i = 1; i < 12; i++)
          lines.push(
            `a${i}: &a${i} [${Array(10)
              .fill(`*a${i - 1}`)
              .join(", ")}]`,
          );
        fs.writeFileSync(file, lines.join("\n"));
        await refused({ kubeletRoot: folder });
      }));
  });
});
