// Who can get where along a path: every folder and link that the kernel passes, and what owner, mode and sticky bit of
// each let somebody do. Access control lists are not seen; where there is one, the group bits of the mode are its mask.

import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Accounts } from "./accounts.ts";
import { refusal } from "./refusal.ts";

/** A folder, a link, or what is at the end of a path. */
export interface Place {
  readonly path: string;
  readonly stats: Stats;
  /** Of a link: where it leads, as it is written. */
  readonly target?: string;
}

/** One name that the kernel looks up, and where. */
export interface Step {
  /** Every folder that has been passed until here, the one with the name last. */
  readonly folders: readonly Place[];
  readonly entry: Place;
}

/**
 * The names that the kernel looks up on the way to a path, those of the targets of links too; the last one is what is at
 * its end.
 * @throws Fault as `refusal` has it
 */
export function walk(path: string): readonly Step[] {
  const steps: Step[] = [];
  let folders: Place[] = [{ path: "/", stats: lstat("/", path) }];
  let at = "/";
  let parts = resolve(path).split("/").filter(Boolean);
  for (let followed = 0; parts.length > 0; ) {
    const part = parts.shift()!;
    if (part === "..") {
      at = dirname(at);
      continue;
    }
    const next = at === "/" ? `/${part}` : `${at}/${part}`;
    const stats = lstat(next, path);
    const above = folders.find((folder) => folder.path === at);
    // What is passed last is the folder that holds the name, also where `..` or a link led back to it.
    folders = above === undefined ? folders : [...folders.filter((folder) => folder !== above), above];
    if (!stats.isSymbolicLink()) {
      steps.push({ folders, entry: { path: next, stats } });
      if (stats.isDirectory()) folders = [...folders, { path: next, stats }];
      at = next;
      continue;
    }
    if (++followed > 40) throw refusal(path, { name: "", message: "", code: "ELOOP" }, "look at");
    const target = readlinkSync(next);
    steps.push({ folders, entry: { path: next, stats, target } });
    if (target.startsWith("/")) at = "/";
    parts = [...target.split("/").filter((name) => name !== "" && name !== "."), ...parts];
  }
  return steps;
}

function lstat(at: string, path: string): Stats {
  try {
    return lstatSync(at);
  } catch (error) {
    // It is the whole path that cannot be looked at, wherever that ends.
    throw refusal(path, error as NodeJS.ErrnoException, "look at");
  }
}

/** Somebody who is not root. */
export interface Visitor {
  /** For a sentence: `alice`, `every user`, `the group 990`. */
  readonly name: string;
  /** Undefined for whoever is no owner of anything. */
  readonly uid: number | undefined;
  readonly groups: ReadonlySet<number>;
}

/** Anybody at all, also those whom no file knows. */
export const everyUser: Visitor = { name: "every user", uid: undefined, groups: new Set() };

/**
 * Everybody who may want to get somewhere: the users known, whoever is in a group that no file knows (of a directory
 * service or a container), and anybody else.
 * @param owners User IDs that are left out, for they may do all of it.
 */
export function visitorsOf(
  { users, groupNames }: Accounts,
  steps: readonly Step[],
  owners: ReadonlySet<number>,
): Visitor[] {
  const known = users.filter(({ uid }) => !owners.has(uid));
  const places = steps.flatMap(({ folders, entry }) => [...folders, entry]);
  const unknownGroups = new Set(places.map(({ stats }) => stats.gid).filter((gid) => !groupNames.has(gid)));
  const unknownUsers = new Set(
    places.map(({ stats }) => stats.uid).filter((uid) => !owners.has(uid) && !known.some((user) => user.uid === uid)),
  );
  return [
    everyUser,
    ...known,
    ...[...unknownUsers].map((uid) => ({ name: `uid ${uid}`, uid, groups: new Set<number>() })),
    ...[...unknownGroups].map((gid) => ({ name: `the group ${gid}`, uid: undefined, groups: new Set([gid]) })),
  ];
}

/**
 * Whether a visitor may do something: 1 pass a folder, 2 write. The first of owner, group and others counts, as for the
 * kernel; but who owns something gives themselves what they lack.
 */
function may(visitor: Visitor, { uid, gid, mode }: Stats, bit: 1 | 2): boolean {
  if (visitor.uid === uid) return true;
  return ((mode >> (visitor.groups.has(gid) ? 3 : 0)) & bit) !== 0;
}

/** Whether a visitor gets to what is in the last of these folders. */
export function passes(visitor: Visitor, folders: readonly Place[]): boolean {
  return folders.every(({ stats }) => may(visitor, stats, 1));
}

/** Whether a visitor can connect to a socket; reading is not needed for that. */
export function canConnect(visitor: Visitor, { folders, entry }: Step): boolean {
  return may(visitor, entry.stats, 2) && passes(visitor, folders);
}

/** Whether a visitor can put something else in the place of an entry. */
export function canReplace(visitor: Visitor, { folders, entry }: Step): boolean {
  const folder = folders.at(-1)!.stats;
  if (!passes(visitor, folders) || !may(visitor, folder, 2)) return false;
  // In a folder with the sticky bit, the owners of the folder and of the entry alone.
  const isSticky = (folder.mode & 0o1000) !== 0;
  return !isSticky || visitor.uid === folder.uid || visitor.uid === entry.stats.uid;
}
