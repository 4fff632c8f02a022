// Where things are on a node, and where each answer came from: options, then the environment, then the kubelet's own
// configuration, then its defaults.

import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseDuration } from "./duration.ts";
import { Fault } from "./fault.ts";

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

/** The socket: `--socket`, or below `--kubelet-root`, or the default. */
export function findSocket(socket: string | undefined, root: string | undefined): Found<string> {
  if (socket !== undefined) return { value: socket, from: "--socket" };
  return {
    value: join(root ?? defaultRoot, "pods-api", "pods-api.sock"),
    from: root === undefined ? "default" : "--kubelet-root",
  };
}

/** What the kubelet's configuration file says of static pods. */
export interface ManifestSource {
  readonly path: string;
  readonly from: string;
  /** How often the kubelet reads them whole, in ms. */
  readonly scanMs: number;
}

/**
 * The static pod manifests: `--manifests`, or `staticPodPath` of the kubelet's configuration, or the default.
 * @throws Fault ManifestsUnreadable, for a configuration file that was asked for, or is there, and cannot be read.
 */
export async function findManifests(options: {
  readonly manifests: string | undefined;
  readonly kubeletConfig: string | undefined;
  readonly kubeletRoot: string | undefined;
}): Promise<ManifestSource> {
  const file = options.kubeletConfig ?? join(options.kubeletRoot ?? defaultRoot, "config.yaml");
  const asked = options.kubeletConfig !== undefined;
  const config = asked || options.manifests === undefined ? await readKubeletConfig(file, asked) : undefined;
  const scanMs = config?.scanMs ?? defaultScanMs;
  if (options.manifests !== undefined) return { path: options.manifests, from: "--manifests", scanMs };
  if (config?.staticPodPath) return { path: config.staticPodPath, from: `staticPodPath of ${file}`, scanMs };
  return { path: defaultManifests, from: "default", scanMs };
}

async function readKubeletConfig(file: string, asked: boolean) {
  const fail = (what: string) =>
    new Fault("ManifestsUnreadable", `Cannot read the kubelet's configuration ${file}: ${what}`);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!asked && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw fail(code ?? String(error));
  }
  const { parse } = await import("yaml");
  let config: unknown;
  try {
    // Not "silent", with which the parser takes no error for one.
    config = parse(text, { logLevel: "error", maxAliasCount: 100 });
  } catch {
    throw fail("it is not YAML");
  }
  if (typeof config !== "object" || config === null || Array.isArray(config))
    throw fail("it is not a KubeletConfiguration");
  const { staticPodPath, fileCheckFrequency } = config as Record<string, unknown>;
  const scanMs = typeof fileCheckFrequency === "string" ? parseDuration(fileCheckFrequency) : undefined;
  return {
    // The kubelet takes a relative path from the folder of its configuration.
    staticPodPath:
      typeof staticPodPath === "string" && staticPodPath !== "" ? resolve(dirname(file), staticPodPath) : undefined,
    // Zero stands for the default, as it does for the kubelet.
    scanMs: scanMs || undefined,
  };
}
