import type { Struct } from "./decode.ts";
import { flag, integer, integers, isSet, type Problem, part, parts, text } from "./fields.ts";
import { byteLength, isDescending, isDnsSubdomain, isPadded, isUserId } from "./rules.ts";

/** Security contexts of pods and containers, and the annotations that came before them (validation.go). */

const seccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
const seccompPod = "seccomp.security.alpha.kubernetes.io/pod";
const appArmorContainer = "container.apparmor.security.beta.kubernetes.io/";

/** Checks a pod's security context. */
export function checkPodSecurity(spec: Struct, path: string, problem: Problem): void {
  const context = part(spec, "securityContext");
  if (context === null) return;
  for (const field of ["fsGroup", "runAsUser", "runAsGroup"]) {
    if (isSet(context, field) && !isUserId(integer(context, field)))
      problem(`${path}.${field}`, "is no user or group id");
  }
  if (!integers(context, "supplementalGroups").every(isUserId)) {
    problem(`${path}.supplementalGroups`, "holds a number that is no group id");
  }
  const choices: readonly (readonly [string, readonly string[]])[] = [
    ["fsGroupChangePolicy", ["OnRootMismatch", "Always"]],
    ["supplementalGroupsPolicy", ["Merge", "Strict"]],
    ["seLinuxChangePolicy", ["Recursive", "MountOption"]],
  ];
  for (const [field, values] of choices) {
    if (isSet(context, field) && !values.includes(text(context, field))) {
      problem(`${path}.${field}`, `is none of ${values.join(", ")}`);
    }
  }
  checkSysctls(parts(context, "sysctls"), spec, `${path}.sysctls`, problem);
  checkSeccomp(part(context, "seccompProfile"), `${path}.seccompProfile`, problem);
  checkAppArmor(part(context, "appArmorProfile"), `${path}.appArmorProfile`, problem);
  checkWindows(part(context, "windowsOptions"), `${path}.windowsOptions`, problem);
}

const ipcSysctls = new Set([
  "kernel.sem",
  "kernel.shmall",
  "kernel.shmmax",
  "kernel.shmmni",
  "kernel.shm_rmid_forced",
  "kernel.shm",
  "kernel.msgmax",
  "kernel.msgmnb",
  "kernel.msgmni",
  "kernel.msg",
]);

function checkSysctls(sysctls: readonly Struct[], spec: Struct, path: string, problem: Problem): void {
  const seen = new Set<string>();
  for (const [i, sysctl] of sysctls.entries()) {
    const name = text(sysctl, "name");
    const here = `${path}[${i}].name`;
    if (name.length > 253 || !/^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/.test(name)) {
      problem(here, "is no sysctl name");
    } else if (seen.has(name)) problem(here, "is given twice");
    seen.add(name);
    const slash = name.indexOf("/");
    const dot = name.indexOf(".");
    const dotted =
      slash >= 0 && (dot < 0 || slash < dot) ? name.replace(/[./]/g, (c) => (c === "." ? "/" : ".")) : name;
    if (flag(spec, "hostNetwork") && dotted.startsWith("net.")) problem(here, "cannot be set with hostNetwork");
    if (flag(spec, "hostIPC") && (ipcSysctls.has(dotted) || dotted.startsWith("fs.mqueue."))) {
      problem(here, "cannot be set with hostIPC");
    }
  }
}

/** Checks a container's security context; `hostUsers` is false only in a pod with its own user namespace. */
export function checkContainerSecurity(
  context: Struct | null,
  hostUsers: boolean,
  path: string,
  problem: Problem,
): void {
  if (context === null) return;
  for (const field of ["runAsUser", "runAsGroup"]) {
    if (isSet(context, field) && !isUserId(integer(context, field)))
      problem(`${path}.${field}`, "is no user or group id");
  }
  if (isSet(context, "procMount")) {
    const mount = text(context, "procMount");
    if (mount !== "Default" && mount !== "Unmasked") problem(`${path}.procMount`, "is neither Default nor Unmasked");
    else if (mount === "Unmasked" && hostUsers)
      problem(`${path}.procMount`, "can be Unmasked only with hostUsers false");
  }
  checkSeccomp(part(context, "seccompProfile"), `${path}.seccompProfile`, problem);
  if (context.allowPrivilegeEscalation === false) {
    if (flag(context, "privileged")) problem(path, "has privileged beside allowPrivilegeEscalation false");
    const added = part(context, "capabilities")?.add;
    if (Array.isArray(added) && added.includes("CAP_SYS_ADMIN")) {
      problem(path, "adds CAP_SYS_ADMIN beside allowPrivilegeEscalation false");
    }
  }
  checkWindows(part(context, "windowsOptions"), `${path}.windowsOptions`, problem);
  checkAppArmor(part(context, "appArmorProfile"), `${path}.appArmorProfile`, problem);
}

const profileTypes = ["Localhost", "RuntimeDefault", "Unconfined"];

function checkSeccomp(profile: Struct | null, path: string, problem: Problem): void {
  if (profile === null) return;
  const type = text(profile, "type");
  if (!profileTypes.includes(type)) problem(`${path}.type`, `is none of ${profileTypes.join(", ")}`);
  if (type === "Localhost") {
    if (!isSet(profile, "localhostProfile")) problem(`${path}.localhostProfile`, "is required");
    else if (!isDescending(text(profile, "localhostProfile")))
      problem(`${path}.localhostProfile`, "is no relative path");
  } else if (isSet(profile, "localhostProfile")) problem(`${path}.localhostProfile`, "needs the type Localhost");
}

function checkAppArmor(profile: Struct | null, path: string, problem: Problem): void {
  if (profile === null) return;
  const type = text(profile, "type");
  const name = text(profile, "localhostProfile");
  if (!profileTypes.includes(type)) problem(`${path}.type`, `is none of ${profileTypes.join(", ")}`);
  else if (type === "Localhost") {
    if (name === "") problem(`${path}.localhostProfile`, "is required");
    else if (isPadded(name)) problem(`${path}.localhostProfile`, "has white space around it");
    else if (byteLength(name) > 4095) problem(`${path}.localhostProfile`, "is too long");
  } else if (isSet(profile, "localhostProfile")) problem(`${path}.localhostProfile`, "needs the type Localhost");
}

const netBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/u;
const domainName = /^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;

function checkWindows(options: Struct | null, path: string, problem: Problem): void {
  if (options === null) return;
  if (isSet(options, "gmsaCredentialSpecName") && !isDnsSubdomain(text(options, "gmsaCredentialSpecName"))) {
    problem(`${path}.gmsaCredentialSpecName`, "is no DNS subdomain");
  }
  if (isSet(options, "gmsaCredentialSpec")) {
    const size = byteLength(text(options, "gmsaCredentialSpec"));
    if (size === 0 || size > 64 * 1024) problem(`${path}.gmsaCredentialSpec`, "is empty or over 64 KiB");
  }
  if (isSet(options, "runAsUserName") && !isWindowsUser(text(options, "runAsUserName"))) {
    problem(`${path}.runAsUserName`, "is no Windows user name");
  }
}

function isWindowsUser(name: string): boolean {
  const names = name.split("\\");
  const user = names.at(-1) ?? "";
  const domain = names.length === 2 ? (names[0] ?? "") : null;
  if (/[\u0000-\u001f\u007f]/.test(name) || names.length > 2) return false;
  if (domain !== null && (byteLength(domain) >= 256 || !(netBios.test(domain) || domainName.test(domain))))
    return false;
  return user !== "" && byteLength(user) <= 104 && !/^[. ]+$/.test(user) && !/["/\\:;|=,+*?<>@[\]]/.test(user);
}

/** Checks that Windows host process containers are all or none, and only with the host's network. */
export function checkHostProcess(spec: Struct, containers: readonly Struct[], problem: Problem): void {
  const ofPod = part(part(spec, "securityContext") ?? {}, "windowsOptions")?.hostProcess;
  let count = 0;
  for (const container of containers) {
    const own = part(part(container, "securityContext") ?? {}, "windowsOptions")?.hostProcess;
    if (own !== undefined && ofPod !== undefined && own !== ofPod) {
      problem("spec.securityContext.windowsOptions.hostProcess", "differs between the pod and a container");
    }
    if (own ?? ofPod ?? false) count++;
  }
  if (count === 0) return;
  if (count !== containers.length) problem("spec", "has host process containers beside others");
  if (!flag(spec, "hostNetwork")) problem("spec.hostNetwork", "is required by host process containers");
}

/** Checks the annotations for seccomp and AppArmor, by themselves and against the fields. */
export function checkProfileAnnotations(
  annotations: ReadonlyMap<string, string>,
  spec: Struct,
  containers: readonly Struct[],
  problem: Problem,
): void {
  for (const [key, value] of annotations) {
    if (key === seccompPod || key.startsWith(seccompContainer)) {
      const known = value === "runtime/default" || value === "docker/default" || value === "unconfined";
      if (!known && !(value.startsWith("localhost/") && isDescending(value.slice("localhost/".length)))) {
        problem("metadata.annotations", "has a seccomp annotation without a proper profile");
      }
    }
    if (key.startsWith(appArmorContainer)) {
      const name = key.slice(appArmorContainer.length);
      if (!containers.some((container) => text(container, "name") === name)) {
        problem("metadata.annotations", "has an AppArmor annotation for a container that is not there");
      }
      if (value !== "" && value !== "runtime/default" && value !== "unconfined" && !value.startsWith("localhost/")) {
        problem("metadata.annotations", "has an AppArmor annotation without a proper profile");
      }
    }
  }
  const context = part(spec, "securityContext") ?? {};
  const ofPod = annotations.get(seccompPod);
  const seccomp = part(context, "seccompProfile");
  if (seccomp !== null && ofPod !== undefined && !agrees(ofPod, seccomp, true)) {
    problem("spec.securityContext.seccompProfile", "differs from the annotation");
  }
  const windows = text(part(spec, "os") ?? {}, "name") === "windows";
  for (const container of containers) {
    const name = text(container, "name");
    const own = part(container, "securityContext") ?? {};
    const profile = part(own, "seccompProfile");
    const annotation = annotations.get(seccompContainer + name);
    if (profile !== null && annotation !== undefined && !agrees(annotation, profile, true)) {
      problem("a container's seccompProfile", "differs from the annotation");
    }
    const armor = part(own, "appArmorProfile") ?? part(context, "appArmorProfile");
    const armorAnnotation = annotations.get(appArmorContainer + name);
    if (!windows && armor !== null && armorAnnotation !== undefined && !agrees(armorAnnotation, armor, false)) {
      problem("a container's appArmorProfile", "differs from the annotation");
    }
  }
}

function agrees(annotation: string, profile: Struct, seccomp: boolean): boolean {
  switch (text(profile, "type")) {
    case "Unconfined":
      return annotation === "unconfined";
    case "RuntimeDefault":
      return annotation === "runtime/default" || (seccomp && annotation === "docker/default");
    case "Localhost":
      return isSet(profile, "localhostProfile") && annotation === `localhost/${text(profile, "localhostProfile")}`;
    default:
      return true;
  }
}
