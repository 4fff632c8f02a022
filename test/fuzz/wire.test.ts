// A small part of `npm run fuzz:wire`, always the same; the runs that found something are here by their bytes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isValid } from "./feed.ts";
import { recordedPods } from "./recordings.ts";
import { fuzzWire } from "./wire.ts";

test("3000 hostile answers: no crash, no hang, nothing valid refused", async () => {
  const tally = await fuzzWire(3000, 1);
  assert.deepEqual(tally.wrong, []);
  assert.equal(tally.runs, 3000);
  // That it gets to where answers are taken and refused for each reason, and not only to the first frame.
  for (const outcome of ["decoded", "Undecodable", "NotGrpc", "ConnectionLost", "WatchDropped", "ServerError"]) {
    assert.ok((tally.outcomes[outcome] ?? 0) > 10, `${outcome}: ${tally.outcomes[outcome]}`);
  }
  for (const outcome of ["check Undecodable", "check NotGrpc", "check StaticPodsHealthy"]) {
    assert.ok((tally.outcomes[outcome] ?? 0) > 0, outcome);
  }
});

test("the other reader of pods calls recorded ones valid, and a cut one not", () => {
  const valid = recordedPods.filter(isValid);
  assert.ok(valid.length > 3);
  for (const pod of valid) assert.equal(isValid(pod.subarray(0, -1)), false);
});
