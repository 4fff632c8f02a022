import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, realpathSync, symlinkSync, utimesSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Report } from "../../lib/probe.ts";
import { startSimulator } from "../../lib/simulator.ts";
import { findingsOf, inFolder, needsRoot, reportOf, runWords, verdict, withSimulator } from "./support.ts";

const isRoot = needsRoot === false;
// Not one that waits: the simulator of this process has to answer meanwhile.
const execute = promisify(execFile);
const script = fileURLToPath(new URL("./run_check.ts", import.meta.url));

/** A healthy socket below a folder that anybody may enter, as /var/lib is. */
function withOpenTree<T>(use: (socket: string, folder: string) => Promise<T>): Promise<T> {
  return withSimulator("healthy", async ({ socket }, folder) => {
    chmodSync(folder, 0o755);
    return use(socket, folder);
  });
}

async function socketCheck(socket: string, ...words: readonly string[]) {
  const report = await runWords(["socket", "--socket", socket, ...words]);
  return { report, check: reportOf(report, "socket") };
}

describe("socket, as the kubelet makes it", () => {
  test("0755 in a folder 0750: secure, and no token", () =>
    withOpenTree(async (socket, folder) => {
      const { report, check } = await socketCheck(socket);
      assert.equal(verdict(report), "OK SocketSecure");
      assert.equal(report.tokensSpent, 0);
      assert.deepEqual(check.findings, []);
      const { mode, uid, others, links, mounted, pathBytes, folders } = check.data;
      assert.deepEqual(
        [mode, uid, others, links, mounted, pathBytes],
        ["0755", process.geteuid?.(), [], [], false, socket.length],
      );
      const last = (folders as { path: string; mode: string }[]).at(-1)!;
      assert.deepEqual([last.path, last.mode], [join(folder, "pods-api"), "0750"]);
    }));

  test("what -v says: mode, owner, age, who else, the way, the length of the path", () =>
    withOpenTree(async (socket) => {
      const text = (await socketCheck(socket)).check.details.join("\n");
      assert.match(text, /^mode 0755, owner \d+:\d+, served for \d+ m?s\n/);
      assert.match(text, /\nbesides its owner and root can connect: nobody\n/);
      assert.match(text, /\non the way: \/ 0\d{3} 0:0, /);
      assert.match(text, new RegExp(`\\npath: ${socket.length} of at most 107 bytes`));
    }));

  // A later chmod moves ctime and not mtime, which is how long the kubelet has served.
  test("a change after it was made is told", () =>
    withOpenTree(async (socket) => {
      utimesSync(socket, Date.now() / 1000 - 3600, Date.now() / 1000 - 3600);
      const { check } = await socketCheck(socket);
      assert.match(check.details[0]!, /served for 1 h( \d+ min)?, changed \d+ m?s ago$/);
      assert.ok(Date.parse(String(check.data.changedAt)) > Date.parse(String(check.data.bornAt)));
    }));
});

describe("socket, insecure now", () => {
  test("every user may connect", () =>
    withOpenTree(async (socket) => {
      chmodSync(dirname(socket), 0o755);
      chmodSync(socket, 0o777);
      const { report, check } = await socketCheck(socket);
      assert.equal(verdict(report), "CRITICAL SocketInsecure");
      assert.match(report.summary, /mode 0777: every user can connect$/);
      assert.deepEqual(check.data.others, ["every user"]);
      const accepted = await socketCheck(socket, "--severity", "SocketInsecure=OK");
      assert.equal(
        accepted.report.summary,
        "a server answers, and who else can use or replace the socket counts as OK",
      );
    }));

  test("every user may put another socket into its folder", () =>
    withOpenTree(async (socket) => {
      chmodSync(dirname(socket), 0o777);
      const { report } = await socketCheck(socket);
      assert.equal(verdict(report), "CRITICAL SocketInsecure");
      assert.match(report.summary, /pods-api: mode 0777: every user can replace what is in it$/);
    }));

  test("every user may replace a folder far above, or what a link leads to", () =>
    withOpenTree(async (socket, folder) => {
      const open = join(folder, "open");
      mkdirSync(open);
      symlinkSync(dirname(socket), join(open, "link"));
      const through = join(open, "link", "pods-api.sock");
      assert.equal(verdict((await socketCheck(through)).report), "OK SocketSecure");
      chmodSync(open, 0o777);
      const { report, check } = await socketCheck(through);
      assert.equal(verdict(report), "CRITICAL SocketInsecure");
      assert.deepEqual(check.data.links, [{ path: join(open, "link"), target: dirname(socket) }]);
      // The sticky bit of /tmp: only the owners of an entry replace it.
      chmodSync(open, 0o1777);
      assert.equal(verdict((await socketCheck(through)).report), "OK SocketSecure");
    }));

  test("a folder belongs to a user who gets there", { skip: needsRoot }, () =>
    withOpenTree(async (socket) => {
      chownSync(dirname(socket), 1000, 0);
      const { report } = await socketCheck(socket);
      assert.equal(verdict(report), "CRITICAL SocketInsecure");
      assert.match(report.summary, /pods-api: its owner is uid 1000.*, who can replace what is in it/);
      assert.equal(verdict((await socketCheck(socket, "--owner", "1000")).report), "OK SocketSecure");
    }),
  );

  test("the socket belongs to another user", { skip: needsRoot }, () =>
    withOpenTree(async (socket) => {
      chmodSync(dirname(socket), 0o755);
      chownSync(socket, 1000, 0);
      const { report } = await socketCheck(socket);
      assert.equal(verdict(report), "CRITICAL SocketInsecure");
      assert.match(report.summary, /its owner is uid 1000.*, expected is uid 0$/);
    }),
  );

  test("a group that no file knows may have members", { skip: needsRoot }, () =>
    withOpenTree(async (socket) => {
      chownSync(dirname(socket), 0, 99_887);
      chownSync(socket, 0, 99_887);
      chmodSync(socket, 0o770);
      const { report, check } = await socketCheck(socket);
      assert.equal(verdict(report), "CRITICAL SocketInsecure");
      assert.match(report.summary, /mode 0770: the group 99887 can connect$/);
      assert.deepEqual(check.data.others, ["the group 99887"]);
    }),
  );

  test("a link in a folder with the sticky bit that belongs to a user", { skip: needsRoot }, () =>
    withOpenTree(async (socket, folder) => {
      const open = join(folder, "open");
      mkdirSync(open);
      chmodSync(open, 0o1777);
      const link = join(open, "link");
      symlinkSync(dirname(socket), link);
      spawnSync("chown", ["-h", "1000", link]);
      const { report } = await socketCheck(join(link, "pods-api.sock"));
      assert.equal(verdict(report), "CRITICAL SocketInsecure");
      assert.match(
        report.summary,
        /link: its owner is uid 1000.*, who can replace it in spite of the sticky bit above$/,
      );
    }),
  );
});

describe("socket, one step away: WARNING", () => {
  test("open to everybody behind a closed folder", () =>
    withOpenTree(async (socket, folder) => {
      chmodSync(dirname(socket), 0o700);
      chmodSync(socket, 0o777);
      const { report, check } = await socketCheck(socket);
      assert.equal(verdict(report), "WARNING SocketInsecure");
      assert.match(report.summary, /mode 0777: every user could connect, if the folders above let them in$/);
      assert.deepEqual(check.data.others, []);
      chmodSync(socket, 0o755);
      chmodSync(dirname(socket), 0o777);
      chmodSync(folder, 0o700);
      assert.deepEqual(findingsOf((await socketCheck(socket)).check), [`WARNING SocketInsecure ${dirname(socket)}`]);
    }));

  // What umask 002 leaves: the group is root's own, and has no member.
  test("open to a group with no member", { skip: needsRoot }, () =>
    withOpenTree(async (socket) => {
      chmodSync(socket, 0o775);
      const { report } = await socketCheck(socket);
      assert.equal(verdict(report), "WARNING SocketInsecure");
      assert.match(report.summary, /the group 0 \(root\) could connect, if it had a member besides the owner$/);
    }),
  );

  test("a user owns the socket behind a folder closed to them", { skip: needsRoot }, () =>
    withOpenTree(async (socket) => {
      chmodSync(dirname(socket), 0o700);
      chownSync(socket, 1000, 0);
      assert.equal(verdict((await socketCheck(socket)).report), "WARNING SocketInsecure");
    }),
  );
});

describe("socket that cannot be used", () => {
  for (const [scenario, expected] of [
    ["missing", "CRITICAL SocketMissing"],
    ["not-a-socket", "CRITICAL SocketNotASocket"],
    ["dead", "CRITICAL SocketDead"],
  ] as const) {
    test(`${scenario}: ${expected}`, () =>
      withSimulator(scenario, async ({ socket }) => {
        assert.equal(verdict((await socketCheck(socket)).report), expected);
      }));
  }

  test("what stands there is named", () =>
    inFolder(async (folder) => {
      assert.match((await socketCheck(folder)).report.summary, /There is a folder where the socket should be/);
    }));

  test("a path over 107 bytes, and links in a circle", () =>
    inFolder(async (folder) => {
      assert.equal(verdict((await socketCheck(`/${"x".repeat(107)}`)).report), "UNKNOWN PathTooLong");
      symlinkSync(join(folder, "b"), join(folder, "a"));
      symlinkSync(join(folder, "a"), join(folder, "b"));
      assert.equal(verdict((await socketCheck(join(folder, "a"))).report), "CRITICAL SocketMissing");
    }));

  test("a server that never speaks is found out within the deadline", () =>
    inFolder(async (folder) => {
      const path = join(folder, "s.sock");
      const server = createServer((connection) => connection.on("error", () => {})).listen(path);
      try {
        assert.equal(verdict((await socketCheck(path, "--timeout", "200ms")).report), "CRITICAL Timeout");
      } finally {
        server.close();
      }
    }));
});

describe("socket, as uid 1000", () => {
  const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
  const asUser = ["--reuid=1000", "--regid=1000", "--clear-groups", process.execPath];
  // Another runtime would want a cache of its own to write to.
  const runtime = process.versions.bun === undefined && process.versions.deno === undefined;
  const readable = runtime && isRoot && spawnSync("setpriv", [...asUser, "-e", ""], { cwd: root }).status === 0;
  const skip = needsRoot || (runtime ? !readable && "needs a repository that uid 1000 can read" : "on Node alone");

  async function asUid1000(...words: readonly string[]): Promise<Report> {
    const { stdout } = await execute("setpriv", [...asUser, script, ...words], { cwd: "/" });
    return JSON.parse(stdout);
  }

  test("its own socket is secure, and root's folders on the way are no fault", { skip }, () =>
    withOpenTree(async (socket) => {
      chownSync(dirname(socket), 1000, 1000);
      chownSync(socket, 1000, 1000);
      const report = await asUid1000("socket", "--socket", socket);
      assert.equal(verdict(report), "OK SocketSecure");
      assert.equal(reportOf(report, "socket").data.uid, 1000);
    }),
  );

  test("a socket of root's behind a closed folder cannot be looked at", { skip }, () =>
    withOpenTree(async (socket) => {
      const report = await asUid1000("socket", "--socket", socket);
      assert.equal(verdict(report), "UNKNOWN PermissionDenied");
      assert.match(report.summary, /No permission to look at .* as uid 1000/);
    }),
  );

  test("a socket of root's in an open folder cannot be connected to", { skip }, () =>
    withOpenTree(async (socket) => {
      chmodSync(dirname(socket), 0o755);
      const report = await asUid1000("socket", "--socket", socket);
      assert.equal(verdict(report), "UNKNOWN PermissionDenied");
      assert.match(report.summary, /connecting needs write permission and its mode 0755 0:0 gives none/);
    }),
  );

  test("a socket that it may use by its mode is insecure", { skip }, () =>
    withOpenTree(async (socket) => {
      chmodSync(dirname(socket), 0o755);
      chmodSync(socket, 0o777);
      assert.equal(verdict(await asUid1000("socket", "--socket", socket)), "CRITICAL SocketInsecure");
    }),
  );
});

describe("socket in a container", () => {
  // b02 (DataDog/datadog-operator#1674): it works until the kubelet restarts, so this is told while it works.
  const mounts = isRoot && spawnSync("unshare", ["-m", "true"]).status === 0;
  const onNode = process.versions.bun === undefined && process.versions.deno === undefined;
  const skip = needsRoot || (!mounts ? "this machine does not allow a mount namespace" : !onNode && "on Node alone");

  test("the file itself is mounted: OK, and advice to mount the folder", { skip }, () =>
    inFolder(async (folder) => {
      const socket = join(realpathSync(folder), "pods-api", "pods-api.sock");
      const simulator = await startSimulator({ socket, scenario: "healthy" });
      try {
        const command = `touch "$0/mounted"; mount --bind "$1" "$0/mounted"; exec "$2" "$3" socket --socket "$0/mounted"`;
        const { stdout } = await execute("unshare", [
          ...["-m", "--propagation", "private", "sh", "-euc", command, folder, socket, process.execPath, script],
        ]);
        const report: Report = JSON.parse(stdout);
        assert.equal(verdict(report), "OK SocketSecure");
        assert.match(report.summary, /goes dead when the kubelet restarts: mount its folder$/);
        assert.equal(reportOf(report, "socket").data.mounted, true);
      } finally {
        await simulator.close();
      }
    }),
  );
});
