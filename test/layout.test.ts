// What the design says of how the parts hang together, held against the sources themselves.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, normalize } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { codes } from "../lib/codes.ts";
import { explain } from "../lib/explain.ts";
import { checks } from "../probes/list.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** Every source file below a folder, as a path from the root. */
function sourcesOf(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return sourcesOf(path);
    return /(?<!\.d)\.(ts|js)$/.test(entry.name) ? [path] : [];
  });
}

/** The text without comments, as far as our own sources write them. */
function codeOf(path: string): string {
  return read(path)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|\s)\/\/.*$/gm, "$1");
}

interface Import {
  readonly from: string;
  /** A path from the root, or the name of a package. */
  readonly to: string;
  readonly typeOnly: boolean;
  /** Loaded when it is needed, not at the start. */
  readonly late: boolean;
}

function importsOf(path: string): Import[] {
  const found = codeOf(path).matchAll(
    /(?:^|\n)\s*(?:import|export)\s+(type\s)?(?:[^;'"]*?\sfrom\s+)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/g,
  );
  return [...found].map(([, type, early, late]) => {
    const name = (early ?? late)!;
    const to = name.startsWith(".") ? normalize(join(dirname(path), name)) : name;
    return { from: path, to, typeOnly: type !== undefined, late: late !== undefined };
  });
}

const lib = sourcesOf("lib");
const probes = sourcesOf("probes");
const entries = ["mod.ts", "main.ts"];
const sources = [...lib, ...probes, ...entries];
/** The one file that reaches beyond the machine's own sockets, where it is told to. */
const networker = "lib/fetch_metrics.ts";
const simulator = (path: string) => /^lib\/(simulat|simulator\/)/.test(path);

// proto/gen <- lib <- probes <- mod.ts <- main.ts
const layers = [/^proto\/gen\//, /^lib\//, /^probes\//, /^mod\.ts$/, /^main\.ts$/];
const layerOf = (path: string) => layers.findIndex((layer) => layer.test(path));

function complaints(find: (path: string) => readonly string[], among: readonly string[] = sources): string[] {
  return among.flatMap((path) => find(path).map((what) => `${path}: ${what}`));
}

describe("imports", () => {
  test("are found at all", () => {
    const found = importsOf("main.ts").map(({ to, late }) => `${to}${late ? " (late)" : ""}`);
    assert.ok(found.includes("lib/cli.ts"));
    assert.ok(found.includes("probes/list.ts"));
    assert.ok(found.includes("lib/help.ts (late)"));
    assert.ok(importsOf("mod.ts").length > 10);
    assert.ok(sources.length > 30);
  });

  test("point one way: proto/gen <- lib <- probes <- mod.ts <- main.ts", () => {
    const wrong = complaints((path) =>
      importsOf(path)
        .filter(({ to }) => to.includes("/") && existsSync(join(root, to)))
        .filter(({ to }) => layerOf(to) < 0 || layerOf(to) > layerOf(path))
        .map(({ to }) => `imports ${to}`),
    );
    assert.deepEqual(wrong, []);
  });

  test("lead to a file of the project, a builtin with its prefix, or a dependency", () => {
    const { dependencies } = JSON.parse(read("package.json")) as { dependencies: Record<string, string> };
    const wrong = complaints((path) =>
      importsOf(path)
        .filter(({ to }) => {
          if (layerOf(to) >= 0) return !existsSync(join(root, to));
          if (to.startsWith("node:")) return !builtinModules.includes(to.slice("node:".length));
          const name = to.startsWith("@") ? to.split("/").slice(0, 2).join("/") : to.split("/")[0]!;
          return !Object.hasOwn(dependencies, name);
        })
        .map(({ to }) => `imports ${to}`),
    );
    assert.deepEqual(wrong, []);
  });

  test("go in no circle", () => {
    const graph = new Map(
      sources.map((path) => [path, importsOf(path).filter(({ typeOnly, late }) => !typeOnly && !late)]),
    );
    const done = new Set<string>();
    const visit = (path: string, way: readonly string[]): void => {
      assert.ok(!way.includes(path), [...way, path].join(" -> "));
      if (done.has(path)) return;
      for (const { to } of graph.get(path) ?? []) visit(to, [...way, path]);
      done.add(path);
    };
    for (const path of sources) visit(path, []);
  });

  test("what only a command needs is not loaded by the others", () => {
    const loaded = new Set<string>();
    const load = (path: string): void => {
      if (loaded.has(path)) return;
      loaded.add(path);
      for (const { to, typeOnly, late } of importsOf(path)) if (!typeOnly && !late && layerOf(to) > 0) load(to);
    };
    load("main.ts");
    const late = [
      "help",
      "explain",
      "explanations",
      "manifests",
      "format",
      "format_json",
      "output_file",
      "hold",
      "follow",
      "wait",
      "backoff",
      "budget",
      "field_mask",
      "headroom",
      "scrape",
      "fetch_metrics",
      "proportion",
    ];
    for (const path of [...late, "format_prometheus", "format_checkmk", "selftest", "completion", "install"].map(
      (name) => `lib/${name}.ts`,
    )) {
      assert.ok(!loaded.has(path), path);
    }
    assert.deepEqual([...loaded].filter(simulator), []);
    const packages = [...loaded].flatMap((path) => importsOf(path).filter(({ typeOnly, late }) => !typeOnly && !late));
    assert.deepEqual(
      packages.filter(({ to }) => /^(yaml|@connectrpc)/.test(to)).map(({ from, to }) => `${from}: ${to}`),
      [],
    );
  });
});

describe("what a probe does not do", () => {
  test("no API of one runtime", () => {
    const wrong = complaints((path) => codeOf(path).match(/\b(Deno|Bun)\s*[.[]/g) ?? []);
    assert.deepEqual(wrong, []);
  });

  test("no child process, no thread, and no network but for --metrics URL", () => {
    const forbidden =
      /^(node:)?(child_process|cluster|worker_threads|http|https|tls|dgram|dns|dns\/promises|inspector|repl)$/;
    const wrong = complaints((path) => [
      ...importsOf(path).flatMap(({ to }) => (forbidden.test(to) && path !== networker ? [`imports ${to}`] : [])),
      ...(codeOf(path).match(/\b(WebSocket|EventSource|XMLHttpRequest|eval|Function)\s*\(/g) ?? []),
      // Functions of our own have the name as well, but no address.
      ...(codeOf(path).match(/\bglobalThis\b|\bfetch\(\s*["'`]https?:/g) ?? []),
      ...(path === networker || path === "lib/metrics_url.ts" ? [] : (codeOf(path).match(/\bnew URL\(/g) ?? [])),
    ]);
    assert.deepEqual(wrong, []);
    assert.deepEqual(
      importsOf(networker)
        .map(({ to }) => to)
        .filter((to) => forbidden.test(to)),
      ["node:http", "node:https", "node:tls"],
    );
    const users = sources.flatMap(importsOf).filter(({ to, typeOnly }) => to === networker && !typeOnly);
    assert.deepEqual(new Set(users.map(({ from }) => from)), new Set(["lib/scrape.ts"]));
    assert.ok(users.every(({ late }) => late));
    assert.match(
      codeOf("lib/headroom.ts"),
      /if \(!isUrl\(source\)\) return readScrape\(source\);[^}]*return scrapeUrl\(/,
    );
  });

  test("nothing is served but by the simulator", () => {
    const wrong = complaints((path) => {
      if (simulator(path)) return [];
      const serving = codeOf(path).match(/\bcreateServer\b|\.listen\s*\(/g) ?? [];
      return [...serving, ...importsOf(path).flatMap(({ to }) => (to === "node:http2" ? [`imports ${to}`] : []))];
    });
    assert.deepEqual(wrong, []);
  });

  test("a connection goes to a path, never to a host or port", () => {
    const wrong = complaints(
      (path) => codeOf(path).match(/\b(?:net\.)?(connect|createConnection)\(\s*(\d|\{[^}]*\b(host|port)\b)/g) ?? [],
    );
    assert.deepEqual(wrong, []);
  });

  test("no file is written but the one that --output-file names, and by commands that ask no kubelet", () => {
    const writing =
      /\b(writeFile|appendFile|mkdir|mkdtemp|rm|rmdir|unlink|rename|symlink|link|copyFile|truncate|chmod|chown|utimes|createWriteStream)(Sync)?\s*\(/g;
    const writers = ["lib/output_file.ts", "lib/selftest.ts", "lib/install.ts"];
    const wrong = complaints((path) =>
      simulator(path) || writers.includes(path) ? [] : (codeOf(path).match(writing) ?? []),
    );
    assert.deepEqual(wrong, []);
    // Nobody but main.ts calls them, each behind its option or command.
    for (const writer of writers) {
      const callers = sources.flatMap(importsOf).filter(({ to, typeOnly }) => to === writer && !typeOnly);
      assert.deepEqual(new Set(callers.map(({ from }) => from)), new Set(["main.ts"]), writer);
      assert.ok(callers.every(({ late }) => late));
    }
    assert.match(codeOf("main.ts"), /planned\.outputFile === undefined\) return[^\n]*\n[^\n]*output_file\.ts/);
  });

  test("only main.ts ends the process, handles its signals and failures, and writes to its output", () => {
    const wrong = complaints(
      (path) =>
        codeOf(path).match(
          /\bprocess\s*\.\s*(exit|exitCode|abort|kill|reallyExit|on|once|stdout|stderr)\b|\bconsole\b/g,
        ) ?? [],
      // The command `simulate` serves until a signal, and says where.
      [...lib, ...probes, "mod.ts"].filter((path) => path !== "lib/simulate.ts"),
    );
    assert.deepEqual(wrong, []);
    assert.doesNotMatch(codeOf("lib/simulate.ts"), /process\s*\.\s*(exit|exitCode|abort|kill)\b/);
    assert.match(codeOf("main.ts"), /\bprocess\.exit\(/);
  });

  test("the environment is given, not looked at", () => {
    const wrong = complaints(
      (path) => codeOf(path).match(/\bprocess\s*\.\s*env\b/g) ?? [],
      [...lib, ...probes, "mod.ts"],
    );
    assert.deepEqual(wrong, []);
  });
});

describe("one table says it all", () => {
  test("every code is in docs/codes.md and explained", () => {
    const document = read("docs/codes.md");
    for (const [code, { status, brief }] of Object.entries(codes)) {
      assert.ok(document.includes(`\n| [${code}](#${code.toLowerCase()}) | ${status} | `), `${code} in the index`);
      assert.ok(document.includes(`\n## ${code}\n`), `${code} has a section`);
      assert.ok(explain([code]).startsWith(`${code}: ${brief}\n`));
    }
    assert.equal(document.match(/^## /gm)?.length, Object.keys(codes).length);
  });

  test("a check is a file of its name", () => {
    const files = probes.filter((path) => path !== "probes/list.ts").sort();
    assert.deepEqual(files, checks.map(({ name }) => `probes/${name.replaceAll("-", "_")}.ts`).sort());
  });
});

describe("tests", () => {
  // The reason why a source file has none of its own.
  const without: Readonly<Record<string, string>> = {
    "probes/list.ts": "a list, which test/cli.test.ts and test/probe.test.ts go by",
  };

  test("every source file has one of its name; those of a folder are tested through what uses them", () => {
    const testOf = (path: string) => {
      const [top, name, inner] = path.split("/") as [string, string, string?];
      const base = `${inner === undefined ? name.replace(/\.ts$/, "") : name}.test.ts`;
      return top === "probes" ? `test/probes/${base}` : `test/${base}`;
    };
    const missing = [...lib, ...probes].filter(
      (path) => without[path] === undefined && !existsSync(join(root, testOf(path))),
    );
    assert.deepEqual(missing, []);
    for (const path of Object.keys(without)) assert.ok(existsSync(join(root, path)), path);
  });

  test("a test of the first level is of a source file", () => {
    const stray = readdirSync(join(root, "test"))
      .filter((name) => name.endsWith(".test.ts") && name !== "layout.test.ts")
      .map((name) => name.replace(/\.test\.ts$/, ".ts"))
      .filter((name) => !existsSync(join(root, "lib", name)) && !existsSync(join(root, name)));
    assert.deepEqual(stray, []);
  });
});
