import { lstatSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { dirname, resolve } from "node:path";
import { defineCheck, type Finding } from "../lib/check.ts";
import { formatDuration } from "../lib/duration.ts";
import { listOf, optionWithDefault, wholeNumber } from "../lib/option.ts";
import { refusal } from "../lib/refusal.ts";

/** Whether the socket is there, whose it is, who else could use or replace it, and whether somebody answers. */
export const socket = defineCheck({
  name: "socket",
  summary: "is the socket there, who else could use or replace it, does somebody answer (no token)",
  okCode: "SocketSecure",
  options: {
    owner: optionWithDefault(...listOf(wholeNumber(0, 4294967294)), {
      value: "UID,...",
      fallback: "0",
      list: true,
      description: "user IDs that may own the socket and the folders on the way to it, besides root",
    }),
  },
  async run(context, { owner }) {
    const file = context.socket();
    const findings = judge(context.socketPath, new Set([0, ...owner]));
    await context.client.connect({ timeoutMs: context.remainingMs() });
    const { stats } = file;
    const mode = (stats.mode & 0o7777).toString(8).padStart(4, "0");
    const ageMs = Math.max(0, context.nowMs - file.bornMs);
    return {
      summary: `a server answers, and only its owner can use or replace the socket`,
      findings,
      metrics: [],
      details: [`mode ${mode}, owner ${stats.uid}:${stats.gid}, served for ${formatDuration(ageMs)}`],
      data: { mode, uid: stats.uid, gid: stats.gid, bornAt: new Date(file.bornMs).toISOString() },
    };
  },
});

interface Step {
  readonly path: string;
  readonly stats: Stats;
}

/** Every folder and link that the kernel passes on the way to a path, and what is at its end. */
function walk(path: string): {
  readonly folders: readonly Step[];
  readonly links: readonly Step[];
  readonly end: Step;
} {
  const folders: Step[] = [{ path: "/", stats: lstat("/") }];
  const links: Step[] = [];
  let at = "/";
  let parts = resolve(path).split("/").filter(Boolean);
  for (let followed = 0; ; ) {
    const part = parts.shift();
    if (part === undefined) return { folders, links, end: folders.pop()! };
    if (part === "..") {
      at = dirname(at);
      continue;
    }
    const next = at === "/" ? `/${part}` : `${at}/${part}`;
    const stats = lstat(next);
    if (!stats.isSymbolicLink()) {
      folders.push({ path: next, stats });
      at = next;
      continue;
    }
    if (++followed > 40) throw refusal(path, { name: "", message: "", code: "ELOOP" }, "look at");
    links.push({ path: next, stats });
    const target = readlinkSync(next);
    if (target.startsWith("/")) at = "/";
    parts = [...target.split("/").filter((name) => name !== "" && name !== "."), ...parts];
  }
}

function lstat(path: string): Stats {
  try {
    return lstatSync(path);
  } catch (error) {
    throw refusal(path, error as NodeJS.ErrnoException, "look at");
  }
}

/** What is wrong with the ownership and the modes along the path. */
function judge(path: string, owners: ReadonlySet<number>): Finding[] {
  const findings: Finding[] = [];
  const { folders, links, end } = walk(path);
  const add = (subject: string, message: string, status?: "WARNING") =>
    findings.push({ code: "SocketInsecure", subject, message, status });

  for (const { path: at, stats } of [...folders, ...links]) {
    if (!owners.has(stats.uid)) add(at, `its owner is uid ${stats.uid}, who can replace what is in it`);
  }
  if (!owners.has(end.stats.uid))
    add(end.path, `its owner is uid ${end.stats.uid}, expected ${[...owners].join(" or ")}`);

  for (const { path: at, stats } of folders) {
    // In a folder with the sticky bit only the owner of an entry can replace it.
    if ((stats.mode & 0o1000) !== 0) continue;
    const group = (stats.mode & 0o020) !== 0 && hasMembers(stats.gid, owners);
    const others = (stats.mode & 0o002) !== 0;
    if (!group && !others) continue;
    const reachable = isReachable(
      folders.slice(0, folders.findIndex((step) => step.path === at) + 1),
      stats.gid,
      others,
    );
    const who = others ? "every user" : `the group ${stats.gid}`;
    const what = `mode ${octal(stats)}: ${who} can replace what is in it`;
    if (reachable) add(at, what);
    else add(at, `${what} once the folders above it are open to them`, "WARNING");
  }

  const { stats } = end;
  const others = (stats.mode & 0o002) !== 0;
  if (others || (stats.mode & 0o020) !== 0) {
    const who = others ? "every user" : `the group ${stats.gid}`;
    const what = `mode ${octal(stats)}: ${who} can connect`;
    if (!others && !hasMembers(stats.gid, owners)) {
      add(end.path, `${what}, which has no member but the owner today`, "WARNING");
    } else if (!isReachable(folders, stats.gid, others)) {
      add(end.path, `${what} once the folders above it are open to them`, "WARNING");
    } else {
      add(end.path, what);
    }
  }
  return findings;
}

function octal(stats: Stats): string {
  return (stats.mode & 0o7777).toString(8).padStart(4, "0");
}

/** Whether others, or the members of a group, may pass every folder. */
function isReachable(folders: readonly Step[], gid: number, others: boolean): boolean {
  return folders.every(({ stats }) => {
    if (others && (stats.mode & 0o001) !== 0) return true;
    return stats.gid === gid && (stats.mode & 0o010) !== 0 ? true : (stats.mode & 0o001) !== 0;
  });
}

/**
 * Whether a group has members besides the owners, as far as /etc/group and /etc/passwd know: a directory service is not
 * asked, so any group but the owner's own is taken to have some if the files cannot be read.
 */
function hasMembers(gid: number, owners: ReadonlySet<number>): boolean {
  let groups: string;
  let users: string;
  try {
    groups = readFileSync("/etc/group", "utf8");
    users = readFileSync("/etc/passwd", "utf8");
  } catch {
    return true;
  }
  const ownerNames = new Set<string>();
  for (const line of users.split("\n")) {
    const [name, , uid, primary] = line.split(":");
    if (name === undefined || uid === undefined || name === "") continue;
    if (owners.has(Number(uid))) ownerNames.add(name);
    else if (Number(primary) === gid) return true;
  }
  const entry = groups.split("\n").find((line) => line.split(":")[2] === String(gid));
  // A group that no file knows may be a directory service's, or that of a container.
  if (entry === undefined) return true;
  const members = (entry.split(":")[3] ?? "").split(",").filter(Boolean);
  return members.some((name) => !ownerNames.has(name));
}
