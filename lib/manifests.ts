import { constants, type Stats } from "node:fs";
import { lstat, open, readdir, stat } from "node:fs/promises";
import { Fault } from "./fault.ts";
import { type Reading, readManifest } from "./manifests/manifest.ts";
import type { Tick } from "./manifests/value.ts";

/** A pod that the kubelet makes of a manifest. */
export interface ManifestPod {
  readonly namespace: string;
  /** The full name: the manifest's and the node's. */
  readonly name: string;
  /** The manifest's own `metadata.uid`; null where the kubelet makes one up. */
  readonly uid: string | null;
  /** The containers' images, in their order; those of init containers are not among them. */
  readonly images: readonly string[];
  /** The file it comes from, as in {@link ManifestFile}. */
  readonly file: string;
  /** When that file last changed, in milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** What the kubelet makes of one file. */
export interface ManifestFile {
  /** Its name in the folder. */
  readonly file: string;
  /**
   * `pod`: it runs. `shadowed`: a later file gives the same pod. `refused`: it says it is a Pod, and the kubelet does not
   * run it. `ignored`: the kubelet passes over it.
   */
  readonly verdict: "pod" | "shadowed" | "refused" | "ignored";
  /** The pod's namespace and full name, `kube-system/etcd-cp-1`; null where none is known. */
  readonly pod: string | null;
  /** Why, in a few words on one line; empty for a plain pod. Never holds an environment, arguments or annotations. */
  readonly reason: string;
  /** Whether more YAML documents follow the one that counts. */
  readonly furtherDocuments: boolean;
}

/** What the kubelet makes of a static pod folder or file. */
export interface Manifests {
  readonly path: string;
  /** Whether nothing is there; the kubelet then runs no static pod and is content. */
  readonly absent: boolean;
  /** Sorted by namespace and name. */
  readonly pods: readonly ManifestPod[];
  /** In the kubelet's order, which is that of their names' bytes. */
  readonly files: readonly ManifestFile[];
}

/** How to read manifests. */
export interface ReadOptions {
  /** Ends the reading with a Timeout fault between two files, or while the file system does not answer. */
  readonly signal?: AbortSignal;
  /**
   * When to give up at the latest, as Date.now() tells the time. A signal cannot interrupt the reading of one file of
   * many megabytes, which takes seconds; this can.
   */
  readonly deadline?: number;
}

/** The kubelet reads no file of this size or more (pkg/kubelet/config, maxConfigLength). */
const tooLarge = 10 * 1024 * 1024;

/** Files under way at one time: enough to keep a disk busy, few enough for the memory of files of 10 MiB. */
const atOnce = 4;

/**
 * Reads static pod manifests as the kubelet of v1.37 does at a full scan: the files of a folder that do not begin with a
 * dot, in the order of their names' bytes, links followed, folders and special files passed over; or one file.
 * `nodeName` is the kubelet's node name, which is lower-cased here as the kubelet lower-cases it. Reads only; opens no
 * FIFO, socket or device.
 *
 * Throws a Fault: ManifestsUnreadable where the path is there and cannot be read, Timeout when the signal is aborted.
 *
 * @example
 * ```ts
 * const { pods } = await readManifests("/etc/kubernetes/manifests", "cp-1");
 * ```
 */
export async function readManifests(path: string, nodeName: string, options: ReadOptions = {}): Promise<Manifests> {
  const { signal } = options;
  if (signal === undefined) return await readAll(path, nodeName, options);
  if (signal.aborted) throw late();
  // Once around the whole: around each call of the file system it costs as much as the call.
  let abort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = (): void => reject(late());
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([readAll(path, nodeName, options), aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function readAll(path: string, nodeName: string, { signal, deadline }: ReadOptions): Promise<Manifests> {
  const node = nodeName.trim().toLowerCase();
  const tick = ticker(deadline);
  // The kubelet strips the slashes as well, and so finds nothing at "/".
  const root = path.replace(/\/+$/, "");
  let status: Awaited<ReturnType<typeof stat>>;
  try {
    status = await stat(root);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { path, absent: true, pods: [], files: [] };
    throw unreadable(error);
  }
  if (status.isFile()) {
    const file = root.slice(root.lastIndexOf("/") + 1);
    const reading = await readFile(Buffer.from(root), file, status, node, tick);
    return reading === null ? { path, absent: true, pods: [], files: [] } : conclude(path, [reading]);
  }
  if (!status.isDirectory()) throw new Fault("ManifestsUnreadable", "the path is neither a folder nor a file");

  let entries: Buffer[];
  try {
    entries = await readdir(root, { encoding: "buffer" });
  } catch (error) {
    throw unreadable(error);
  }
  const names = entries.filter((name) => name[0] !== 0x2e).sort(Buffer.compare);
  const read: (FileReading | null)[] = [];
  let next = 0;
  const reader = async (): Promise<void> => {
    for (let i = next++; i < names.length; i = next++) {
      // The caller has its Timeout already.
      if (signal?.aborted === true) throw late();
      const name = names[i] ?? Buffer.alloc(0);
      const full = Buffer.concat([Buffer.from(`${root}/`), name]);
      read[i] = await readEntry(full, name.toString(), node, tick);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, reader));
  return conclude(
    path,
    read.filter((reading) => reading !== null),
  );
}

/** One file's reading, before it is known whether another file gives the same pod. */
interface FileReading extends Reading {
  readonly file: string;
  readonly modifiedMs: number;
}

const nothing = { pod: null, furtherDocuments: false, modifiedMs: 0 } as const;

/** What no user finds, the kubelet no more than this one, and so passes over. */
const deadEnds: Readonly<Record<string, string>> = {
  ENOENT: "a link to nothing",
  ENOTDIR: "a link to nothing",
  ENAMETOOLONG: "a link to nothing",
  ELOOP: "a link that leads in a circle",
};

/**
 * Reads what a folder's entry leads to; null for an empty folder, which nobody meant to be read, and for what is gone
 * since the folder was listed, as an editor's own files are.
 */
async function readEntry(full: Buffer, file: string, node: string, tick: Tick): Promise<FileReading | null> {
  try {
    const status = await stat(full);
    if (status.isFile()) return await readFile(full, file, status, node, tick);
    if (status.isDirectory()) {
      const inside = await readdir(full, { encoding: "buffer" }).catch(() => []);
      if (!inside.some((name) => name[0] !== 0x2e)) return null;
      return { ...nothing, file, verdict: "ignored", reason: "a folder; the kubelet does not look into it" };
    }
    const kind = status.isFIFO() ? "a FIFO" : status.isSocket() ? "a socket" : "a device";
    return { ...nothing, file, verdict: "ignored", reason: `${kind}; the kubelet reads files only` };
  } catch (error) {
    if (error instanceof Fault) throw error;
    const code = errorCode(error);
    const reason = deadEnds[code] ?? `cannot be looked at (${code})`;
    return (await isGone(full)) ? null : { ...nothing, file, verdict: "ignored", reason };
  }
}

async function isGone(full: Buffer): Promise<boolean> {
  return lstat(full).then(
    () => false,
    (error) => errorCode(error) === "ENOENT",
  );
}

async function readFile(
  full: Buffer,
  file: string,
  { size, mtimeMs: modifiedMs }: Stats,
  node: string,
  tick: Tick,
): Promise<FileReading | null> {
  if (size >= tooLarge) return { ...nothing, file, modifiedMs, verdict: "ignored", reason: largeReason };
  // Should the file have become a FIFO since it was looked at, opening it must not hang.
  const handle = await open(full, constants.O_RDONLY | constants.O_NONBLOCK).catch(errorCode);
  if (handle === "ENOENT") return null; // gone since it was looked at
  if (typeof handle === "string") {
    return { ...nothing, file, verdict: "ignored", reason: `cannot be opened by this user (${handle})` };
  }
  try {
    const buffer = Buffer.allocUnsafe(Math.min(tooLarge, size * 2 + 4096));
    let length = 0;
    // A regular file gives less than was asked for at its end only; it may have grown since it was looked at.
    for (let asked = -1, given = -1; given === asked && length < buffer.length; length += given) {
      asked = buffer.length - length;
      given = (await handle.read(buffer, length, asked, length)).bytesRead;
    }
    if (length >= tooLarge) return { ...nothing, file, modifiedMs, verdict: "ignored", reason: largeReason };
    return { file, modifiedMs, ...readManifest(buffer.subarray(0, length), node, tick) };
  } catch (error) {
    if (error instanceof Fault || !isSystemError(error)) throw error;
    return { ...nothing, file, verdict: "ignored", reason: `cannot be read (${errorCode(error)})` };
  } finally {
    // Nothing depends on it, and waiting costs a turn a file.
    handle.close().catch(() => {});
  }
}

const largeReason = "10 MiB or more; the kubelet does not read it";

/** Settles which file gives each pod: the kubelet's store keeps the last. */
function conclude(path: string, read: readonly FileReading[]): Manifests {
  const last = new Map<string, string>();
  for (const { pod, verdict, file } of read) {
    if (pod !== null && takesPart(verdict)) last.set(`${pod.namespace}/${pod.name}`, file);
  }
  const pods: ManifestPod[] = [];
  const files = read.map((reading): ManifestFile => {
    const { file, furtherDocuments } = reading;
    const pod = reading.pod === null ? null : `${reading.pod.namespace}/${reading.pod.name}`;
    if (reading.pod === null || !takesPart(reading.verdict)) {
      const verdict = reading.verdict === "ignored" ? "ignored" : "refused";
      return { file, verdict, pod, reason: reading.reason, furtherDocuments };
    }
    const winner = last.get(pod ?? "") ?? file;
    if (winner !== file) {
      return {
        file,
        verdict: "shadowed",
        pod,
        reason: `${winner} gives the same pod and is read later`,
        furtherDocuments,
      };
    }
    if (reading.verdict === "mirror")
      return { file, verdict: "refused", pod, reason: reading.reason, furtherDocuments };
    pods.push({ ...reading.pod, file, modifiedMs: reading.modifiedMs });
    const reason = furtherDocuments ? "only the first document counts" : "";
    return { file, verdict: "pod", pod, reason, furtherDocuments };
  });
  pods.sort((a, b) => Buffer.compare(Buffer.from(`${a.namespace}/${a.name}`), Buffer.from(`${b.namespace}/${b.name}`)));
  return { path, absent: false, pods, files };
}

/** Whether a reading is a pod to the kubelet's store. */
function takesPart(verdict: Reading["verdict"]): boolean {
  return verdict === "pod" || verdict === "mirror";
}

function late(): Fault {
  return new Fault("Timeout", "the manifests could not be read in time");
}

/** Looks at the clock now and then. */
function ticker(deadline: number | undefined): Tick {
  if (deadline === undefined) return () => {};
  let steps = 0;
  return () => {
    if (++steps % 4096 === 0 && Date.now() >= deadline) throw late();
  };
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "code" in error;
}

function errorCode(error: unknown): string {
  return isSystemError(error) ? String(error.code) : "unknown error";
}

function unreadable(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const errno = errorCode(error);
  const what: Record<string, string> = {
    EACCES: "this user may not read the manifests",
    EPERM: "this user may not read the manifests",
    ENOTDIR: "a part of the path is no folder",
    ELOOP: "the path is a loop of links",
    EIO: "the file system has an error",
  };
  return new Fault("ManifestsUnreadable", `${what[errno] ?? "the manifests cannot be read"} (${errno})`, { errno });
}
