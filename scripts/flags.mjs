// How the binary is compiled: used by the build, and by what measures the binary's size.

/** For the program and for the files beside it. */
export const bundleFlags = ["--minify", "--format=esm", "--sourcemap=none"];

/** For the program alone. */
export const compileFlags = [
  // Bytecode instead of parsing at every start: half the CPU time. To any depth: with --bytecode-depth=1 the binary is 0.3 MB
  // smaller compressed, and a probe takes a fifth more CPU time.
  "--bytecode",
  // Keeps what is imported on demand out of the first chunk: 10 ms instead of 21 ms until `ready` has its answer.
  "--splitting",
  // A probe is over before compiling to machine code pays: half the CPU time and 8 MiB less with 110 pods, and no slower
  // with 2,000 pods of 10 KB.
  "--compile-jit-policy=1000",
  // The runtime ends with status 1, which is WARNING, where the current folder was deleted; here it looks at another.
  // Paths on the command line are absolute for that reason.
  "--compile-exec-argv=--cwd=/",
  // By default a compiled binary runs the `preload` of a bunfig.toml and reads the .env of whatever folder it is called in.
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-dotenv",
  // Off by default today; spelled out since the probe runs in folders that others may write to.
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
];

// These go in as files of their own, without bytecode, for no usual check waits for them. With it, the simulator and the
// node:http2 it stands on would be 1.2 MB, 0.5 MB of a compressed download; the scrape of a URL and node:https 0.45 MB and 0.2.
const simulator = { entry: "lib/simulate.ts", path: "./simulator.js" };
// lib imports it by this name: a path from a constant is nothing that JSR could analyze.
const fetchMetrics = { entry: "lib/fetch_metrics.ts", path: "./fetch_metrics.ts" };
export const files = [simulator, fetchMetrics];

/** So that the bundle leaves them out. */
export const externalFlags = files.map(({ path }) => `--external=*${path.slice(1)}`);

/** What the program knows of its build, as flags. */
export function defineFlags({ version, commit, date }) {
  const defines = {
    __KP_VERSION__: version,
    __KP_COMMIT__: commit,
    __KP_DATE__: date,
    __KP_SIMULATOR__: simulator.path,
  };
  return Object.entries(defines).map(([name, value]) => `--define=${name}=${JSON.stringify(value)}`);
}
