// The manifests of this node as checks go by them: the options that name them, one reading of them a run, and what to
// make of a file that only root may read.

import { lstatSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Context, Finding } from "./check.ts";
import { Fault } from "./fault.ts";
import type { ManifestFile, ManifestPod, Manifests } from "./manifests.ts";
import { findManifests, type ManifestSource } from "./node.ts";
import { absolutePath, anyText, listOf, option } from "./option.ts";

/** The options of every check that reads manifests. */
export const manifestOptions = {
  manifests: option(...absolutePath, {
    value: "PATH",
    description: "folder or file of the static pod manifests (default: staticPodPath, or /etc/kubernetes/manifests)",
  }),
  kubeletConfig: option(...absolutePath, {
    value: "FILE",
    description:
      "the kubelet's configuration (default: that of the kubelet that runs, or config.yaml in its root folder)",
  }),
  kubeletConfigDir: option(...absolutePath, {
    value: "DIR",
    description: "the kubelet's folder of drop-in configuration (default: that of the kubelet that runs)",
  }),
  ignore: option(...listOf<string>([anyText, "a file name, with * ? [a-z] as in a shell"]), {
    value: "GLOB,...",
    list: true,
    description: "files to say nothing of where the kubelet passes over them, such as README or *.md",
  }),
} as const;

/** Their values. */
export interface ManifestOptionValues {
  readonly manifests: string | undefined;
  readonly kubeletConfig: string | undefined;
  readonly kubeletConfigDir: string | undefined;
  readonly ignore: readonly string[] | undefined;
}

/** Manifests, and where they come from. */
export interface FoundManifests {
  readonly source: ManifestSource;
  readonly manifests: Manifests;
}

const readings = new WeakMap<Context, Promise<FoundManifests>>();

/**
 * Finds and reads the manifests, once whoever asks: the checks of one run have the same options.
 * @throws Fault ManifestsUnreadable or Timeout
 */
export function nodeManifests(context: Context, options: ManifestOptionValues): Promise<FoundManifests> {
  let reading = readings.get(context);
  if (reading === undefined) {
    reading = read(context, options);
    readings.set(context, reading);
  }
  return reading;
}

// RFC 1123, as the kubelet's own checks have it: with any other name every manifest would be refused for it.
const nodeNameForm = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

async function read(context: Context, options: ManifestOptionValues): Promise<FoundManifests> {
  const { kubeletRoot, kubelet, nodeName } = context;
  if (!nodeNameForm.test(nodeName) || nodeName.length > 253) {
    const what = `Cannot name the static pods of node "${nodeName}": accepted is a DNS subdomain; see --node-name`;
    throw new Fault("ManifestsUnreadable", what);
  }
  const source = await findManifests({ ...options, kubeletRoot, kubelet });
  const { readManifests } = await import("./manifests.ts");
  const signal = AbortSignal.timeout(Math.ceil(context.remainingMs()));
  try {
    return { source, manifests: await readManifests(source.path, nodeName, { signal }) };
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "ManifestsUnreadable") throw error;
    throw new Fault(error.code, `Cannot read ${source.path}: ${error.message}`, error.details);
  }
}

/**
 * Whether this user could not read a file that the kubelet, which is root, may well have read: nothing is known of it
 * then, whatever the reader's verdict is called.
 */
export function isUnread({ verdict, reason }: ManifestFile): boolean {
  return verdict === "ignored" && /^cannot be (opened|looked at|read)\b/.test(reason);
}

/** Files of which nothing is known. */
export function unreadFiles({ files }: Manifests): Finding[] {
  return files
    .filter(isUnread)
    .map(({ file, reason }) => ({ code: "ManifestsUnreadable", subject: file, message: `it ${reason}` }));
}

/** Whether a file's text is broken: there may be a pod in it that somebody means to run. */
export function isBroken({ verdict, reason }: ManifestFile): boolean {
  return verdict === "ignored" && /^not (YAML|JSON):/.test(reason);
}

/**
 * When the file of a pod last changed, or was put where it is. That is its ctime, and a link's own: the mtime stays when a
 * file is moved, and can be set to anything, to a year that is yet to come as well.
 * @returns ms since the epoch.
 */
export function changedMs({ path }: Manifests, { file, modifiedMs }: ManifestPod): number {
  try {
    const at = statSync(path).isDirectory() ? join(path, file) : path;
    return Math.max(lstatSync(at).ctimeMs, statSync(at).ctimeMs);
  } catch {
    // Gone since it was read.
    return modifiedMs;
  }
}

/** Where distributions have the kubelet read static pods, besides the default. */
const otherFolders: readonly string[] = [
  "/var/lib/rancher/rke2/agent/pod-manifests",
  "/var/lib/rancher/k3s/agent/pod-manifests",
  "/etc/kubernetes/static-pods",
];

/** What to say of a folder that is not there, where nothing but the default names it and a known other one is there. */
export function otherFolderHint(
  { source, manifests }: FoundManifests,
  others: readonly string[] = otherFolders,
): string {
  if (!manifests.absent || source.from !== "default") return "";
  const found = others.find((path) => {
    try {
      return statSync(path).isDirectory();
    } catch {
      return false;
    }
  });
  return found === undefined ? "" : `; there is ${found}: see --manifests`;
}

/** Lines for `--verbose`: which folder, which scan period, and where that is from. */
export function sourceDetails({ source }: FoundManifests): string[] {
  const { path, from, scanMs, scanFrom, urlFrom, unset } = source;
  return [
    `manifests: ${path} (${from}${unset ? "; the kubelet is given no folder and reads none" : ""})`,
    `scan period: ${scanMs / 1000} s (${scanFrom})`,
    ...(urlFrom === undefined ? [] : [`a URL gives static pods too (${urlFrom}); what it gives is not asked for`]),
  ];
}
