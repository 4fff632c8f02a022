// What the kubelet's configuration says of static pods: one file, and the drop-in files that change it.

import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseDuration } from "./duration.ts";
import { Fault } from "./fault.ts";
import { isFields, type Value } from "./manifests/value.ts";
import { kindOf } from "./socket.ts";

/** Where the configuration is. */
export interface ConfigFiles {
  /** The kubelet's `--config`. */
  readonly file: string | undefined;
  /** Whether the file has to be there. */
  readonly required: boolean;
  /** The kubelet's `--config-dir`. */
  readonly dropIns: string | undefined;
  /** Where relative paths of drop-in files start: the kubelet's working folder, which systemd makes `/`. */
  readonly workingFolder?: string | undefined;
}

/** What it says; undefined for what it does not say. */
export interface KubeletConfig {
  readonly staticPodPath: Setting<string> | undefined;
  /** In ms. */
  readonly fileCheckFrequency: Setting<number> | undefined;
  readonly staticPodURL: Setting<true> | undefined;
}

/** A value, and the file that gives it. */
export interface Setting<T> {
  readonly value: T;
  readonly file: string;
}

// A configuration has a few kilobytes, and no more files than somebody wrote by hand.
const maxBytes = 1 << 20;
const maxDropIns = 1000;

/**
 * Reads the configuration as the kubelet puts it together (cmd/kubelet/app/server.go): the file, then every `*.conf`
 * below the drop-in folder in the order of their names, each a merge patch of what came before.
 * @returns undefined where there is no configuration at all.
 * @throws Fault ManifestsUnreadable
 */
export async function readKubeletConfig(files: ConfigFiles): Promise<KubeletConfig | undefined> {
  const { file, required, dropIns, workingFolder = "/" } = files;
  const found: [path: string, base: string][] = [];
  if (file !== undefined && (required || isThere(file))) found.push([file, dirname(file)]);
  // Only the file's own paths start at its folder: those of drop-in files are never made absolute.
  if (dropIns !== undefined) for (const path of listDropIns(dropIns)) found.push([path, workingFolder]);
  if (found.length === 0 && dropIns === undefined) return undefined;

  const config: { -readonly [K in keyof KubeletConfig]: KubeletConfig[K] } = {
    staticPodPath: undefined,
    fileCheckFrequency: undefined,
    staticPodURL: undefined,
  };
  for (const [path, base] of found) {
    const fields = await readFields(path);
    const { staticPodPath, fileCheckFrequency, staticPodURL } = fields;
    // What a file leaves out stays; null and an empty text take it away.
    if (staticPodPath !== undefined) {
      config.staticPodPath = isText(staticPodPath) ? { value: resolve(base, staticPodPath), file: path } : undefined;
    }
    if (fileCheckFrequency !== undefined) {
      // Zero stands for the default, as it does for the kubelet.
      const ms = isText(fileCheckFrequency) ? parseDuration(fileCheckFrequency) : undefined;
      config.fileCheckFrequency = ms ? { value: ms, file: path } : undefined;
    }
    if (staticPodURL !== undefined) {
      config.staticPodURL = isText(staticPodURL) ? { value: true, file: path } : undefined;
    }
  }
  return config;
}

function isText(value: Value): value is string {
  return typeof value === "string" && value !== "";
}

function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}

/** As filepath.WalkDir goes: folders where their names stand, links not followed into folders. */
function listDropIns(folder: string): string[] {
  const paths: string[] = [];
  const walk = (at: string): void => {
    let entries: { readonly name: string; isDirectory(): boolean }[];
    try {
      entries = readdirSync(at, { withFileTypes: true });
    } catch (error) {
      throw unreadable(at, (error as NodeJS.ErrnoException).code ?? String(error));
    }
    for (const entry of entries.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (entry.name.endsWith(".conf")) paths.push(path);
      if (paths.length > maxDropIns) throw unreadable(folder, `it has over ${maxDropIns} files`);
    }
  };
  walk(folder);
  return paths;
}

async function readFields(path: string): Promise<Readonly<Record<string, Value | undefined>>> {
  let bytes: Buffer;
  try {
    const stats: Stats = statSync(path);
    // Opening a FIFO waits for whoever writes to it.
    if (!stats.isFile()) throw unreadable(path, `it is ${kindOf(stats)}`);
    if (stats.size > maxBytes) throw unreadable(path, `it has ${stats.size} bytes, over ${maxBytes}`);
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw unreadable(path, (error as NodeJS.ErrnoException).code ?? String(error));
  }
  let value: Value;
  try {
    value = await parse(bytes);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw unreadable(path, "it is not YAML");
  }
  if (!isFields(value)) throw unreadable(path, "it is not a KubeletConfiguration");
  return Object.fromEntries(value.fields);
}

/** The kubelet tries JSON on what begins with a brace, and takes anything else for YAML. */
async function parse(bytes: Buffer): Promise<Value> {
  const text = bytes.toString("utf8");
  if (/^\s*\{/.test(text)) {
    const { parseJson } = await import("./manifests/json.ts");
    return parseJson(text);
  }
  const { readYaml } = await import("./manifests/yaml.ts");
  return readYaml(bytes).value;
}

function unreadable(path: string, what: string): Fault {
  return new Fault("ManifestsUnreadable", `Cannot read the kubelet's configuration ${path}: ${what}`);
}
