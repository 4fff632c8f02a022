// `npm run build:kubelet`: the Go programs that tests and benchmarks need. The kubelet's own Pods API server (test/kubelet)
// becomes dist/kubelet-server; the client it is measured against and the stop-watch (bench) become dist/peer and dist/measure;
// what judges the manifests of deploy/ (test/deploy/kubernetes) becomes dist/kubernetes-check.
// A first build of the kubelet's packages takes about 6 minutes on 2 cores; Go keeps what it compiled (1.7 GB).
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, parseArguments, root, run } from "./tools.mjs";

// Without Go nothing is wrong with the project: callers can tell that apart from a build that failed.
const statusWithoutGo = 3;

const programs = [
  { name: "measure", folder: "bench", package: "./measure" },
  { name: "peer", folder: "bench", package: "./peer" },
  { name: "kubelet-server", folder: "test/kubelet", package: "." },
  { name: "kubernetes-check", folder: "test/deploy/kubernetes", package: "." },
];

const { values } = parseArguments({ force: null });
const dist = join(root, "dist");

const go = run("go", ["version"]);
if (go.failed !== undefined) {
  fail(
    "go not found: the kubelet's own server and the benchmark's peer cannot be built; install Go 1.26 or later, or do without the tests that need them",
    statusWithoutGo,
  );
}

mkdirSync(dist, { recursive: true });
for (const program of programs) build(program);

function build(program) {
  const output = join(dist, program.name);
  const stamp = join(dist, `.${program.name}.stamp`);
  const wanted = hashSources(program);
  if (!values.force && existsSync(output) && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) {
    console.log(`dist/${program.name} is up to date`);
    return;
  }
  const made = `${output}.${process.pid}`;
  const started = Date.now();
  console.log(`dist/${program.name}: go build … (the first time takes minutes)`);
  // No version control stamp: it would differ by clone, and fail where git distrusts the folder's owner.
  const args = [
    "build",
    "-trimpath",
    "-buildvcs=false",
    "-mod=readonly",
    "-ldflags",
    "-s -w",
    "-o",
    made,
    program.package,
  ];
  const result = run("go", args, { cwd: join(root, program.folder), stdio: ["ignore", "inherit", "inherit"] });
  if (result.failed !== undefined) {
    rmSync(made, { force: true });
    fail(`Cannot build dist/${program.name}: ${result.failed}`);
  }
  renameSync(made, output);
  writeFileSync(stamp, wanted);
  const megabytes = (statSync(output).size / 1e6).toFixed(1);
  console.log(`dist/${program.name}: ${megabytes} MB, built in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

function hashSources({ folder }) {
  const hash = createHash("sha256").update(go.stdout);
  for (const path of readdirSync(join(root, folder), { recursive: true }).map(String).sort()) {
    if (/(\.go|\.s|^go\.mod|^go\.sum)$/.test(path))
      hash.update(`\0${path}\0`).update(readFileSync(join(root, folder, path)));
  }
  return hash.digest("hex");
}
