// Who besides its owners can use or replace a socket: now, or one step from now.

import type { Accounts } from "./accounts.ts";
import type { Finding } from "./check.ts";
import { canConnect, canReplace, everyUser, type Place, passes, type Step, type Visitor, visitorsOf } from "./reach.ts";

/** What the path of a socket lets others do. */
export interface Exposure {
  /** CRITICAL by their code for what somebody can do now, WARNING for what one change more would let them do. */
  readonly findings: readonly Finding[];
  /** Who can connect besides the owners, by name; `every user` alone where that is so. */
  readonly others: readonly string[];
}

// Names in one message; a group may have hundreds of members.
const maxNames = 3;

/**
 * @param steps Of the path, the last one with the socket.
 * @param owners User IDs that may own all of it, root among them.
 */
export function findExposure(steps: readonly Step[], accounts: Accounts, owners: ReadonlySet<number>): Exposure {
  const visitors = visitorsOf(accounts, steps, owners);
  const findings = new Map<string, Finding>();
  const add = (subject: string, message: string, status?: "WARNING") =>
    findings.set(`${subject} ${message}`, { code: "SocketInsecure", subject, message, status });
  const userName = (uid: number) => {
    const user = accounts.users.find((one) => one.uid === uid);
    return user === undefined ? `uid ${uid}` : `uid ${uid} (${user.name})`;
  };
  const groupName = (gid: number) => {
    const name = accounts.groupNames.get(gid);
    return name === undefined ? `the group ${gid}` : `the group ${gid} (${name})`;
  };
  /** What keeps those out whom a mode lets in: nobody is in their group, or a folder above is closed. */
  const obstacle = ({ gid, mode }: Place["stats"]) =>
    (mode & 0o002) === 0 && !visitors.some(({ groups }) => groups.has(gid))
      ? "if it had a member besides the owner"
      : "if the folders above let them in";
  const whom = ({ gid, mode }: Place["stats"]) => ((mode & 0o002) !== 0 ? "every user" : groupName(gid));

  for (const step of steps) {
    const { folders, entry } = step;
    const { path, stats } = folders.at(-1)!;
    const who = visitors.filter((visitor) => canReplace(visitor, step));
    const byMode = who.filter(
      ({ uid }) => uid !== stats.uid && ((stats.mode & 0o1000) === 0 || uid !== entry.stats.uid),
    );
    const what = `mode ${octal(stats)}: `;
    if (byMode.length > 0) add(path, `${what}${namesOf(byMode)} can replace what is in it`);
    else if (isOpen(stats) && (stats.mode & 0o1000) === 0) {
      add(path, `${what}${whom(stats)} could replace what is in it, ${obstacle(stats)}`, "WARNING");
    }
    if (!owners.has(stats.uid)) {
      const owner = `its owner is ${userName(stats.uid)}`;
      if (who.some(({ uid }) => uid === stats.uid)) add(path, `${owner}, who can replace what is in it`);
      else add(path, `${owner}, who could replace what is in it, if the folders above let them in`, "WARNING");
    }
    if (
      who.some(({ uid }) => uid !== stats.uid && uid !== undefined && uid === entry.stats.uid) &&
      byMode.length === 0
    ) {
      add(entry.path, `its owner is ${userName(entry.stats.uid)}, who can replace it in spite of the sticky bit above`);
    }
  }

  const last = steps.at(-1)!;
  const { path, stats } = last.entry;
  if (!owners.has(stats.uid)) {
    const expected = [...owners].map((uid) => `uid ${uid}`).join(" or ");
    const owner = `its owner is ${userName(stats.uid)}, expected is ${expected}`;
    const isThere = visitors.some((visitor) => visitor.uid === stats.uid && passes(visitor, last.folders));
    if (isThere) add(path, owner);
    else add(path, `${owner}; the folders above keep them out`, "WARNING");
  }
  const connecting = visitors.filter((visitor) => canConnect(visitor, last));
  const byMode = connecting.filter(({ uid }) => uid !== stats.uid);
  if (byMode.length > 0) add(path, `mode ${octal(stats)}: ${namesOf(byMode)} can connect`);
  else if (isOpen(stats)) {
    add(path, `mode ${octal(stats)}: ${whom(stats)} could connect, ${obstacle(stats)}`, "WARNING");
  }
  return {
    findings: [...findings.values()],
    others: connecting.includes(everyUser) ? [everyUser.name] : connecting.map(({ name }) => name),
  };
}

/** Whether the mode lets somebody but the owner write. */
function isOpen({ mode }: Place["stats"]): boolean {
  return (mode & 0o022) !== 0;
}

function namesOf(visitors: readonly Visitor[]): string {
  if (visitors.includes(everyUser)) return everyUser.name;
  const names = visitors.map(({ name }) => name);
  const more = names.length - maxNames;
  return more > 0 ? `${names.slice(0, maxNames).join(", ")} and ${more} more` : names.join(" and ");
}

/** A mode as chmod takes it. */
export function octal({ mode }: Place["stats"]): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}
