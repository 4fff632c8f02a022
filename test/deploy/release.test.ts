// What a release has besides packages: the same bytes from two builds, the library as npm has it, the manual page, the JSON
// Schema, the pages.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { execute, folder, probe, root, simulate } from "../support.ts";
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

// What npm is run with: the machine's own Node, 20 in CI, and not the newer one of the tests.
const outside = (process.env.PATH ?? "").split(":").filter((path) => path !== join(root, "node_modules", ".bin"));
const machine = { env: { PATH: outside.join(":") }, boundMs: 300_000 };

test("the library on npm: packed, it has types that hold and lists pods on the machine's own Node", async (t) => {
  const made = await execute(node, [join(root, "scripts/npm.mjs")], { boundMs: 300_000 });
  assert.equal(made.status, 0, made.stderr);
  const { dependencies } = JSON.parse(readFileSync(join(root, "dist/npm/package.json"), "utf8"));

  // What `npm publish dist/npm` sends, laid out as npm would; a registry may not be there.
  const home = folder(t);
  const modules = join(home, "node_modules");
  mkdirSync(join(modules, "@types"), { recursive: true });
  const packed = await execute(
    "npm",
    ["pack", "--silent", `--pack-destination=${home}`, join(root, "dist/npm")],
    machine,
  );
  assert.equal(packed.status, 0, packed.stderr);
  assert.equal(tool("tar", ["-xzf", join(home, packed.stdout.trim()), "-C", home]).status, 0);
  renameSync(join(home, "package"), join(modules, manifest.name));
  for (const name of [...Object.keys(dependencies), "@types/node"]) {
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
  writeFileSync(join(home, "package.json"), '{ "type": "module" }');
  const { socket } = await simulate(t, "healthy");
  writeFileSync(
    join(home, "main.ts"),
    `import { checks, createPodsClient, type Pod, run } from "${manifest.name}";
const socket = ${JSON.stringify(socket)};
const client = createPodsClient({ socket, timeoutMs: 5000 });
const { pods } = await client.list();
const names: string[] = pods.map((pod: Pod) => pod.name);
client.close();
// @ts-expect-error: types that are not found would let this pass
client.nothing;
// Of what is loaded on demand.
const check = checks.find(({ name }) => name === "rate-limit")!;
const options = { samples: 1, burst: 1, interval: 200, metrics: ["http://127.0.0.1:1/metrics"] };
const report = await run({ name: check.name, runs: [{ check, options }], socket, nodeName: "n", timeoutMs: 5000 });
console.log(names.length, report.code, report.checks[0]?.details.some((line) => line.endsWith(": ECONNREFUSED")));
`,
  );
  const words = ["--strict", "--module", "nodenext", "--target", "es2023", "--lib", "es2024", "--types", "node"];
  const compiled = await execute(join(root, "node_modules/.bin/tsc"), [...words, "main.ts"], { cwd: home, ...machine });
  assert.equal(compiled.stdout + compiled.stderr, "");
  for (const [command, env] of [
    ["node", machine.env],
    [node, {}],
  ] as const) {
    const ended = await execute(command, [join(home, "main.js")], { env });
    assert.equal(ended.stdout, "10 RateLimitHeadroom true\n", ended.stderr);
  }
});

// Offline: what JSR would refuse is found before anything is sent.
test("the library on JSR: it would be taken as it is", async () => {
  const words = ["publish", "--dry-run", "--allow-dirty", "--quiet"];
  const { status, stdout, stderr } = await execute(join(root, "node_modules/.bin/deno"), words, {
    cwd: root,
    env: { NO_COLOR: "1" },
    boundMs: 300_000,
  });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stdout + stderr, /^(warning|error)\[/m);
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

  test("every page is reached from README, and its links lead to a file and a heading", () => {
    const pages = ["README.md"];
    for (const page of pages) {
      for (const [, path = "", heading] of text(page).matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)) {
        if (/^[a-z]+:/.test(path)) continue;
        const target = path === "" ? page : join(page, "..", path);
        assert.ok(existsSync(join(root, target)), `${page}: ${path}`);
        if (heading !== undefined) assert.ok(headings(target).includes(heading), `${page}: ${path}#${heading}`);
        if (target.endsWith(".md") && !pages.includes(target)) pages.push(target);
      }
    }
    const all = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
    assert.deepEqual(
      all.filter((name) => !pages.includes(`docs/${name}`)),
      [],
    );
  });

  test("every folder of deploy/ has its page", () => {
    const index = readFileSync(join(root, "docs/README.md"), "utf8");
    for (const name of readdirSync(join(root, "deploy"))) assert.ok(index.includes(`\`deploy/${name}\``), name);
  });
});

function text(page: string): string {
  return readFileSync(join(root, page), "utf8");
}

/** The fragments that GitHub gives the headings of a page. */
function headings(page: string): string[] {
  return [...text(page).matchAll(/^#+ (.*)$/gm)].map(([, words]) =>
    words!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
