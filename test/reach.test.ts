import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, realpathSync, type Stats, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { Fault } from "../lib/fault.ts";
import { canConnect, canReplace, everyUser, passes, type Step, type Visitor, visitorsOf, walk } from "../lib/reach.ts";
import { inFolder, needsRoot } from "./probes/support.ts";

const needsTools = needsRoot || (spawnSync("setpriv", ["--version"]).error ? "needs setpriv (util-linux)" : false);

describe("the way to a path", () => {
  const inReal = (use: (folder: string) => void) => inFolder((folder) => use(realpathSync(folder)));
  const entries = (path: string) => walk(path).map(({ entry }) => entry.path);

  test("every name from the root on", () =>
    inReal((folder) => {
      writeFileSync(join(folder, "s"), "");
      const steps = walk(join(folder, "s"));
      assert.deepEqual(steps.map(({ folders, entry }) => [folders.at(-1)!.path, entry.path]).at(-1), [
        folder,
        join(folder, "s"),
      ]);
      assert.deepEqual(
        steps[0]!.folders.map(({ path }) => path),
        ["/"],
      );
      assert.equal(steps.at(-1)!.folders.length, steps.length);
    }));

  test("links with what they lead to, relative and absolute, and back up", () =>
    inReal((folder) => {
      mkdirSync(join(folder, "a/b"), { recursive: true });
      mkdirSync(join(folder, "c"));
      writeFileSync(join(folder, "a/s"), "");
      symlinkSync("../a/b/..", join(folder, "c/relative"));
      symlinkSync(join(folder, "c"), join(folder, "absolute"));
      const way = entries(join(folder, "absolute/relative/s")).filter((path) => path.startsWith(folder));
      assert.deepEqual(
        way.map((path) => path.slice(folder.length)),
        ["", "/absolute", "", "/c", "/c/relative", "/a", "/a/b", "/a/s"],
      );
      const last = walk(join(folder, "absolute/relative/s")).at(-1)!;
      // The folder that holds the name comes last, wherever the links went before.
      assert.equal(last.folders.at(-1)!.path, join(folder, "a"));
      assert.ok(
        last.folders.some(({ path }) => path === join(folder, "c")),
        "who cannot pass it does not get there",
      );
    }));

  test("nothing there, a file on the way, a circle", () =>
    inReal((folder) => {
      writeFileSync(join(folder, "file"), "");
      symlinkSync("circle", join(folder, "circle"));
      for (const name of ["none", "file/s", "circle"]) {
        assert.throws(
          () => walk(join(folder, name)),
          (error) => error instanceof Fault && error.code === "SocketMissing" && error.message.includes(name),
          name,
        );
      }
    }));

  test("a folder that is not to be looked into", { skip: process.geteuid?.() === 0 && "not as root" }, () =>
    inReal((folder) => {
      mkdirSync(join(folder, "closed"));
      chmodSync(join(folder, "closed"), 0);
      assert.throws(() => walk(join(folder, "closed/s")), { code: "PermissionDenied" });
      chmodSync(join(folder, "closed"), 0o700);
    }),
  );
});

const place = (mode: number, uid = 0, gid = 0, path = "/d") => ({ path, stats: { mode, uid, gid } as Stats });
const step = (folders: ReturnType<typeof place>[], entry: ReturnType<typeof place>): Step => ({ folders, entry });
const visitor = (uid: number | undefined, ...groups: number[]): Visitor => ({
  name: "v",
  uid,
  groups: new Set(groups),
});
const root = place(0o755, 0, 0, "/");

// The same questions as access(2) answers, with owner, group and others in this order.
describe("what modes let others do", () => {
  test("connecting takes the write bit of the class that counts, and every folder's x", () => {
    const socket = place(0o755);
    assert.ok(!canConnect(everyUser, step([root], socket)));
    assert.ok(canConnect(everyUser, step([root], place(0o002))));
    assert.ok(canConnect(visitor(1, 7), step([root], place(0o020, 0, 7))));
    // The group's bits count for its members, though others have more.
    assert.ok(!canConnect(visitor(1, 7), step([root], place(0o705, 0, 7))));
    assert.ok(!canConnect(visitor(1, 7), step([root], place(0o002, 0, 7))));
    assert.ok(canConnect(visitor(1), step([root], place(0o002, 0, 7))));
    assert.ok(!canConnect(everyUser, step([root, place(0o750)], place(0o777))));
    assert.ok(canConnect(visitor(1, 7), step([root, place(0o750, 0, 7)], place(0o777))));
    // Who owns it gives themselves what they lack.
    assert.ok(canConnect(visitor(1), step([root], place(0, 1))));
  });

  test("passing", () => {
    assert.ok(passes(everyUser, [root, place(0o001)]));
    assert.ok(!passes(visitor(1, 7), [root, place(0o701, 0, 7)]));
    assert.ok(passes(visitor(1), [place(0, 1)]));
  });

  test("replacing takes the folder's write bit, or owning it; with the sticky bit, owning one of the two", () => {
    const entry = place(0o755);
    assert.ok(!canReplace(everyUser, step([root], entry)));
    assert.ok(canReplace(everyUser, step([root, place(0o777)], entry)));
    assert.ok(!canReplace(everyUser, step([root, place(0o776)], entry)), "without x no name is found");
    assert.ok(!canReplace(everyUser, step([root, place(0o1777)], entry)));
    assert.ok(canReplace(visitor(1), step([root, place(0o1777)], place(0o755, 1))));
    assert.ok(canReplace(visitor(1), step([root, place(0o1700, 1)], entry)));
    assert.ok(!canReplace(visitor(1), step([place(0o700), place(0o777)], entry)));
    // Of what is in a folder of others', its owner only replaces nothing.
    assert.ok(!canReplace(visitor(1), step([root], place(0o755, 1))));
  });
});

// access(2) is asked for what the modes say, in folders that belong to root: 4 x 4 x 8 of them, for three users.
test("the kernel lets the same users pass, write and replace", { skip: needsTools }, () =>
  inFolder((folder) => {
    chmodSync(folder, 0o755);
    const paths: string[] = [];
    for (const outer of [0o755, 0o750, 0o711, 0o700]) {
      for (const inner of [0o777, 0o770, 0o705, 0o731]) {
        for (const mode of [0o755, 0o775, 0o757, 0o777, 0o700, 0o720, 0o702, 0o705]) {
          const [a, b] = [join(folder, `${paths.length}`), join(folder, `${paths.length}`, "b")];
          mkdirSync(b, { recursive: true });
          const path = join(b, "s");
          writeFileSync(path, "");
          for (const [at, to] of [
            [a, outer],
            [b, inner],
            [path, mode],
          ] as const) {
            chmodSync(at, to);
            chownSync(at, 0, 4321);
          }
          paths.push(path);
        }
      }
    }
    const ask = 'for d; do [ -w "$d/s" ]; w=$?; [ -w "$d" ] && [ -x "$d" ]; echo "$w$?"; done';
    for (const [uid, groups] of [
      [1000, []],
      [1000, [4321]],
      [1001, [4320, 4321, 4322]],
    ] as const) {
      const as = [`--reuid=${uid}`, "--regid=1000", groups.length === 0 ? "--clear-groups" : `--groups=${groups}`];
      const { stdout } = spawnSync("setpriv", [...as, "sh", "-c", ask, "sh", ...paths.map(dirname)], {
        encoding: "utf8",
      });
      const kernel = stdout.trim().split("\n");
      const ours = paths.map((path) => {
        const last = walk(path).at(-1)!;
        const who = visitor(uid, 1000, ...groups);
        return `${canConnect(who, last) ? 0 : 1}${canReplace(who, last) ? 0 : 1}`;
      });
      assert.deepEqual(ours, kernel);
    }
  }),
);

test("who there is: known users but the owners, unknown owners and groups of the way, anybody else", () => {
  const accounts = {
    users: [
      { name: "root", uid: 0, groups: new Set([0]) },
      { name: "alice", uid: 1000, groups: new Set([1000]) },
      { name: "agent", uid: 900, groups: new Set([900]) },
    ],
    groupNames: new Map([
      [0, "root"],
      [1000, "alice"],
    ]),
  };
  const steps = [step([root, place(0o755, 5, 6)], place(0o755, 0, 0))];
  const found = visitorsOf(accounts, steps, new Set([0, 900]));
  assert.deepEqual(
    found.map(({ name }) => name),
    ["every user", "alice", "uid 5", "the group 6"],
  );
});
