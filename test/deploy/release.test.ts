// What a release has besides packages: the same bytes from two builds, the library as npm has it, the manual page, the JSON
// Schema, the pages.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
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
