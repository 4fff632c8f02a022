// `deno task compile`: dist/kubelet-probe-deno, with Deno's runtime instead of Bun's. Deno downloads that runtime when it
// is not in its cache; where it can't, this says so and is no failure: the project's own binary is Bun's.
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { environment, fail, parseArguments, root, run, tool } from "./tools.mjs";

parseArguments({});
const dist = join(root, "dist");
const output = join(dist, "kubelet-probe-deno");
mkdirSync(dist, { recursive: true });
const permissions = ["--no-prompt", "--allow-read", "--allow-write", "--allow-env", "--allow-sys", "--allow-net"];
const result = run(tool("deno"), ["compile", "--no-check", ...permissions, `--output=${output}`, "main.ts"], {
  env: environment({ NO_COLOR: "1" }),
});
if (result.failed === undefined) console.log(`dist/kubelet-probe-deno: ${(statSync(output).size / 1e6).toFixed(1)} MB`);
else if (/error sending request|Download .*denort/.test(result.stderr)) {
  console.log("skipped: Deno's runtime for compiled programs (denort) cannot be downloaded here");
} else fail(`Cannot compile with Deno: ${result.failed}\n${result.stderr}`);
