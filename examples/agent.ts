// An agent in full: counts the pods of its node by phase and keeps the counts in a file for node_exporter's textfile
// collector. docs/library.md says what each part is for.
//
//   node examples/agent.ts --socket /var/lib/kubelet/pods-api/pods-api.sock --textfile /var/lib/node_exporter/pods.prom

import { rename, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { createPodsClient, Fault } from "../mod.ts";

const { values } = parseArgs({
  options: {
    socket: { type: "string", default: "/var/lib/kubelet/pods-api/pods-api.sock" },
    textfile: { type: "string", default: "/var/lib/node_exporter/pods.prom" },
  },
});

const phases = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];
const counts = new Map(phases.map((phase) => [phase, 0]));
let readAtMs = 0;
let written = Promise.resolve();

/** Puts what is known into the file, whole or not at all. */
function write(isUpToDate: boolean): Promise<void> {
  const lines = [
    "# HELP agent_pods Pods of this node by phase, as the kubelet last listed them.",
    "# TYPE agent_pods gauge",
    ...[...counts].map(([phase, count]) => `agent_pods{phase="${phase}"} ${count}`),
    "# HELP agent_up_to_date Whether the kubelet is followed now; if not, agent_pods are those of agent_read_seconds.",
    "# TYPE agent_up_to_date gauge",
    `agent_up_to_date ${isUpToDate ? 1 : 0}`,
    "# HELP agent_read_seconds When the pods last changed or were listed, in seconds since the epoch.",
    "# TYPE agent_read_seconds gauge",
    `agent_read_seconds ${(readAtMs / 1000).toFixed(3)}`,
  ];
  written = written.then(async () => {
    await writeFile(`${values.textfile}.tmp`, `${lines.join("\n")}\n`);
    await rename(`${values.textfile}.tmp`, values.textfile);
  });
  return written;
}

const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());

const client = createPodsClient({
  socket: values.socket,
  timeoutMs: 5000,
  // All agents of a node share 100 tokens a second; this one never takes over 2 of them.
  budget: { perSecond: 2, burst: 5 },
});

try {
  const changes = client.inventory(stop.signal, {
    fields: ["phase"],
    onFault: ({ code, message }, nextMs) => {
      console.error(`${code}: ${message}; again in ${Math.round(nextMs)} ms`);
      // Before the first listing there is nothing to tell, and after it the pods are those that were.
      if (readAtMs > 0) void write(false);
    },
  });
  for await (const { pods } of changes) {
    readAtMs = Date.now();
    for (const phase of counts.keys()) counts.set(phase, 0);
    for (const { phase } of pods.values()) counts.set(phase, (counts.get(phase) ?? 0) + 1);
    await write(true);
  }
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  // What does not pass by itself needs somebody: `kubelet-probe explain CODE` says what to do.
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  client.close();
}
