import assert from "node:assert/strict";
import { test } from "node:test";
import { kubeletServer, needs } from "../support.ts";
import { soak } from "./soak.ts";

test("30 restarts and drops of the kubelet's own server: no pod is lost, none is a phantom", {
  skip: needs.kubelet,
}, async () => {
  const report = await soak(kubeletServer, { rounds: 30, seed: Math.floor(Math.random() * 1e9) });
  assert.deepEqual([report.lost, report.phantom, report.empty], [[], [], 0]);
  assert.ok(report.resyncs > 0 && report.changes > 0);
});
