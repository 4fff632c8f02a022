import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import type { Fault } from "../lib/fault.ts";
import { isMountPoint, type NodeFiles, refusal } from "../lib/refusal.ts";
import { inFolder } from "./http2_frames.ts";

// The effective capabilities of root in a container, and those of a plain user.
const rootCapabilities = "Name:\tbun\nCapInh:\t0000000000000000\nCapEff:\t00000000a80425fb\n";
const noCapabilities = "Name:\tbun\nCapInh:\t0000000000000000\nCapEff:\t0000000000000000\n";

/** A node's files of the test's making; one that is not given does not exist. */
function nodeFiles(folder: string, texts: { mountinfo?: string; enforce?: string; status?: string } = {}): NodeFiles {
  const file = (name: string, text: string | undefined) => {
    if (text !== undefined) writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  return {
    mountinfo: file("mountinfo", texts.mountinfo),
    selinuxEnforce: file("enforce", texts.enforce),
    processStatus: file("status", texts.status),
    kubeletRoots: [],
  };
}

function errno(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

function makeFile(path: string, mode = 0o755): string {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true });
  writeFileSync(path, "");
  chmodSync(path, mode);
  return path;
}

describe("each error of the operating system has its code", () => {
  const table = {
    ENOENT: [
      "SocketMissing",
      /^No socket at \/run\/x\.sock: is the kubelet's feature gate PodsAPI on\? See \S+ explain SocketMissing$/,
    ],
    ENOTDIR: ["SocketMissing", /not a folder/],
    ELOOP: ["SocketMissing", /circle/],
    ENAMETOOLONG: ["PathTooLong", /too long/],
    EACCES: ["PermissionDenied", /No permission to connect to \/run\/x\.sock as uid \d+ \(EACCES\)/],
    EPERM: ["PermissionDenied", /\(EPERM\)/],
    ECONNREFUSED: ["SocketDead", /Nobody listens/],
    EAGAIN: ["Timeout", /listen queue is full/],
    EPROTOTYPE: ["NotGrpc", /not a stream socket/],
    EAFNOSUPPORT: ["PermissionDenied", /RestrictAddressFamilies/],
    ECONNRESET: ["ConnectionLost", /broke at once: ECONNRESET/],
    EPIPE: ["ConnectionLost", /broke at once: EPIPE/],
    EMFILE: ["InternalError", /Cannot connect to \/run\/x\.sock: EMFILE/],
  } as const;
  for (const [name, [code, pattern]] of Object.entries(table)) {
    test(`${name} is ${code}`, () =>
      inFolder(async (folder) => {
        const fault = refusal("/run/x.sock", errno(name), "connect to", nodeFiles(folder));
        assert.equal(fault.code, code);
        assert.match(fault.message, pattern);
        assert.deepEqual(fault.details, { phase: "connect", errno: name });
      }));
  }
  test("an error without a name is none of them", () =>
    inFolder(async (folder) => {
      const fault = refusal("/run/x.sock", new Error("odd"), "look at", nodeFiles(folder));
      assert.equal(fault.code, "InternalError");
    }));
});

describe("b01: a user who is not root", () => {
  test("a folder on the way is closed: nothing is said of the socket itself", () =>
    inFolder(async (folder) => {
      const { code, message } = refusal("/x/pods-api.sock", errno("EACCES"), "look at", nodeFiles(folder));
      assert.equal(code, "PermissionDenied");
      assert.match(message, /as uid \d+ \(EACCES\): a folder on the way to it is closed to this user; run as root/);
      assert.doesNotMatch(message, /missing|No socket/);
    }));

  test("the socket's mode does not let it in", () =>
    inFolder(async (folder) => {
      // Nobody's write bit, so that it is closed to whoever runs the test.
      const path = makeFile(join(folder, "pods-api.sock"), 0o555);
      const files = nodeFiles(folder, { status: noCapabilities, enforce: "1" });
      const { message } = refusal(path, errno("EACCES"), "connect to", files);
      assert.match(message, /needs write permission and its mode 0555 \d+:\d+ gives none; run as root/);
      assert.doesNotMatch(message, /SELinux/);
    }));

  test("another user's socket, and a group's", { skip: process.getuid?.() !== 0 && "chown takes root" }, () =>
    inFolder(async (folder) => {
      const files = nodeFiles(folder, { status: noCapabilities });
      const path = makeFile(join(folder, "pods-api.sock"), 0o755);
      chownSync(path, 4242, 4242);
      assert.match(refusal(path, errno("EACCES"), "connect to", files).message, /mode 0755 4242:4242 gives none/);
      chownSync(path, 4242, process.getegid?.() ?? 0);
      chmodSync(path, 0o775);
      assert.match(refusal(path, errno("EACCES"), "connect to", files).message, /mode 0775 4242:\d+ allows it/);
      chownSync(path, 4242, 4242);
      chmodSync(path, 0o757);
      assert.match(refusal(path, errno("EACCES"), "connect to", files).message, /mode 0757 4242:4242 allows it/);
    }),
  );
});

describe("b06: mode and owner allow it, the kernel refuses all the same", () => {
  const message = (folder: string, texts: Parameters<typeof nodeFiles>[1], mode = 0o755) => {
    const path = makeFile(join(folder, "pods-api.sock"), mode);
    return refusal(path, errno("EACCES"), "connect to", nodeFiles(folder, texts)).message;
  };
  test("SELinux is named where it enforces, and no change of mode is advised", () =>
    inFolder(async (folder) => {
      const said = message(folder, { enforce: "1", status: noCapabilities });
      assert.match(
        said,
        /its mode 0755 \d+:\d+ allows it, SELinux is enforcing and refuses; a change of mode does not/,
      );
      assert.doesNotMatch(said, /chmod|run as root/);
    }));
  test("no module is named where SELinux does not enforce, or is not there", () =>
    inFolder(async (folder) => {
      for (const texts of [{ status: noCapabilities, enforce: "0\n" }, { status: noCapabilities }]) {
        assert.match(message(folder, texts), /a security module \(SELinux or AppArmor\) refuses/);
      }
    }));
  test("root in a container overrides the mode, so the mode is not the reason", () =>
    inFolder(async (folder) => {
      assert.match(message(folder, { enforce: "1", status: rootCapabilities }, 0o000), /SELinux is enforcing/);
      assert.match(message(folder, { enforce: "1", status: "no such line" }, 0o000), /gives none/);
    }));
  test("a socket that is gone by then leaves the bare fact", () =>
    inFolder(async (folder) => {
      const fault = refusal(join(folder, "none"), errno("EACCES"), "connect to", nodeFiles(folder));
      assert.match(fault.message, /\(EACCES\)$/);
    }));
});

describe("a dead socket", () => {
  const others = "29 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n30 29 0:5 / /dev rw - devtmpfs dev rw\n";

  test("b02: the file itself is mounted, and the folder should be", () =>
    inFolder(async (folder) => {
      const line = "612 590 0:52 /kubelet/pods-api/pods-api.sock//deleted /host/pods-api.sock rw - ext4 /dev/vda1 rw\n";
      const files = nodeFiles(folder, { mountinfo: others + line });
      const { code, message } = refusal("/host/pods-api.sock", errno("ECONNREFUSED"), "connect to", files);
      assert.equal(code, "SocketDead");
      assert.match(message, /the file itself is mounted here .* mount the directory, not the file$/);
    }));
  test("b10: the kubelet stopped, or its gate was turned off, and the file stayed", () =>
    inFolder(async (folder) => {
      const files = nodeFiles(folder, { mountinfo: others });
      const { code, message } = refusal("/x/pods-api.sock", errno("ECONNREFUSED"), "connect to", files);
      assert.equal(code, "SocketDead");
      assert.match(message, /the kubelet stopped or no longer serves the Pods API, and its file stayed$/);
    }));
});

describe("isMountPoint", () => {
  const line = (point: string) => `612 590 0:52 / ${point} rw - ext4 /dev/vda1 rw\n`;
  test("the fifth field is compared, with its octal escapes undone", () =>
    inFolder(async (folder) => {
      const mountinfo = join(folder, "mountinfo");
      writeFileSync(mountinfo, line("/a\\040b/c\\134d.sock") + line("/plain"));
      assert.equal(isMountPoint("/a b/c\\d.sock", mountinfo), true);
      assert.equal(isMountPoint("/plain", mountinfo), true);
      assert.equal(isMountPoint("/plain/x.sock", mountinfo), false, "a mounted folder is no mounted file");
      assert.equal(isMountPoint("/", mountinfo), false);
    }));
  test("a path through a link is the path behind it", () =>
    inFolder(async (folder) => {
      const path = makeFile(join(folder, "real.sock"));
      symlinkSync(path, join(folder, "link.sock"));
      const mountinfo = join(folder, "mountinfo");
      writeFileSync(mountinfo, line(path));
      assert.equal(isMountPoint(join(folder, "link.sock"), mountinfo), true);
    }));
  test("without a mountinfo nothing is known", () =>
    inFolder(async (folder) => {
      assert.equal(isMountPoint("/x", join(folder, "none")), false);
    }));
});

describe("b04: another kubelet root", () => {
  test("its socket is named, and nothing is concluded from a root that is there", () =>
    inFolder(async (folder) => {
      const roots = ["kubelet", "k0s"].map((name) => join(folder, name));
      mkdirSync(join(folder, "kubelet/device-plugins"), { recursive: true });
      const other = makeFile(join(folder, "k0s/pods-api/pods-api.sock"));
      const files: NodeFiles = { ...nodeFiles(folder), kubeletRoots: roots };
      const asked = join(folder, "kubelet/pods-api/pods-api.sock");
      const fault: Fault = refusal(asked, errno("ENOENT"), "look at", files);
      assert.equal(fault.code, "SocketMissing");
      assert.ok(fault.message.endsWith(`; there is one at ${other}: see --socket and --kubelet-root`), fault.message);
      assert.doesNotMatch(fault.message, /disabled/);
      // The one that was asked for is no hint.
      assert.doesNotMatch(refusal(other, errno("ENOENT"), "look at", files).message, /there is one/);
    }));
});
