// The exit statuses of the design, typed here by hand for every code: nothing of this table comes from the program.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Code, codes } from "../lib/codes.ts";
import {
  defaultTimeoutMs,
  type ExitRules,
  exitStatus,
  helpExit,
  type ProbePurpose,
  profiles,
  usageExit,
} from "../lib/exit.ts";
import { type Status, statuses } from "../lib/status.ts";

type Row = readonly [nagios: number, npd: number, kube: number, startup: number, readiness: number, liveness: number];

// nagios, npd, kube; then kube --for startup, readiness, liveness.
const table: Readonly<Record<Code, Row>> = {
  SocketSecure: [0, 0, 0, 1, 1, 0],
  Ready: [0, 0, 0, 0, 0, 0],
  StaticPodsHealthy: [0, 0, 0, 1, 1, 0],
  RateLimitHeadroom: [0, 0, 0, 1, 1, 0],
  WatchHealthy: [0, 0, 0, 1, 1, 0],
  ManifestsClean: [0, 0, 0, 1, 1, 0],

  SocketMissing: [2, 1, 1, 1, 1, 1],
  SocketNotASocket: [2, 1, 1, 1, 1, 1],
  SocketDead: [2, 1, 1, 1, 1, 1],
  SocketInsecure: [2, 1, 1, 1, 1, 0],
  PermissionDenied: [3, 2, 1, 1, 1, 0],
  PathTooLong: [3, 2, 1, 1, 1, 0],
  Timeout: [2, 1, 1, 1, 1, 1],
  NotGrpc: [3, 2, 1, 1, 1, 0],
  WrongService: [3, 2, 1, 1, 1, 0],
  Initializing: [1, 0, 0, 1, 1, 0],
  RateLimited: [1, 0, 0, 1, 0, 0],
  WatchDropped: [1, 0, 0, 1, 1, 0],
  WatchDiverged: [2, 1, 1, 1, 1, 0],
  AnswerTooLarge: [3, 2, 1, 1, 1, 0],
  ConnectionLost: [2, 1, 1, 1, 1, 0],
  Undecodable: [3, 2, 1, 1, 1, 0],
  ServerError: [2, 1, 1, 1, 1, 0],
  InventoryUnavailable: [3, 2, 1, 1, 1, 0],

  StaticPodMissing: [2, 1, 1, 1, 1, 0],
  StaticPodFailed: [2, 1, 1, 1, 1, 0],
  StaticPodNotReady: [1, 0, 0, 1, 1, 0],
  StaticPodUnexpected: [1, 0, 0, 1, 1, 0],
  StaticPodStale: [1, 0, 0, 1, 1, 0],

  ManifestRefused: [2, 1, 1, 1, 1, 0],
  ManifestIgnored: [1, 0, 0, 1, 1, 0],
  ManifestShadowed: [1, 0, 0, 1, 1, 0],
  ManifestsUnreadable: [3, 2, 1, 1, 1, 0],

  // The kubelet is ready, only slower than was asked for.
  ThresholdExceeded: [1, 0, 0, 0, 0, 0],
  BadUsage: [3, 2, 1, 1, 1, 1],
  InternalError: [3, 2, 1, 1, 1, 0],
};

const purposes: readonly ProbePurpose[] = ["startup", "readiness", "liveness"];
const everyRule: readonly ExitRules[] = [
  { profile: "nagios" },
  { profile: "npd" },
  { profile: "kube" },
  ...purposes.map((purpose) => ({ profile: "kube", purpose }) as const),
];

describe("every code with its own status, in every profile and for every purpose", () => {
  test("the table has every code", () => {
    assert.deepEqual(Object.keys(table).sort(), Object.keys(codes).sort());
  });
  for (const [name, row] of Object.entries(table)) {
    const code = name as Code;
    test(code, () => {
      const { status } = codes[code];
      assert.deepEqual(
        everyRule.map((rules) => exitStatus({ status, code }, rules)),
        row,
      );
    });
  }
});

describe("statuses", () => {
  // A code whose exit status is its status's in each profile.
  const code = "ServerError";
  const rows: readonly (readonly [ExitRules, Readonly<Record<Status, number>>])[] = [
    [{ profile: "nagios" }, { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 }],
    // node-problem-detector: 0 is OK, 1 a problem, anything else unknown (case d05).
    [{ profile: "npd" }, { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 2 }],
    [
      { profile: "npd", warningIsProblem: true },
      { OK: 0, WARNING: 1, CRITICAL: 1, UNKNOWN: 2 },
    ],
    // A WARNING must not restart a container (case d09).
    [{ profile: "kube" }, { OK: 0, WARNING: 0, CRITICAL: 1, UNKNOWN: 1 }],
    [
      { profile: "kube", strict: true },
      { OK: 0, WARNING: 1, CRITICAL: 1, UNKNOWN: 1 },
    ],
  ];
  for (const [rules, exits] of rows) {
    test(JSON.stringify(rules), () => {
      for (const status of statuses) assert.equal(exitStatus({ status, code }, rules), exits[status], status);
    });
  }

  test("--strict and --npd-warning are each for their profile alone", () => {
    const warning = { status: "WARNING", code: "Initializing" } as const;
    assert.equal(exitStatus(warning, { profile: "nagios", strict: true, warningIsProblem: true }), 1);
    assert.equal(exitStatus(warning, { profile: "npd", strict: true }), 0);
    assert.equal(exitStatus(warning, { profile: "kube", warningIsProblem: true }), 0);
  });
});

describe("purposes", () => {
  const of = (purpose: ProbePurpose, code: Code, status: Status, strict = false) =>
    exitStatus({ code, status }, { profile: "kube", purpose, strict });

  test("what counts is the code, not its status", () => {
    for (const status of statuses) {
      assert.equal(of("startup", "Initializing", status), 1);
      assert.equal(of("readiness", "RateLimited", status), 0);
      assert.equal(of("liveness", "Initializing", status), 0);
      assert.equal(of("liveness", "SocketDead", status), 1);
    }
  });

  test("an answer that is too slow passes as a WARNING, and not when that is strict or CRITICAL", () => {
    for (const purpose of ["startup", "readiness"] as const) {
      assert.equal(of(purpose, "ThresholdExceeded", "WARNING"), 0);
      assert.equal(of(purpose, "ThresholdExceeded", "WARNING", true), 1);
      assert.equal(of(purpose, "ThresholdExceeded", "CRITICAL"), 1);
      assert.equal(of(purpose, "ThresholdExceeded", "UNKNOWN"), 1);
    }
    assert.equal(of("liveness", "ThresholdExceeded", "CRITICAL", true), 0);
  });

  test("a purpose means nothing to the other profiles", () => {
    const verdict = { status: "CRITICAL", code: "Timeout" } as const;
    assert.equal(exitStatus(verdict, { profile: "nagios", purpose: "liveness" }), 2);
    assert.equal(exitStatus(verdict, { profile: "npd", purpose: "liveness" }), 1);
  });
});

describe("no status outside of a profile's table", () => {
  const allowed = { nagios: [0, 1, 2, 3], npd: [0, 1, 2], kube: [0, 1] } as const;
  test("whatever code, status and rules", () => {
    for (const profile of profiles) {
      for (const purpose of [undefined, ...purposes]) {
        for (const flag of [false, true]) {
          const rules = { profile, purpose, strict: flag, warningIsProblem: flag };
          for (const code of Object.keys(codes) as Code[]) {
            for (const status of statuses) {
              assert.ok((allowed[profile] as readonly number[]).includes(exitStatus({ code, status }, rules)));
            }
          }
        }
      }
    }
  });
});

describe("without a verdict", () => {
  test("wrong usage", () => {
    assert.deepEqual(profiles.map(usageExit), [3, 2, 1]);
  });
  test("help and version: 0, and UNKNOWN as the guidelines say where nagios was asked for", () => {
    assert.deepEqual(
      profiles.map((profile) => [helpExit(profile, false), helpExit(profile, true)]),
      [
        [0, 3],
        [0, 0],
        [0, 0],
      ],
    );
  });
  test("deadlines: below what runs the probe gives it by default", () => {
    assert.deepEqual(profiles.map(defaultTimeoutMs), [10_000, 4_000, 900]);
  });
});
