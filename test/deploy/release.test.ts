// What a release is made of: the same bytes from two builds, a package that can be installed and removed, the SBOM, the
// library as npm has it, the manual page, the JSON Schema, the workflows.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { binary, execute, folder, needs, probe, root, simulate } from "../support.ts";
import { find, needing, tool } from "./consumers.ts";

const node = process.execPath;
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const digest = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

test("two builds in two places give the same bytes", async (t) => {
  const sums: string[] = [];
  const sources = folder(t);
  const parts = [
    "main.ts",
    "mod.ts",
    "lib",
    "probes",
    "proto",
    "scripts",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "deno.json",
  ];
  for (const part of parts) cpSync(join(root, part), join(sources, part), { recursive: true });
  for (const [place, env] of [
    ["a", { TZ: "Asia/Tokyo", LC_ALL: "C" }],
    ["b/deeper/in", { TZ: "UTC", HOME: "/nonexistent" }],
  ] as const) {
    const home = join(folder(t), place);
    cpSync(sources, home, { recursive: true });
    // Links within the file system: a link to the folder would have another path from each of the two.
    const linked = await execute("cp", ["--archive", "--link", join(root, "node_modules"), home]);
    if (linked.status !== 0) cpSync(join(root, "node_modules"), join(home, "node_modules"), { recursive: true });
    const built = await execute(node, [join(home, "scripts/build.mjs"), "--force"], {
      cwd: home,
      env,
      boundMs: 300_000,
    });
    assert.equal(built.status, 0, built.stderr);
    sums.push(digest(join(home, "dist/kubelet-probe")));
  }
  assert.equal(sums[0], sums[1]);
});

describe("the Debian package", { skip: needing("dpkg-deb", "dpkg") }, () => {
  let home: string;
  const name = `kubelet-probe_${manifest.version}-1_amd64.deb`;

  async function pack(out: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const words = ["--binary", binary, "--arch", "amd64", "--out", out, "--fast"];
    const packed = await execute(node, [join(root, "scripts/package.mjs"), ...words], { env, boundMs: 300_000 });
    assert.equal(packed.status, 0, packed.stderr);
    return join(out, name);
  }

  before(async () => {
    home = mkdtempSync(join(tmpdir(), "kp-deb-"));
    await pack(home);
  });
  after(() => rmSync(home, { recursive: true, force: true }));

  test("packed twice, by another umask and in another place, it has the same bytes", async (t) => {
    const mask = process.umask(0o077);
    try {
      assert.equal(digest(await pack(join(folder(t), "elsewhere"), { TZ: "Asia/Tokyo" })), digest(join(home, name)));
    } finally {
      process.umask(mask);
    }
  });

  test("lintian finds no error in it", { skip: needing("lintian", "lintian") }, () => {
    const { printed } = tool("lintian", ["--fail-on", "none", join(home, name)]);
    assert.deepEqual(
      printed.split("\n").filter((line) => line.startsWith("E: ")),
      [],
    );
  });

  const skip =
    needs.root ||
    (existsSync("/usr/bin/kubelet-probe") ? "there is a /usr/bin/kubelet-probe that is not the tests' own" : false);

  test("install, run, remove: nothing is enabled, nothing is left", { skip }, async (t) => {
    const installed = tool("dpkg", ["--install", join(home, name)]);
    try {
      assert.equal(installed.status, 0, installed.printed);
      const version = await execute("/usr/bin/kubelet-probe", ["--version"]);
      assert.match(version.stdout, new RegExp(`^kubelet-probe ${manifest.version} `));

      // Under Nagios' name it follows Nagios' rules, whatever else it is told.
      const { socket, expect } = await simulate(t, "failed-pod");
      const link = "/usr/lib/nagios/plugins/check_kubelet_static_pods";
      const words = ["--socket", socket, "--expect", expect.join(",")];
      const ended = await execute(link, words, { env: { KUBELET_PROBE_PROFILE: "npd" } });
      assert.equal(ended.status, 2);
      assert.match(ended.stdout, /^STATIC-PODS CRITICAL - StaticPodFailed: .* \| unhealthy=1/);

      if (find("systemd-analyze") !== undefined) {
        const verified = tool("systemd-analyze", [
          "verify",
          "--man=no",
          "kubelet-probe.service",
          "kubelet-probe.timer",
        ]);
        assert.deepEqual(
          verified.printed.split("\n").filter((line) => line.includes("kubelet-probe")),
          [],
        );
      }
      for (const wanted of ["timers.target.wants", "multi-user.target.wants"]) {
        const path = join("/etc/systemd/system", wanted);
        if (existsSync(path)) assert.ok(!readdirSync(path).some((entry) => entry.includes("kubelet-probe")));
      }
      const listed = tool("dpkg", ["--verify", "kubelet-probe"]);
      // Some installations of Debian leave documentation out.
      assert.deepEqual(
        listed.printed.split("\n").filter((line) => line !== "" && !/\/usr\/share\/(doc|man)\//.test(line)),
        [],
      );
    } finally {
      const removed = tool("dpkg", ["--purge", "kubelet-probe"]);
      assert.equal(removed.status, 0, removed.printed);
    }
    for (const path of ["/usr/bin/kubelet-probe", "/etc/default/kubelet-probe", "/usr/share/doc/kubelet-probe"]) {
      assert.ok(!existsSync(path), path);
    }
  });

  test("its SBOM names every library of the binary and the runtime, with checksums of the lock file", async (t) => {
    const tree = folder(t);
    tool("dpkg-deb", ["--extract", join(home, name), tree]);
    const unpacked = await execute("gzip", [
      "-dc",
      join(tree, "usr/share/doc/kubelet-probe/kubelet-probe.cdx.json.gz"),
    ]);
    const bom = JSON.parse(unpacked.stdout);
    assert.equal(`${bom.bomFormat} ${bom.specVersion}`, "CycloneDX 1.5");
    assert.match(
      bom.serialNumber,
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    const names: string[] = bom.components.map(({ name }: { name: string }) => name);
    for (const name of [...Object.keys(manifest.dependencies), "bun"]) assert.ok(names.includes(name), name);
    const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
    for (const { name, version, hashes, licenses, purl } of bom.components) {
      const entry = lock.packages[`node_modules/${name}`];
      assert.equal(version, entry.version);
      assert.equal(Buffer.from(hashes[0].content, "hex").toString("base64"), entry.integrity.replace(/^sha\d+-/, ""));
      assert.ok(licenses.length > 0, name);
      assert.equal(purl, `pkg:npm/${name.replace("@", "%40")}@${version}`);
    }
  });
});

describe("the library on npm", () => {
  test("has JavaScript and declarations, imports what it depends on, and lists pods", async (t) => {
    const made = await execute(node, [join(root, "scripts/npm.mjs")], { boundMs: 300_000 });
    assert.equal(made.status, 0, made.stderr);
    const packed = join(root, "dist/npm");
    const { dependencies, exports } = JSON.parse(readFileSync(join(packed, "package.json"), "utf8"));
    for (const path of Object.values(exports["."] as Record<string, string>))
      assert.ok(existsSync(join(packed, path)), path);

    // As npm would lay it out.
    const home = folder(t);
    const modules = join(home, "node_modules");
    mkdirSync(modules);
    cpSync(packed, join(modules, manifest.name), { recursive: true });
    for (const name of Object.keys(dependencies)) symlinkSync(join(root, "node_modules", name), join(modules, name));
    writeFileSync(join(home, "package.json"), '{ "type": "module" }');
    const { socket } = await simulate(t, "healthy");
    writeFileSync(
      join(home, "main.js"),
      `import { createPodsClient } from "${manifest.name}";
const client = createPodsClient({ socket: ${JSON.stringify(socket)}, timeoutMs: 5000 });
console.log((await client.list()).pods.length);
client.close();
`,
    );
    const ended = await execute(node, [join(home, "main.js")]);
    assert.equal(ended.stdout, "10\n", ended.stderr);
  });
});

describe("documents", () => {
  test("the manual page is one that man shows without a complaint", { skip: needing("man", "man-db") }, async () => {
    const page = join(root, "docs/kubelet-probe.1");
    const shown = await execute(find("man")!, ["--warnings", "--local-file", page], {
      env: { MANWIDTH: "80", LC_ALL: "C" },
    });
    assert.equal(`${shown.status} ${shown.stderr}`, "0 ");
    assert.match(shown.stdout, /--output-file PATH/);
    assert.match(shown.stdout, /^ +nagios +0 +1 +2 +3 +3$/m);
  });

  test("the JSON Schema takes what is printed, by another's validator", {
    skip: needing("python3", "python3"),
  }, async (t) => {
    const script = `
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit(77)
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
jsonschema.validate(json.load(sys.stdin), schema)
`;
    for (const scenario of ["healthy", "failed-pod", "hostile-text", "missing"]) {
      const { socket, expect } = await simulate(t, scenario);
      const { stdout } = await probe(["all", "--socket", socket, "--expect", expect.join(","), "--output", "json"]);
      const { status, printed } = tool("python3", ["-c", script, join(root, "docs/report.schema.json")], stdout);
      if (status === 77) return t.skip("needs jsonschema (Debian package python3-jsonschema)");
      assert.equal(`${status} ${printed}`, "0 ");
      const refused = tool(
        "python3",
        ["-c", script, join(root, "docs/report.schema.json")],
        stdout.replace('"exitStatus"', '"exit"'),
      );
      assert.equal(refused.status, 1);
    }
  });

  test("links between the pages lead somewhere", () => {
    const pages = [
      "README.md",
      "SECURITY.md",
      "CONTRIBUTING.md",
      ...readdirSync(join(root, "docs"))
        .filter((name) => name.endsWith(".md"))
        .map((name) => `docs/${name}`),
    ];
    for (const page of pages) {
      for (const [, link] of readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
        if (/^[a-z]+:/.test(link!)) continue;
        assert.ok(existsSync(join(root, page, "..", link!)), `${page}: ${link}`);
      }
    }
  });

  test("every folder of deploy/ has its page", () => {
    const index = readFileSync(join(root, "docs/README.md"), "utf8");
    for (const name of readdirSync(join(root, "deploy"))) assert.ok(index.includes(`\`deploy/${name}\``), name);
  });
});

describe("workflows", () => {
  for (const name of readdirSync(join(root, ".github/workflows"))) {
    test(`${name}: permissions are given, jobs have a time limit, actions are pinned by commit`, () => {
      const workflow = parse(readFileSync(join(root, ".github/workflows", name), "utf8"));
      assert.ok(workflow.permissions !== undefined);
      for (const job of Object.values<{ "timeout-minutes"?: number; steps: { uses?: string; run?: string }[] }>(
        workflow.jobs,
      )) {
        assert.ok(job["timeout-minutes"]! > 0);
        for (const { uses, run } of job.steps) {
          if (uses !== undefined) assert.match(uses, /@[0-9a-f]{40}$/);
          else assert.ok(run);
          for (const [, script] of (run ?? "").matchAll(/\bnode (?:"\$GITHUB_WORKSPACE\/)?(scripts\/[\w.-]+)/g)) {
            assert.ok(existsSync(join(root, script!)), script);
          }
          for (const [, script] of (run ?? "").matchAll(/\bnpm run (?:-s )?([\w:]+)/g))
            assert.ok(manifest.scripts[script!], script);
        }
      }
    });
  }
});
