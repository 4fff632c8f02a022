import assert from "node:assert/strict";
import type { Stats } from "node:fs";
import { describe, test } from "node:test";
import type { Accounts } from "../lib/accounts.ts";
import { findExposure } from "../lib/exposure.ts";
import type { Place, Step } from "../lib/reach.ts";

const accounts: Accounts = {
  users: [
    { name: "root", uid: 0, groups: new Set([0]) },
    { name: "alice", uid: 1000, groups: new Set([1000, 990]) },
    { name: "bob", uid: 1001, groups: new Set([1001, 990]) },
    { name: "carol", uid: 1002, groups: new Set([1002, 990]) },
    { name: "dave", uid: 1003, groups: new Set([1003, 990]) },
  ],
  groupNames: new Map([
    [0, "root"],
    [990, "kubelet"],
    [991, "empty"],
    [1000, "alice"],
  ]),
};

type Owner = readonly [mode: number, uid?: number, gid?: number];
const place = (path: string, [mode, uid = 0, gid = 0]: Owner): Place => ({ path, stats: { mode, uid, gid } as Stats });

/** `/`, `/a`, `/a/s`: what others can do there, as `STATUS subject: message`. */
function exposed(folder: Owner, socket: Owner, owners: readonly number[] = [0]) {
  const [root, a, s] = [place("/", [0o755]), place("/a", folder), place("/a/s", socket)];
  const steps: Step[] = [
    { folders: [root], entry: a },
    { folders: [root, a], entry: s },
  ];
  const { findings, others } = findExposure(steps, accounts, new Set(owners));
  assert.ok(findings.every(({ code }) => code === "SocketInsecure"));
  return {
    said: findings.map(({ status, subject, message }) => `${status ?? "CRITICAL"} ${subject}: ${message}`),
    others,
  };
}

describe("now", () => {
  test("as the kubelet makes it: nothing", () => {
    assert.deepEqual(exposed([0o750], [0o755]), { said: [], others: [] });
    assert.deepEqual(exposed([0o755], [0o755]), { said: [], others: [] });
  });
  test("every user", () => {
    assert.deepEqual(exposed([0o755], [0o666]), {
      said: ["CRITICAL /a/s: mode 0666: every user can connect"],
      others: ["every user"],
    });
    assert.deepEqual(exposed([0o777], [0o755]).said, ["CRITICAL /a: mode 0777: every user can replace what is in it"]);
  });
  test("members of a group, the first three by name", () => {
    assert.deepEqual(exposed([0o750, 0, 990], [0o770, 0, 990]), {
      said: ["CRITICAL /a/s: mode 0770: alice, bob, carol and 1 more can connect"],
      others: ["alice", "bob", "carol", "dave"],
    });
    assert.deepEqual(exposed([0o755], [0o770, 0, 1000]).said, ["CRITICAL /a/s: mode 0770: alice can connect"]);
  });
  test("everybody's by its mode, a group's by the folder above it", () => {
    assert.deepEqual(exposed([0o750, 0, 1000], [0o777]).said, ["CRITICAL /a/s: mode 0777: alice can connect"]);
  });
  test("a group that no file knows may have members", () => {
    assert.deepEqual(exposed([0o755], [0o770, 0, 555]).said, ["CRITICAL /a/s: mode 0770: the group 555 can connect"]);
  });
  test("an owner", () => {
    assert.deepEqual(exposed([0o755, 1000], [0o755]).said, [
      "CRITICAL /a: its owner is uid 1000 (alice), who can replace what is in it",
    ]);
    assert.deepEqual(exposed([0o755], [0o755, 77]).said, ["CRITICAL /a/s: its owner is uid 77, expected is uid 0"]);
    assert.deepEqual(exposed([0o755, 1000], [0o755, 1000], [0, 1000]).said, []);
  });
  test("the sticky bit keeps others from replacing what is not theirs", () => {
    assert.deepEqual(exposed([0o1777], [0o755]).said, []);
    assert.deepEqual(exposed([0o1777], [0o755, 1000]).said, [
      "CRITICAL /a/s: its owner is uid 1000 (alice), who can replace it in spite of the sticky bit above",
      "CRITICAL /a/s: its owner is uid 1000 (alice), expected is uid 0",
    ]);
  });
});

describe("one step away", () => {
  test("a folder above keeps them out", () => {
    assert.deepEqual(exposed([0o750], [0o777]), {
      said: ["WARNING /a/s: mode 0777: every user could connect, if the folders above let them in"],
      others: [],
    });
    assert.deepEqual(exposed([0o700], [0o770, 0, 990]).said, [
      "WARNING /a/s: mode 0770: the group 990 (kubelet) could connect, if the folders above let them in",
    ]);
    assert.deepEqual(exposed([0o700], [0o755, 1000]).said, [
      "WARNING /a/s: its owner is uid 1000 (alice), expected is uid 0; the folders above keep them out",
    ]);
  });
  test("a group without a member", () => {
    assert.deepEqual(exposed([0o755], [0o775, 0, 991]).said, [
      "WARNING /a/s: mode 0775: the group 991 (empty) could connect, if it had a member besides the owner",
    ]);
    assert.deepEqual(exposed([0o775], [0o755]).said, [
      "WARNING /a: mode 0775: the group 0 (root) could replace what is in it, if it had a member besides the owner",
    ]);
  });
});
