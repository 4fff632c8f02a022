import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { codes, isCode } from "../lib/codes.ts";
import { isStatus } from "../lib/status.ts";

// The design's table, typed once more by hand: a code is never renamed, and its status is a promise.
const design = {
  OK: ["SocketSecure", "Ready", "StaticPodsHealthy", "RateLimitHeadroom", "WatchHealthy", "ManifestsClean"],
  WARNING: [
    "Initializing",
    "RateLimited",
    "WatchDropped",
    "StaticPodNotReady",
    "StaticPodUnexpected",
    "StaticPodStale",
    "ManifestIgnored",
    "ManifestShadowed",
    // Beside the design: a metric outside of a given range that none of the check's codes stands for.
    "ThresholdExceeded",
  ],
  CRITICAL: [
    "SocketMissing",
    "SocketNotASocket",
    "SocketDead",
    "SocketInsecure",
    "Timeout",
    "ConnectionLost",
    "ServerError",
    "StaticPodMissing",
    "StaticPodFailed",
    "ManifestRefused",
    "WatchDiverged",
  ],
  UNKNOWN: [
    "PermissionDenied",
    "PathTooLong",
    "NotGrpc",
    "WrongService",
    "AnswerTooLarge",
    "Undecodable",
    "InventoryUnavailable",
    "ManifestsUnreadable",
    "BadUsage",
    "InternalError",
  ],
} as const;

describe("codes", () => {
  test("the codes and statuses of the design, and no others", () => {
    const found = Object.entries(codes).map(([code, { status }]) => `${status} ${code}`);
    const wanted = Object.entries(design).flatMap(([status, names]) => names.map((code) => `${status} ${code}`));
    assert.deepEqual(found.sort(), wanted.sort());
  });

  test("a brief is one ASCII clause without a number, short enough to stand behind its code in 80 bytes", () => {
    const briefs = Object.values(codes).map(({ brief }) => brief);
    for (const brief of briefs) assert.match(brief, /^[A-Za-z][ -/:-~]{0,55}$/);
    assert.equal(new Set(briefs).size, briefs.length, "two codes say the same");
  });

  test("isCode knows them by their spelling", () => {
    for (const [code, { status }] of Object.entries(codes)) {
      assert.ok(isCode(code));
      assert.ok(isStatus(status));
    }
    for (const text of ["", "ready", "Ready ", "constructor", "__proto__", "toString"]) assert.ok(!isCode(text), text);
  });

  test("the table cannot be changed", () => {
    assert.ok(Object.isFrozen(codes));
  });
});
