// Faults x runtimes x profiles: every cell ends by itself, with the code and the exit status of the table.
//
// How far beyond its deadline a cell ended is recorded and printed, never asserted: that is the machine's doing as well.
// The latest cells are run again alone, where the least is theirs.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { profiles } from "../../lib/exit.ts";
import { scenarios } from "../../lib/simulator.ts";
import { endServers, runCell, runtimes, startMs } from "./cells.ts";
import { connectionFaults, restarts } from "./servers.ts";
import { type FaultRow, faults, timeoutMs } from "./table.ts";

const promisedMs = 100;
const triesAlone = 30;
// Of another probe of the same machine, for a suite that shares its processors with others.
const atOnce = 4;

interface Late {
  readonly row: FaultRow;
  readonly runtime: string;
  readonly profile: (typeof profiles)[number];
  readonly pastMs: number;
}

const lateness: Late[] = [];
let cells = 0;
let wrong = 0;

test("every fault has its server, and every server its row", () => {
  const names = new Set(faults.map(({ name }) => name));
  for (const { name, from } of faults) {
    const known =
      from === "simulator" ? scenarios.some((one) => one.name === name) : name in { ...connectionFaults, ...restarts };
    assert.ok(known, name);
  }
  for (const name of [...Object.keys(connectionFaults), ...Object.keys(restarts)]) assert.ok(names.has(name), name);
});

for (const runtime of Object.keys(runtimes)) {
  describe(runtime, { concurrency: atOnce }, () => {
    for (const row of faults) {
      test(`${row.name} ${row.check}: ${row.code} ${row.status}`, async () => {
        const complaints: string[] = [];
        for (const profile of profiles) {
          const outcome = await runCell(row, runtime, profile);
          cells++;
          if (outcome.wrong !== "") complaints.push(`${profile}: ${outcome.wrong}`);
          const pastMs = outcome.wallMs - timeoutMs[row.late ? "late" : "other"];
          if (row.late) lateness.push({ row, runtime, profile, pastMs });
        }
        wrong += complaints.length;
        assert.deepEqual(complaints, []);
      });
    }
  });
}

after(async () => {
  const report = [`${faults.length} faults, ${cells} cells, ${wrong} wrong`];
  for (const runtime of Object.keys(runtimes)) {
    const own = lateness.filter((one) => one.runtime === runtime);
    if (own.length === 0) continue;
    const starts: number[] = [];
    for (let tries = 0; tries < 5; tries++) starts.push(await startMs(runtime));
    const start = starts.sort((a, b) => a - b)[2]!;
    // What ended late beside other runs has not shown that it does alone.
    for (let tries = 0; tries < triesAlone; tries++) {
      own.sort((a, b) => b.pastMs - a.pastMs);
      if (own[0]!.pastMs <= promisedMs) break;
      const { row, profile, pastMs } = own[0]!;
      const { wallMs } = await runCell(row, runtime, profile);
      own[0] = { ...own[0]!, pastMs: Math.min(pastMs, wallMs - timeoutMs.late) };
    }
    const most = own.reduce((a, b) => (b.pastMs > a.pastMs ? b : a));
    report.push(
      `${runtime}: ended at most ${Math.round(most.pastMs)} ms past --timeout, counted from the start of its process ` +
        `(${most.row.name}, ${most.profile}); a run that has nothing to wait for takes ${Math.round(start)} ms`,
    );
  }
  await endServers();
  console.log(report.join("\n"));
});
