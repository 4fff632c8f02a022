import { checkContainers, checkInitContainers, type PodContext } from "./containers.ts";
import type { Struct } from "./decode.ts";
import { flag, integer, isSet, type Problem, part, parts, table, text, texts } from "./fields.ts";
import { parseJson } from "./json.ts";
import { findReference } from "./references.ts";
import { checkOverhead, checkPodResources } from "./resources.ts";
import { byteLength, isAddress, isDnsLabel, isDnsSubdomain, isLabelKey, isSearchDomain } from "./rules.ts";
import {
  checkAffinity,
  checkLabels,
  checkSpreading,
  checkTolerations,
  type Toleration,
  tolerationsOf,
} from "./scheduling.ts";
import { checkHostProcess, checkPodSecurity, checkProfileAnnotations } from "./security.ts";
import { isArray, isFields, isNumber, type Value } from "./value.ts";
import { checkVolumes } from "./volumes.ts";

/** Annotations that mean something here. */
const mirrorAnnotation = "kubernetes.io/config.mirror";
const hashAnnotation = "kubernetes.io/config.hash";

/** Whether a pod has the annotation of a mirror pod; its value does not matter. */
export function isMirror(pod: Struct): boolean {
  return table(part(pod, "metadata") ?? {}, "annotations").has(mirrorAnnotation);
}

/**
 * Why the kubelet runs no such static pod; null when it does. `pod` is decoded as a v1.Pod with a name; `namespace`,
 * `name` and `node` are as the kubelet completes them. The rules are those of ValidatePodCreate in v1.37.2 with the
 * kubelet's defaults and feature gates, and of podutil.HasAPIObjectReference.
 */
export function findRefusal(pod: Struct, namespace: string, name: string, node: string): string | null {
  const metadata = part(pod, "metadata") ?? {};
  const spec = part(pod, "spec") ?? {};
  let first: string | null = null;
  const problem: Problem = (path, what) => {
    first ??= `${path} ${what}`;
  };
  if (!isDnsSubdomain(name)) problem("the name with the node's name behind it", "is no DNS subdomain");
  if (!isDnsLabel(namespace)) problem("metadata.namespace", "is no DNS label");
  checkMetadata(metadata, problem);
  checkSpec(spec, node, problem);
  checkAnnotations(metadata, spec, problem);
  if (first !== null) return first;
  const reference = findReference(spec);
  return reference === null ? null : `${reference.path} refers to ${reference.object}, which a static pod cannot`;
}

function checkMetadata(metadata: Struct, problem: Problem): void {
  const generate = text(metadata, "generateName");
  // A trailing dash is fine: something follows it.
  const generated = generate.length > 1 && generate.endsWith("-") ? `${generate.slice(0, -2)}a` : generate;
  if (generate !== "" && !isDnsSubdomain(generated)) problem("metadata.generateName", "is no DNS subdomain");
  if (integer(metadata, "generation") < 0) problem("metadata.generation", "is negative");
  checkLabels(table(metadata, "labels"), "metadata.labels", problem);
  let controllers = 0;
  for (const [i, owner] of parts(metadata, "ownerReferences").entries()) {
    const here = `metadata.ownerReferences[${i}]`;
    for (const field of ["apiVersion", "kind", "name", "uid"]) {
      if (text(owner, field) === "") problem(`${here}.${field}`, "is required");
    }
    const version = text(owner, "apiVersion").split("/");
    if (version.length > 2 || version.at(-1) === "") problem(`${here}.apiVersion`, "is no API version");
    const core = version.length === 1 ? version[0] : version[0] === "" ? version[1] : null;
    if (core === "v1" && text(owner, "kind") === "Event") problem(here, "cannot be an Event");
    if (flag(owner, "controller")) controllers++;
  }
  if (controllers > 1) problem("metadata.ownerReferences", "has more than one controller");
  const finalizers = texts(metadata, "finalizers");
  const standard = ["kubernetes", "orphan", "foregroundDeletion"];
  if (
    !finalizers.every((finalizer) => isLabelKey(finalizer) && (finalizer.includes("/") || standard.includes(finalizer)))
  ) {
    problem("metadata.finalizers", "holds a text that is no finalizer");
  }
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")) {
    problem("metadata.finalizers", "holds both orphan and foregroundDeletion");
  }
  for (const [i, entry] of parts(metadata, "managedFields").entries()) {
    const here = `metadata.managedFields[${i}]`;
    if (!["Apply", "Update"].includes(text(entry, "operation")))
      problem(`${here}.operation`, "is neither Apply nor Update");
    if (!["", "FieldsV1"].includes(text(entry, "fieldsType"))) problem(`${here}.fieldsType`, "is not FieldsV1");
    const manager = text(entry, "manager");
    if (byteLength(manager) > 128 || !/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(manager)) {
      problem(`${here}.manager`, "is too long or not printable");
    }
    if (byteLength(text(entry, "subresource")) > 256) problem(`${here}.subresource`, "is too long");
  }
}

function checkAnnotations(metadata: Struct, spec: Struct, problem: Problem): void {
  const annotations = table(metadata, "annotations");
  // The kubelet adds the hash before it checks.
  let size = hashAnnotation.length + (byteLength(text(metadata, "uid")) || 32);
  for (const [key, value] of annotations) {
    if (!isLabelKey(key.toLowerCase())) problem("metadata.annotations", "holds a key that is no annotation key");
    if (key !== hashAnnotation) size += byteLength(key) + byteLength(value);
  }
  if (size > 256 * 1024) problem("metadata.annotations", "is over 256 KiB");
  const cost = annotations.get("controller.kubernetes.io/pod-deletion-cost");
  if (cost !== undefined) {
    const value = /^(-[0-9]+|0|[1-9][0-9]*)$/.test(cost) ? BigInt(cost) : null;
    if (value === null || BigInt.asIntN(32, value) !== value) {
      problem("metadata.annotations", "has a deletion cost that is no 32-bit integer");
    }
  }
  const tolerations = annotations.get("scheduler.alpha.kubernetes.io/tolerations");
  if (tolerations !== undefined && tolerations !== "") {
    const read = annotatedTolerations(tolerations);
    if (read === null) problem("metadata.annotations", "has tolerations that cannot be read");
    else checkTolerations(read, "metadata.annotations tolerations", problem);
  }
  checkProfileAnnotations(annotations, spec, [...parts(spec, "initContainers"), ...parts(spec, "containers")], problem);
}

/** Tolerations as JSON in an annotation, with keys in any case. */
function annotatedTolerations(json: string): Toleration[] | null {
  let value: Value;
  try {
    value = parseJson(json);
  } catch {
    return null;
  }
  if (value === null) return [];
  if (!isArray(value)) return null;
  const result: Toleration[] = [];
  for (const item of value) {
    const toleration = { key: "", operator: "", value: "", effect: "", seconds: false };
    if (item !== null && !isFields(item)) return null;
    for (const [name, held] of item?.fields ?? []) {
      const field = name.replaceAll("\u212a", "k").replaceAll("\u017f", "s").toLowerCase();
      if (field === "tolerationseconds") {
        if (held !== null && !(isNumber(held) && /^-?[0-9]{1,18}$/.test(held.number))) return null;
        toleration.seconds = held !== null;
      } else if (field === "key" || field === "operator" || field === "value" || field === "effect") {
        if (held === null) continue;
        if (typeof held !== "string") return null;
        toleration[field] = held;
      }
    }
    result.push(toleration);
  }
  return result;
}

function checkSpec(spec: Struct, node: string, problem: Problem): void {
  const restartPolicy = text(spec, "restartPolicy") || "Always";
  const given = isSet(spec, "terminationGracePeriodSeconds") ? integer(spec, "terminationGracePeriodSeconds") : 30;
  const context: PodContext = {
    spec,
    volumes: checkVolumes(spec, "spec.volumes", problem),
    restartPolicy,
    gracePeriod: given < 0 ? 1 : given,
  };
  checkContainers(context, "spec.containers", problem);
  checkInitContainers(context, "spec.initContainers", problem);
  if (parts(spec, "ephemeralContainers").length > 0) problem("spec.ephemeralContainers", "cannot be set in a manifest");
  if (parts(spec, "schedulingGates").length > 0) problem("spec.schedulingGates", "cannot be set for a static pod");
  checkPodResourcesUnlessWindows(spec, problem);
  choice(restartPolicy, ["Always", "OnFailure", "Never"], "spec.restartPolicy", problem);
  const dnsPolicy = text(spec, "dnsPolicy") || "ClusterFirst";
  choice(dnsPolicy, ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], "spec.dnsPolicy", problem);
  checkLabels(table(spec, "nodeSelector"), "spec.nodeSelector", problem);
  checkPodSecurity(spec, "spec.securityContext", problem);
  if (flag(spec, "shareProcessNamespace") && flag(spec, "hostPID")) {
    problem("spec.shareProcessNamespace", "cannot be on with hostPID");
  }
  checkAffinity(part(spec, "affinity"), "spec.affinity", problem);
  checkDns(part(spec, "dnsConfig"), dnsPolicy, "spec.dnsConfig", problem);
  for (const gate of parts(spec, "readinessGates")) {
    if (!isLabelKey(text(gate, "conditionType")))
      problem("spec.readinessGates", "holds a text that is no condition type");
  }
  checkSpreading(spec, "spec.topologySpreadConstraints", problem);
  const containers = [...parts(spec, "initContainers"), ...parts(spec, "containers")];
  checkHostProcess(spec, containers, problem);
  if (spec.hostUsers === false) {
    for (const field of ["hostNetwork", "hostPID", "hostIPC"]) {
      if (flag(spec, field)) problem(`spec.${field}`, "cannot be on with hostUsers false");
    }
  }
  checkNames(spec, node, problem);
  if (isSet(spec, "activeDeadlineSeconds")) {
    const deadline = integer(spec, "activeDeadlineSeconds");
    if (deadline < 1 || deadline > 0x7fff_ffff)
      problem("spec.activeDeadlineSeconds", "is not between 1 and 2147483647");
  }
  checkTolerations(tolerationsOf(spec), "spec.tolerations", problem);
  for (const [i, alias] of parts(spec, "hostAliases").entries()) {
    if (!isAddress(text(alias, "ip"))) problem(`spec.hostAliases[${i}].ip`, "is no IP address");
    if (!texts(alias, "hostnames").every(isDnsSubdomain)) {
      problem(`spec.hostAliases[${i}].hostnames`, "holds a text that is no DNS subdomain");
    }
  }
  if (isSet(spec, "preemptionPolicy")) {
    choice(text(spec, "preemptionPolicy"), ["PreemptLowerPriority", "Never"], "spec.preemptionPolicy", problem);
  }
  checkOverhead(spec, "spec.overhead", problem);
  checkOs(spec, containers, problem);
  const group = part(spec, "schedulingGroup");
  if (group !== null) {
    if (!isDnsSubdomain(text(group, "podGroupName")))
      problem("spec.schedulingGroup.podGroupName", "is no DNS subdomain");
    if (parts(spec, "evictionResponders").length > 0)
      problem("spec.schedulingGroup", "cannot be set with evictionResponders");
  }
}

function choice(value: string, values: readonly string[], path: string, problem: Problem): void {
  if (!values.includes(value)) problem(path, `is none of ${values.join(", ")}`);
}

function checkPodResourcesUnlessWindows(spec: Struct, problem: Problem): void {
  if (!isSet(spec, "resources")) return;
  if (text(part(spec, "os") ?? {}, "name") === "windows") problem("spec.resources", "cannot be set for a Windows pod");
  else checkPodResources(spec, "spec.resources", problem);
}

function checkDns(config: Struct | null, policy: string, path: string, problem: Problem): void {
  const servers = config === null ? [] : texts(config, "nameservers");
  if (policy === "None" && servers.length === 0) problem(`${path}.nameservers`, "is required with the DNS policy None");
  if (config === null) return;
  if (servers.length > 3) problem(`${path}.nameservers`, "holds more than 3");
  if (!servers.every(isAddress)) problem(`${path}.nameservers`, "holds a text that is no IP address");
  const searches = texts(config, "searches");
  if (searches.length > 32 || byteLength(searches.join(" ")) > 2048) problem(`${path}.searches`, "is too long");
  if (!searches.every((search) => search === "." || isSearchDomain(search.replace(/\.$/, "")))) {
    problem(`${path}.searches`, "holds a text that is no domain");
  }
  if (parts(config, "options").some((option) => text(option, "name") === ""))
    problem(`${path}.options`, "holds one without a name");
}

/** Checks the names of a spec: hosts, classes, and the node's, which the kubelet puts in. */
function checkNames(spec: Struct, node: string, problem: Problem): void {
  for (const field of ["hostname", "subdomain"]) {
    const name = text(spec, field);
    if (name !== "" && !isDnsLabel(name)) problem(`spec.${field}`, "is no DNS label");
  }
  const priority = text(spec, "priorityClassName");
  if (priority !== "" && !isDnsSubdomain(priority)) problem("spec.priorityClassName", "is no DNS subdomain");
  if (isSet(spec, "runtimeClassName") && !isDnsSubdomain(text(spec, "runtimeClassName"))) {
    problem("spec.runtimeClassName", "is no DNS subdomain");
  }
  if (node !== "" && !isDnsSubdomain(node)) problem("the node's name", "is no DNS subdomain");
  if (!isSet(spec, "hostnameOverride")) return;
  const override = text(spec, "hostnameOverride");
  if (override.length > 64 || !isDnsSubdomain(override))
    problem("spec.hostnameOverride", "is no DNS subdomain of at most 64");
  for (const field of ["setHostnameAsFQDN", "hostNetwork"]) {
    if (flag(spec, field)) problem("spec.hostnameOverride", `cannot be set with ${field}`);
  }
}

const linuxOnlyPod = [
  "appArmorProfile",
  "seLinuxOptions",
  "seccompProfile",
  "fsGroup",
  "fsGroupChangePolicy",
  "runAsUser",
  "runAsGroup",
  "supplementalGroups",
  "supplementalGroupsPolicy",
  "seLinuxChangePolicy",
];
const linuxOnlyContainer = [
  "appArmorProfile",
  "seLinuxOptions",
  "seccompProfile",
  "capabilities",
  "readOnlyRootFilesystem",
  "privileged",
  "allowPrivilegeEscalation",
  "procMount",
  "runAsUser",
  "runAsGroup",
];

function checkOs(spec: Struct, containers: readonly Struct[], problem: Problem): void {
  const os = part(spec, "os");
  if (os === null) return;
  const name = text(os, "name");
  const context = part(spec, "securityContext") ?? {};
  const contexts = containers.map((container) => part(container, "securityContext") ?? {});
  if (name === "linux") {
    if ([context, ...contexts].some((one) => isSet(one, "windowsOptions"))) {
      problem("windowsOptions", "cannot be set in a Linux pod");
    }
  } else if (name === "windows") {
    const inPod = linuxOnlyPod.find((field) => isSet(context, field));
    if (inPod !== undefined || parts(context, "sysctls").length > 0) {
      problem(`spec.securityContext.${inPod ?? "sysctls"}`, "cannot be set in a Windows pod");
    }
    for (const field of ["hostUsers", "shareProcessNamespace"]) {
      if (isSet(spec, field)) problem(`spec.${field}`, "cannot be set in a Windows pod");
    }
    for (const field of ["hostPID", "hostIPC"])
      if (flag(spec, field)) problem(`spec.${field}`, "cannot be set in a Windows pod");
    const inContainer = linuxOnlyContainer.find((field) => contexts.some((one) => isSet(one, field)));
    if (inContainer !== undefined) problem(`a container's ${inContainer}`, "cannot be set in a Windows pod");
  } else problem("spec.os.name", "is neither linux nor windows");
}
