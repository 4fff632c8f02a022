// `node scripts/npm.mjs`: the library as an npm package in dist/npm. Node takes types off no file below node_modules, so the
// package has JavaScript, with declarations beside it. `npm publish dist/npm` publishes it.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, root, run, tool } from "./tools.mjs";

const folder = join(root, "dist", "npm");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const config = join(folder, "tsconfig.json");
writeFileSync(
  config,
  JSON.stringify({
    extends: "../../tsconfig.json",
    compilerOptions: {
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      rootDir: root,
      outDir: folder,
    },
    files: [join(root, "mod.ts")],
    include: [],
  }),
);
const compiled = run(tool("tsc"), ["--project", config]);
if (compiled.failed !== undefined) fail(`Cannot compile the library: ${compiled.stdout}${compiled.stderr}`);
rmSync(config);
// The example in the documentation of the module, as a user of the package writes it.
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
for (const name of ["mod.js", "mod.d.ts"]) {
  const path = join(folder, name);
  writeFileSync(path, readFileSync(path, "utf8").replaceAll('"./mod.ts"', `"${manifest.name}"`));
}

const imported = new Set(packagesOf(folder));
// npm takes a provenance only from the repository that the package names; where that is, a workflow knows.
const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: place } = process.env;
writeFileSync(
  join(folder, "package.json"),
  `${JSON.stringify(
    {
      name: manifest.name,
      version: manifest.version,
      description: manifest.description,
      license: manifest.license,
      ...(place === undefined ? {} : { repository: { type: "git", url: `git+${server}/${place}.git` } }),
      type: "module",
      engines: { node: ">=20" },
      os: ["linux"],
      sideEffects: false,
      exports: { ".": { types: "./mod.d.ts", default: "./mod.js" } },
      dependencies: Object.fromEntries(Object.entries(manifest.dependencies).filter(([name]) => imported.has(name))),
    },
    null,
    2,
  )}\n`,
);
for (const name of ["LICENSE", "CHANGELOG.md"]) copyFileSync(join(root, name), join(folder, name));
// In the package the library has another name than in the sources.
const readme = readFileSync(join(root, "README.md"), "utf8").replaceAll('"./mod.ts"', `"${manifest.name}"`);
writeFileSync(join(folder, "README.md"), readme);
console.log(`dist/npm: ${manifest.name} ${manifest.version}`);

/** The packages that the JavaScript below a folder imports. */
function packagesOf(path) {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const at = join(path, entry.name);
    if (entry.isDirectory()) return packagesOf(at);
    if (!entry.name.endsWith(".js")) return [];
    return [...readFileSync(at, "utf8").matchAll(/(?:from|import\()\s*["']((?:@[^/"']+\/)?[^./"'@][^/"']*)/g)]
      .map(([, name]) => name)
      .filter((name) => !name.startsWith("node:"));
  });
}
