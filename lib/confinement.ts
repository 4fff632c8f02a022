// What a security module (SELinux, AppArmor) makes of this process, as far as files tell. The label of a socket file is an
// extended attribute, which no runtime reads without native code or another process, so it is not told.

import { readFileSync } from "node:fs";

/** Files of the kernel that are looked into; tests point them at files of their own. */
export interface ConfinementFiles {
  readonly enforce: string;
  readonly label: string;
}

const kernelFiles: ConfinementFiles = { enforce: "/sys/fs/selinux/enforce", label: "/proc/self/attr/current" };

/** A line for each thing that is known; none where there is no security module. */
export function confinement({ enforce, label }: ConfinementFiles = kernelFiles): string[] {
  const lines: string[] = [];
  const mode = readText(enforce);
  if (mode !== "")
    lines.push(`SELinux is ${mode === "1" ? "enforcing" : "permissive"}; see ls -Z for the file's label`);
  const own = readText(label);
  if (own !== "" && own !== "unconfined") lines.push(`this process has the security label ${own}`);
  return lines;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").replace(/\0+$/, "").trim();
  } catch {
    // Not there, or no module answers (EINVAL).
    return "";
  }
}
