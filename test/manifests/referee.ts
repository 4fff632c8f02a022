import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Manifests, readManifests } from "../../lib/manifests.ts";

/** What the kubelet's own reader says of one folder or file (test/kubelet/dump.go). */
export interface Verdict {
  readonly directory: string;
  readonly nodeName: string;
  readonly files: readonly {
    readonly file: string;
    readonly pod?: string;
    readonly mirror?: boolean;
    readonly error?: string;
    readonly parsed?: boolean;
  }[];
  readonly pods: readonly {
    readonly Namespace: string;
    readonly Name: string;
    readonly DeclaredUID: string;
    readonly Images: readonly string[];
    readonly File?: string;
  }[];
  readonly scanError?: string;
}

/** One file of a generated folder. */
export interface GeneratedFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const fixture = resolve(import.meta.dirname ?? ".", "../../dist/kubelet-server");

/** The kubelet fixture; null where it is not built. */
export async function findReferee(): Promise<string | null> {
  const path = process.env.KUBELET_SERVER ?? fixture;
  return await access(path).then(
    () => path,
    () => null,
  );
}

/** Asks the kubelet's reader about many folders at once. */
export async function ask(referee: string, node: string, paths: readonly string[]): Promise<Verdict[]> {
  const child = spawn(referee, ["--node", node, "--dump-dirs"], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  child.stdin.end(paths.map((path) => `${path}\n`).join(""));
  const verdicts: Verdict[] = [];
  for await (const line of createInterface({ input: child.stdout })) verdicts.push(JSON.parse(line) as Verdict);
  await exited;
  return verdicts;
}

/** Writes a generated folder. */
export async function writeFolder(path: string, files: readonly GeneratedFile[]): Promise<void> {
  await mkdir(path, { recursive: true });
  for (const { name, bytes } of files) await writeFile(join(path, name), bytes);
}

/** Reads a folder and lists where that differs from the kubelet's verdict; empty when they agree. */
export async function compare(path: string, verdict: Verdict): Promise<string[]> {
  let ours: Manifests;
  try {
    ours = await readManifests(path, verdict.nodeName);
  } catch (error) {
    return [`readManifests threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
  const differences: string[] = [];
  const wanted = verdict.pods.map((pod) => [pod.Namespace, pod.Name, pod.DeclaredUID, pod.Images, pod.File]);
  const found = ours.pods.map((pod) => [pod.namespace, pod.name, pod.uid ?? "", pod.images, pod.file]);
  if (JSON.stringify(wanted) !== JSON.stringify(found)) {
    differences.push(`pods: kubelet ${JSON.stringify(wanted)}, here ${JSON.stringify(found)}`);
  }
  const read = new Map(ours.files.map((file) => [file.file, file]));
  for (const theirs of verdict.files) {
    const own = read.get(theirs.file);
    const verdictHere = `${own?.verdict} ${own?.pod} (${own?.reason})`;
    if (theirs.pod !== undefined) {
      const taken =
        own !== undefined && (own.verdict === "pod" || own.verdict === "shadowed" || theirs.mirror === true);
      if (!taken || own?.pod !== theirs.pod)
        differences.push(`${theirs.file}: kubelet takes ${theirs.pod}, here ${verdictHere}`);
    } else if (own !== undefined && (own.verdict === "pod" || own.verdict === "shadowed")) {
      differences.push(`${theirs.file}: kubelet says ${theirs.error}, here ${verdictHere}`);
    } else if (theirs.parsed === true && own?.verdict !== "refused") {
      differences.push(`${theirs.file}: kubelet refuses a Pod (${theirs.error}), here ${verdictHere}`);
    }
  }
  if (verdict.scanError?.startsWith("panic") === true) differences.length = 0;
  return differences;
}
