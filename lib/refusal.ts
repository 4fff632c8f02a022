// Why there was no connection: what an error of the operating system means for this path, this user and this node.

import { existsSync, readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { Fault } from "./fault.ts";

/** Where distributions keep a kubelet's root folder, besides /var/lib/kubelet. */
const otherRoots = [
  "/var/lib/k0s/kubelet",
  "/var/snap/microk8s/common/var/lib/kubelet",
  "/var/snap/k8s/common/kubelet",
];

/** The files of the node that are looked into; tests point them at files of their own. */
export interface NodeFiles {
  readonly mountinfo: string;
  readonly selinuxEnforce: string;
  readonly processStatus: string;
  readonly kubeletRoots: readonly string[];
}

const nodeFiles: NodeFiles = {
  mountinfo: "/proc/self/mountinfo",
  selinuxEnforce: "/sys/fs/selinux/enforce",
  processStatus: "/proc/self/status",
  kubeletRoots: ["/var/lib/kubelet", ...otherRoots],
};

/**
 * @param path Of the socket.
 * @param error What stat() or connect() failed with.
 * @param action `look at` or `connect to`.
 * @returns The fault it stands for: SocketMissing, SocketDead, PermissionDenied, PathTooLong, NotGrpc, Timeout,
 *   ConnectionLost, or InternalError for an error nobody foresaw.
 */
export function refusal(
  path: string,
  error: NodeJS.ErrnoException,
  action: "look at" | "connect to",
  files: NodeFiles = nodeFiles,
): Fault {
  const errno = error.code ?? "unknown error";
  const details = { phase: "connect", errno } as const;
  switch (errno) {
    case "ENOENT":
      return new Fault("SocketMissing", `No socket at ${path}${missingAdvice(path, files)}`, details);
    case "ENOTDIR":
      return new Fault("SocketMissing", `No socket at ${path}: a part of the path is not a folder`, details);
    case "ELOOP":
      return new Fault("SocketMissing", `No socket at ${path}: its links lead in a circle`, details);
    case "ENAMETOOLONG":
      return new Fault("PathTooLong", `A part of the socket path is too long: ${path}`, details);
    case "EACCES":
    case "EPERM":
      return new Fault("PermissionDenied", denial(path, errno, action, files), details);
    case "ECONNREFUSED": {
      const advice = isMountPoint(path, files.mountinfo)
        ? "the file itself is mounted here and belongs to an earlier kubelet: mount the directory, not the file"
        : "the kubelet stopped or no longer serves the Pods API, and its file stayed";
      return new Fault("SocketDead", `Nobody listens on ${path}: ${advice}`, details);
    }
    case "EAGAIN": {
      const what = `The server on ${path} accepts no connection: its listen queue is full`;
      return new Fault("Timeout", what, details);
    }
    case "EPROTOTYPE":
      return new Fault("NotGrpc", `The socket at ${path} is not a stream socket`, details);
    case "EAFNOSUPPORT": {
      const what = `This process may not use unix sockets (${errno}): see RestrictAddressFamilies of its unit`;
      return new Fault("PermissionDenied", what, details);
    }
    case "ECONNRESET":
    case "EPIPE":
      return new Fault("ConnectionLost", `The connection to ${path} broke at once: ${errno}`, details);
    default:
      return new Fault("InternalError", `Cannot ${action} ${path}: ${errno}`, details);
  }
}

/** Names a socket of another kubelet root, though its presence says nothing of the one that was asked for; or what to do. */
function missingAdvice(path: string, { kubeletRoots }: NodeFiles): string {
  const found = kubeletRoots
    .map((root) => `${root}/pods-api/pods-api.sock`)
    .find((at) => at !== path && existsSync(at));
  if (found !== undefined) return `; there is one at ${found}: see --socket and --kubelet-root`;
  return ": is the kubelet's feature gate PodsAPI on? See kubelet-probe explain SocketMissing";
}

function denial(path: string, errno: string, action: string, files: NodeFiles): string {
  const uid = process.geteuid?.() ?? -1;
  const start = `No permission to ${action} ${path} as uid ${uid} (${errno})`;
  if (action === "look at") return `${start}: a folder on the way to it is closed to this user; run as root`;
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch {
    return start;
  }
  const mode = `mode ${(stats.mode & 0o7777).toString(8).padStart(4, "0")} ${stats.uid}:${stats.gid}`;
  if (!modeAllowsWriting(stats, uid) && !overridesModes(files)) {
    return `${start}: connecting needs write permission and its ${mode} gives none; run as root`;
  }
  const enforcing = readText(files.selinuxEnforce)?.trim() === "1";
  const who = enforcing ? "SELinux is enforcing and" : "a security module (SELinux or AppArmor)";
  return `${start}: its ${mode} allows it, ${who} refuses; a change of mode does not help`;
}

function modeAllowsWriting(stats: Stats, uid: number): boolean {
  if (stats.uid === uid) return (stats.mode & 0o200) !== 0;
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  if (groups.includes(stats.gid)) return (stats.mode & 0o020) !== 0;
  return (stats.mode & 0o002) !== 0;
}

/** Whether this process has CAP_DAC_OVERRIDE, bit 1 of its effective capabilities. */
function overridesModes({ processStatus }: NodeFiles): boolean {
  const set = /^CapEff:\s*([0-9a-f]+)$/m.exec(readText(processStatus) ?? "")?.[1];
  return set !== undefined && (BigInt(`0x${set}`) & 2n) !== 0n;
}

/** Whether something is mounted on the path itself, as it is when a container mounts the file and not its folder. */
export function isMountPoint(path: string, mountinfo: string = nodeFiles.mountinfo): boolean {
  let real = path;
  try {
    real = realpathSync(path);
  } catch {
    // A path that cannot be followed is compared as it stands.
  }
  // proc(5): the fifth field is the mount point, with space, tab, newline and backslash as octal escapes.
  return (readText(mountinfo) ?? "").split("\n").some((line) => {
    const point = line
      .split(" ")[4]
      ?.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
    return point === path || point === real;
  });
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
