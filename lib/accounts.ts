// Who there is on this node, as far as /etc/passwd and /etc/group tell: a directory service is not asked.

import { readFileSync } from "node:fs";

/** A user. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  /** The IDs of all the groups it is in. */
  readonly groups: ReadonlySet<number>;
}

/** The users and groups of a node. */
export interface Accounts {
  readonly users: readonly Account[];
  /** Names of groups by ID; a group that is not here may have any members. */
  readonly groupNames: ReadonlyMap<number, string>;
}

/** Where they are written down; a file that cannot be read counts as empty. */
export const accountFiles = { passwd: "/etc/passwd", group: "/etc/group" } as const;

/** Reads passwd(5) and group(5). */
export function readAccounts(files: { readonly passwd: string; readonly group: string } = accountFiles): Accounts {
  const groupNames = new Map<number, string>();
  const groupsOf = new Map<string, number[]>();
  for (const [name = "", , id, members] of linesOf(files.group)) {
    const gid = idOf(id);
    if (name === "" || gid === undefined) continue;
    if (!groupNames.has(gid)) groupNames.set(gid, name);
    for (const member of members?.split(",").filter(Boolean) ?? []) {
      groupsOf.set(member, [...(groupsOf.get(member) ?? []), gid]);
    }
  }
  const users: Account[] = [];
  for (const [name = "", , id, primary] of linesOf(files.passwd)) {
    const [uid, gid] = [idOf(id), idOf(primary)];
    if (name === "" || uid === undefined || gid === undefined) continue;
    users.push({ name, uid, groups: new Set([gid, ...(groupsOf.get(name) ?? [])]) });
  }
  return { users, groupNames };
}

function linesOf(path: string): string[][] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return [];
  }
  return text.split("\n").map((line) => line.split(":"));
}

function idOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
