// `npm run soak -- --restarts 1000`: the soak at length. Prints what came of it, and fails where a pod was lost or a phantom.

import { parseArgs } from "node:util";
import { kubeletServer } from "../support.ts";
import { soak } from "./soak.ts";

const { values } = parseArgs({
  options: { restarts: { type: "string", default: "100" }, seed: { type: "string", default: "1" } },
});
const report = await soak(kubeletServer, {
  rounds: Number(values.restarts),
  seed: Number(values.seed),
  progress({ seconds, lost, phantom }, at) {
    if (at % 100 === 0) console.error(`${at} rounds, ${Math.round(seconds)} s, ${lost.length + phantom.length} wrong`);
  },
});
console.log(JSON.stringify(report, null, 2));
if (report.lost.length + report.phantom.length + report.empty > 0) process.exitCode = 1;
