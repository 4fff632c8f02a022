// What the kubelet of this node was started with, from /proc: where its root folder, its configuration and its manifests
// are, and what it calls the node.

import { closeSync, openSync, readdirSync, readlinkSync, readSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parseDuration } from "./duration.ts";

/** The kubelet's own options, as far as a probe goes by them; undefined where they are not given. */
export interface KubeletProcess {
  readonly pid: number;
  /** Relative paths start here: so they do in its options, and in its drop-in configuration. */
  readonly workingFolder: string;
  readonly rootDir: string | undefined;
  readonly hostnameOverride: string | undefined;
  readonly config: string | undefined;
  readonly configDir: string | undefined;
  readonly podManifestPath: string | undefined;
  /** Whether it takes static pods from a URL. */
  readonly manifestUrl: boolean;
  /** In ms. */
  readonly fileCheckFrequency: number | undefined;
}

/** The kubelet, or why there is none to go by; neither where none runs. */
export interface KubeletSearch {
  readonly kubelet?: KubeletProcess;
  readonly note?: string;
}

/**
 * Looks for one process that is a kubelet by its name and its first argument, and that has the same root folder as this
 * process: paths of a kubelet in a container mean something else here. k3s and MicroK8s run the kubelet inside a
 * process of another name, which is not found.
 * @param proc Where proc(5) is mounted.
 * @param timeoutMs When to give up; a process takes about 30 µs, and a node has hundreds.
 */
export async function findKubelet(proc = "/proc", timeoutMs = 5000): Promise<KubeletSearch> {
  const deadlineMs = performance.now() + timeoutMs;
  let pids: string[];
  try {
    pids = readdirSync(proc).filter((name) => /^[1-9]\d*$/.test(name));
  } catch {
    return {};
  }
  const found: KubeletProcess[] = [];
  const buffer = Buffer.alloc(16);
  for (const [at, pid] of pids.entries()) {
    if (at % 64 === 63 && performance.now() > deadlineMs) return { note: "no time to look through all processes" };
    // The name is read first: unlike the command line it never waits for a process that is stuck.
    if (readName(`${proc}/${pid}/comm`, buffer) !== "kubelet" || !sharesRoot(`${proc}/${pid}/root`)) continue;
    const words = await readCommandLine(`${proc}/${pid}/cmdline`, deadlineMs);
    if (words === undefined || !/(^|\/)kubelet$/.test(words[0] ?? "")) continue;
    found.push(optionsOf(Number(pid), words, `${proc}/${pid}/cwd`));
  }
  const [kubelet, other] = found;
  if (other !== undefined) {
    const pids = found.map(({ pid }) => pid).sort((a, b) => a - b);
    return { note: `several processes are kubelets: ${pids.join(", ")}` };
  }
  return kubelet === undefined ? {} : { kubelet };
}

function readName(path: string, buffer: Buffer): string {
  try {
    const file = openSync(path, "r");
    try {
      return buffer.toString("utf8", 0, readSync(file, buffer, 0, buffer.length, 0)).trimEnd();
    } finally {
      closeSync(file);
    }
  } catch {
    // It ended meanwhile.
    return "";
  }
}

function sharesRoot(path: string): boolean {
  try {
    const [theirs, ours] = [statSync(`${path}/`), statSync("/")];
    return theirs.dev === ours.dev && theirs.ino === ours.ino;
  } catch {
    // Not for this user to see, so nothing is known of its paths.
    return false;
  }
}

async function readCommandLine(path: string, deadlineMs: number): Promise<string[] | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((give) => {
    timer = setTimeout(() => give(undefined), Math.max(1, deadlineMs - performance.now()));
  });
  try {
    const text = await Promise.race([readFile(path, "utf8"), late]);
    return text?.replace(/\0$/, "").split("\0");
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Reads a command line as the kubelet's flags do (pflag): the last one counts, `_` is `-`, `--` ends them. */
function optionsOf(pid: number, words: readonly string[], cwd: string): KubeletProcess {
  const given = new Map<string, string>();
  for (let i = 1; i < words.length && words[i] !== "--"; i++) {
    const match = /^--([^=]+)(?:=([\s\S]*))?$/.exec(words[i]!);
    if (match === null) continue;
    const name = match[1]!.replaceAll("_", "-");
    const value = match[2] ?? words[i + 1] ?? "";
    if (ours.has(name)) {
      given.set(name, value);
      // The value of another option may look like one, that of these never does.
      if (match[2] === undefined) i++;
    }
  }
  let workingFolder = "/";
  try {
    workingFolder = readlinkSync(cwd);
  } catch {
    // As systemd starts a service.
  }
  const text = (name: string) => given.get(name) || undefined;
  const path = (name: string) => {
    const found = text(name);
    return found === undefined ? undefined : resolve(workingFolder, found);
  };
  return {
    pid,
    workingFolder,
    rootDir: path("root-dir"),
    hostnameOverride: text("hostname-override"),
    config: path("config"),
    configDir: path("config-dir"),
    podManifestPath: path("pod-manifest-path"),
    manifestUrl: text("manifest-url") !== undefined,
    fileCheckFrequency: parseDuration(given.get("file-check-frequency") ?? "") || undefined,
  };
}

const ours: ReadonlySet<string> = new Set([
  "root-dir",
  "hostname-override",
  "config",
  "config-dir",
  "pod-manifest-path",
  "manifest-url",
  "file-check-frequency",
]);
