import assert from "node:assert/strict";
import { lstatSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Code } from "../lib/codes.ts";
import { Fault } from "../lib/fault.ts";
import { inspectSocket, kindOf, maxPathBytes, socketPath } from "../lib/socket.ts";
import { inFolder, listen, withRawServer } from "./http2_frames.ts";

function refused(path: string, code: Code, pattern: RegExp): void {
  assert.throws(
    () => inspectSocket(path),
    (error) => {
      assert.ok(error instanceof Fault, String(error));
      assert.equal(error.code, code);
      assert.match(error.message, pattern);
      return true;
    },
  );
}

describe("socketPath", () => {
  test("the forms of c04 name the same file", () => {
    for (const text of ["/run/x.sock", "unix:/run/x.sock", "unix:///run/x.sock"]) {
      assert.equal(socketPath(text), "/run/x.sock");
    }
  });
  test("a relative path is one behind `unix:` too, and what is no form of gRPC stays as it is", () => {
    assert.equal(socketPath("unix:x.sock"), "x.sock");
    assert.equal(socketPath("x.sock"), "x.sock");
    assert.equal(socketPath("./unix:x.sock"), "./unix:x.sock");
    assert.equal(socketPath("unix://x.sock"), "unix://x.sock");
    assert.equal(socketPath("//run/x.sock"), "//run/x.sock");
    assert.equal(socketPath("http://localhost/"), "http://localhost/");
  });
});

describe("inspectSocket", () => {
  test("a socket, and the moment its server began, which a touch of the file moves and a chmod does not", () =>
    withRawServer({}, async ({ path }) => {
      utimesSync(path, 1_700_000_000, 1_700_000_000);
      const { stats, bornMs, ...rest } = inspectSocket(path);
      assert.equal(stats.isSocket(), true);
      assert.equal(bornMs, 1_700_000_000_000);
      assert.deepEqual(rest, { path });
    }));

  test("a link to a socket is one", () =>
    withRawServer({}, async ({ path }) => {
      symlinkSync(path, `${path}.link`);
      assert.equal(inspectSocket(`${path}.link`).stats.isSocket(), true);
    }));

  test("what else may stand there", () =>
    inFolder(async (folder) => {
      writeFileSync(join(folder, "file"), "");
      refused(join(folder, "file"), "SocketNotASocket", /There is a file where the socket should be/);
      refused(folder, "SocketNotASocket", /There is a folder/);
      refused("/dev/null", "SocketNotASocket", /There is a device/);
      refused(join(folder, "none"), "SocketMissing", /No socket at/);
      refused(join(folder, "none", "none"), "SocketMissing", /No socket at/);
      refused(join(folder, "file", "x.sock"), "SocketMissing", /not a folder/);
      refused("", "SocketMissing", /No socket at/);
      symlinkSync(join(folder, "none"), join(folder, "dangling"));
      refused(join(folder, "dangling"), "SocketMissing", /No socket at/);
      symlinkSync("circle", join(folder, "circle"));
      refused(join(folder, "circle"), "SocketMissing", /circle/);
    }));

  test("107 bytes of path are taken, 108 are not: sun_path would be cut", () =>
    inFolder(async (folder) => {
      const server = createServer();
      const longest = join(folder, "x".repeat(maxPathBytes - folder.length - 1));
      await listen(server, longest);
      assert.equal(inspectSocket(longest).path.length, 107);
      await new Promise((resolve) => server.close(resolve));
      refused(`${longest}x`, "PathTooLong", /108 bytes, Linux takes 107/);
      refused(join(folder, "ä".repeat(50)), "PathTooLong", /bytes, Linux takes 107/);
    }));
});

test("kindOf names what lstat finds", () =>
  inFolder(async (folder) => {
    mkdirSync(join(folder, "folder"));
    writeFileSync(join(folder, "file"), "");
    symlinkSync("file", join(folder, "link"));
    const kinds = ["folder", "file", "link"].map((name) => kindOf(lstatSync(join(folder, name))));
    assert.deepEqual(kinds, ["a folder", "a file", "a link"]);
    assert.equal(kindOf(lstatSync("/dev/null")), "a device");
    await withRawServer({}, async ({ path }) => assert.equal(kindOf(lstatSync(path)), "a socket"));
  }));
