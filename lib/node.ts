// Where things are on a node, and where each answer came from: options, then the environment, then the command line of
// the kubelet that runs, then its configuration, then its defaults.

import { hostname } from "node:os";
import { join } from "node:path";
import type { KubeletProcess } from "./kubelet_process.ts";

/** The kubelet's root folder unless it was started with another. */
export const defaultRoot = "/var/lib/kubelet";
/** Where kubeadm and most distributions keep static pod manifests. */
export const defaultManifests = "/etc/kubernetes/manifests";
/** How often the kubelet reads its manifests whole, in ms (fileCheckFrequency). */
export const defaultScanMs = 20_000;

/** A value, and what it was taken from. */
export interface Found<T> {
  readonly value: T;
  readonly from: string;
}

/**
 * The node's name as the kubelet writes it behind the names of static pods: trimmed and in lower case, dots kept.
 * @param given Of `--node-name`; an empty text stands for none.
 */
export function findNodeName(given: string | undefined, environment: NodeJS.ProcessEnv): Found<string> {
  const clean = (text: string) => text.trim().toLowerCase();
  if (given !== undefined && clean(given) !== "") return { value: clean(given), from: "--node-name" };
  const named = clean(environment.NODE_NAME ?? "");
  if (named !== "") return { value: named, from: "NODE_NAME" };
  return { value: clean(hostname()), from: "host name" };
}

/** What a value of the kubelet's command line came from. */
export function fromKubelet(option: string, { pid }: KubeletProcess): string {
  return `${option} of the kubelet, process ${pid}`;
}

/** The socket in a root folder. */
export function socketBelow(root: string): string {
  return join(root, "pods-api", "pods-api.sock");
}

/** The socket: `--socket`, or below `--kubelet-root`, or the default. */
export function findSocket(socket: string | undefined, root: string | undefined): Found<string> {
  if (socket !== undefined) return { value: socket, from: "--socket" };
  return {
    value: socketBelow(root ?? defaultRoot),
    from: root === undefined ? "default" : "--kubelet-root",
  };
}

/** Where the static pod manifests are. */
export interface ManifestSource {
  readonly path: string;
  readonly from: string;
  /** How often the kubelet reads them whole, in ms. */
  readonly scanMs: number;
  readonly scanFrom: string;
  /** Where the kubelet is told to take static pods from a URL as well, which no probe asks; undefined if it is not. */
  readonly urlFrom: string | undefined;
  /** Whether all that the kubelet goes by is known, and none of it names a folder: then it reads none. */
  readonly unset: boolean;
}

/** What may say where the manifests are. */
export interface ManifestOptions {
  readonly manifests: string | undefined;
  readonly kubeletConfig: string | undefined;
  readonly kubeletConfigDir: string | undefined;
  readonly kubeletRoot: string | undefined;
  /** The kubelet that runs, where it is known. */
  readonly kubelet?: KubeletProcess | undefined;
}

/**
 * The static pod manifests: `--manifests`, or what the kubelet was started with, or `staticPodPath` of its configuration,
 * or the default.
 * @throws Fault ManifestsUnreadable, for a configuration that was asked for, or is there, and cannot be read.
 */
export async function findManifests(options: ManifestOptions): Promise<ManifestSource> {
  const { manifests, kubelet } = options;
  const config = await findConfig(options);
  const scan =
    kubelet?.fileCheckFrequency !== undefined
      ? { value: kubelet.fileCheckFrequency, from: fromKubelet("--file-check-frequency", kubelet) }
      : config?.fileCheckFrequency !== undefined
        ? {
            value: config.fileCheckFrequency.value,
            from: `fileCheckFrequency of ${config.fileCheckFrequency.file}`,
          }
        : { value: defaultScanMs, from: "default" };
  const urlFrom = kubelet?.manifestUrl
    ? fromKubelet("--manifest-url", kubelet)
    : config?.staticPodURL && `staticPodURL of ${config.staticPodURL.file}`;
  const at = (path: string, from: string, unset = false): ManifestSource => ({
    path,
    from,
    scanMs: scan.value,
    scanFrom: scan.from,
    urlFrom,
    unset,
  });
  if (manifests !== undefined) return at(manifests, "--manifests");
  if (kubelet?.podManifestPath !== undefined) {
    return at(kubelet.podManifestPath, fromKubelet("--pod-manifest-path", kubelet));
  }
  if (config?.staticPodPath !== undefined) {
    return at(config.staticPodPath.value, `staticPodPath of ${config.staticPodPath.file}`);
  }
  return at(defaultManifests, "default", kubelet !== undefined);
}

async function findConfig({ manifests, kubeletConfig, kubeletConfigDir, kubeletRoot, kubelet }: ManifestOptions) {
  const asked = kubeletConfig !== undefined || kubeletConfigDir !== undefined;
  // Where the manifests are named, a broken configuration of which nobody spoke is in nobody's way.
  if (manifests !== undefined && !asked) return undefined;
  const { readKubeletConfig } = await import("./kubelet_config.ts");
  const own = kubelet === undefined ? join(kubeletRoot ?? defaultRoot, "config.yaml") : kubelet.config;
  return readKubeletConfig({
    file: kubeletConfig ?? own,
    required: kubeletConfig !== undefined || kubelet?.config !== undefined,
    dropIns: kubeletConfigDir ?? kubelet?.configDir,
    workingFolder: kubelet?.workingFolder,
  });
}
