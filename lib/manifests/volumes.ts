import type { Struct } from "./decode.ts";
import { flag, integer, isSet, type Problem, part, parts, quantity, table, text, texts } from "./fields.ts";
import { isPrintedAs } from "./quantity.ts";
import { hasNoBacksteps, isDescending, isDnsLabel, isFreeDescending, isLabelKey, isUserId } from "./rules.ts";

/** Volumes of a pod (validation.go). What a static pod may not have at all is in references.ts. */

const hostPathTypes = new Set([
  "",
  "DirectoryOrCreate",
  "Directory",
  "FileOrCreate",
  "File",
  "Socket",
  "CharDevice",
  "BlockDevice",
]);

type Check = (source: Struct, path: string, problem: Problem) => void;

const required =
  (...fields: string[]): Check =>
  (source, path, problem) => {
    for (const field of fields) if (text(source, field) === "") problem(`${path}.${field}`, "is required");
  };

const partition = (name: string): Check => {
  const named = required(name);
  return (source, path, problem) => {
    named(source, path, problem);
    const number = integer(source, "partition");
    if (number < 0 || number > 255) problem(`${path}.partition`, "is not between 0 and 255");
  };
};

const monitors = (...fields: string[]): Check => {
  const named = required(...fields);
  return (source, path, problem) => {
    if (texts(source, "monitors").length === 0) problem(`${path}.monitors`, "is required");
    named(source, path, problem);
  };
};

const namedSecret: Check = (source, path, problem) => {
  const secret = part(source, "secretRef");
  if (secret !== null && text(secret, "name") === "") problem(`${path}.secretRef.name`, "is required");
};

/** The volume types that need no API object, each with its rules. */
const checks: Readonly<Record<string, Check>> = {
  emptyDir(source, path, problem) {
    const limit = quantity(source, "sizeLimit");
    if (limit !== null && limit.nano < 0n) problem(`${path}.sizeLimit`, "is negative");
    if (isSet(source, "mode") && !isMode(integer(source, "mode"), 0o1777)) problem(`${path}.mode`, "is no file mode");
  },
  hostPath(source, path, problem) {
    const value = text(source, "path");
    if (value === "") return problem(`${path}.path`, "is required");
    if (!hasNoBacksteps(value)) problem(`${path}.path`, "has a .. in it");
    if (!hostPathTypes.has(text(source, "type"))) problem(`${path}.type`, "is no host path type");
  },
  gitRepo(source, path, problem) {
    if (text(source, "repository") === "") problem(`${path}.repository`, "is required");
    if (!isDescending(text(source, "directory"))) problem(`${path}.directory`, "is no relative path");
  },
  gcePersistentDisk: partition("pdName"),
  awsElasticBlockStore: partition("volumeID"),
  nfs(source, path, problem) {
    if (text(source, "server") === "") problem(`${path}.server`, "is required");
    if (!text(source, "path").startsWith("/")) problem(`${path}.path`, "is no absolute path");
  },
  iscsi(source, path, problem) {
    if (text(source, "targetPortal") === "") problem(`${path}.targetPortal`, "is required");
    if (!isInitiator(text(source, "iqn"))) problem(`${path}.iqn`, "is no iqn, eui or naa name");
    const lun = integer(source, "lun");
    if (lun < 0 || lun > 255) problem(`${path}.lun`, "is not between 0 and 255");
    if ((flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession")) && !isSet(source, "secretRef")) {
      problem(`${path}.secretRef`, "is required");
    }
    if (isSet(source, "initiatorName") && !isInitiator(text(source, "initiatorName"))) {
      problem(`${path}.initiatorName`, "is no iqn, eui or naa name");
    }
  },
  flocker(source, path, problem) {
    const name = text(source, "datasetName");
    if ((name === "") === (text(source, "datasetUUID") === ""))
      problem(path, "needs one of datasetName and datasetUUID");
    if (name.includes("/")) problem(`${path}.datasetName`, "has a / in it");
  },
  rbd: monitors("image"),
  cephfs: monitors(),
  cinder(source, path, problem) {
    if (text(source, "volumeID") === "") problem(`${path}.volumeID`, "is required");
    namedSecret(source, path, problem);
  },
  quobyte(source, path, problem) {
    const registry = text(source, "registry");
    if (registry === "") problem(`${path}.registry`, "is required");
    else if (Buffer.byteLength(text(source, "tenant")) >= 65) problem(`${path}.tenant`, "is too long");
    else if (!registry.split(",").every(isHostPort)) problem(`${path}.registry`, "is not host:port pairs");
    if (text(source, "volume") === "") problem(`${path}.volume`, "is required");
  },
  downwardAPI(source, path, problem) {
    checkModeAndUser(source, path, problem);
    for (const file of parts(source, "items")) checkDownwardFile(file, `${path}.items`, problem);
  },
  fc(source, path, problem) {
    const names = texts(source, "targetWWNs").length;
    const ids = texts(source, "wwids").length;
    if ((names === 0) === (ids === 0)) problem(path, "needs either targetWWNs or wwids");
    if (names === 0) return;
    const lun = isSet(source, "lun") ? integer(source, "lun") : -1;
    if (lun < 0 || lun > 255) problem(`${path}.lun`, "is required, between 0 and 255");
  },
  flexVolume(source, path, problem) {
    if (text(source, "driver") === "") problem(`${path}.driver`, "is required");
    for (const key of table(source, "options").keys()) {
      const namespace = `.${(key.includes("/") ? (key.split("/")[0] ?? "") : key).toLowerCase()}`;
      if (namespace.endsWith(".kubernetes.io") || namespace.endsWith(".k8s.io")) {
        problem(`${path}.options`, "uses a namespace that Kubernetes keeps");
      }
    }
  },
  vsphereVolume: required("volumePath"),
  photonPersistentDisk: required("pdID"),
  portworxVolume: required("volumeID"),
  scaleIO: required("gateway", "system", "volumeName"),
  azureDisk(source, path, problem) {
    required("diskName", "diskURI")(source, path, problem);
    const caching = isSet(source, "cachingMode") ? text(source, "cachingMode") : "ReadWrite";
    if (!["None", "ReadOnly", "ReadWrite"].includes(caching)) problem(`${path}.cachingMode`, "is no caching mode");
    const kind = isSet(source, "kind") ? text(source, "kind") : "Shared";
    if (!["Shared", "Dedicated", "Managed"].includes(kind)) problem(`${path}.kind`, "is no kind of disk");
    if (!text(source, "diskURI").startsWith(kind === "Managed" ? "/subscriptions/" : "https://")) {
      problem(`${path}.diskURI`, "does not fit the kind of disk");
    }
  },
  storageos(source, path, problem) {
    if (!isDnsLabel(text(source, "volumeName"))) problem(`${path}.volumeName`, "is no DNS label");
    const namespace = text(source, "volumeNamespace");
    if (namespace !== "" && !isDnsLabel(namespace)) problem(`${path}.volumeNamespace`, "is no DNS label");
    namedSecret(source, path, problem);
  },
  projected(source, path, problem) {
    checkModeAndUser(source, path, problem);
    const taken = new Set<string>();
    for (const [i, projection] of parts(source, "sources").entries()) {
      const here = `${path}.sources[${i}]`;
      if (Object.keys(projection).length > 1) problem(here, "has more than one type");
      for (const file of parts(part(projection, "downwardAPI") ?? {}, "items")) {
        checkDownwardFile(file, `${here}.downwardAPI`, problem);
        const target = text(file, "path");
        if (target !== "" && taken.has(target)) problem(`${path}.sources`, "gives one path twice");
        taken.add(target);
      }
    }
  },
  image(source, path, problem) {
    if (text(source, "reference") === "") problem(`${path}.reference`, "is required");
    if (!["", "Always", "IfNotPresent", "Never"].includes(text(source, "pullPolicy"))) {
      problem(`${path}.pullPolicy`, "is no pull policy");
    }
  },
};

/** Checks a pod's volumes; returns the sound ones by name, for the mounts that name them. */
export function checkVolumes(spec: Struct, path: string, problem: Problem): ReadonlyMap<string, Struct> {
  const sound = new Map<string, Struct>();
  for (const [i, volume] of parts(spec, "volumes").entries()) {
    const here = `${path}[${i}]`;
    let problems = 0;
    const count: Problem = (field, what) => {
      problems++;
      problem(field, what);
    };
    const types = Object.keys(volume).filter((field) => field !== "name");
    if (types.length > 1) count(here, "has more than one volume type");
    for (const type of types) {
      const source = part(volume, type);
      if (source !== null) checks[type]?.(source, `${here}.${type}`, count);
    }
    const name = text(volume, "name");
    const iscsi = part(volume, "iscsi");
    if (iscsi !== null && isSet(iscsi, "initiatorName")) {
      if (Buffer.byteLength(`${name}:${text(iscsi, "targetPortal")}`) > 64)
        count(`${here}.name`, "is too long with its portal");
    }
    if (!isDnsLabel(name)) count(`${here}.name`, name === "" ? "is required" : "is no DNS label");
    if (sound.has(name)) count(`${here}.name`, "is given twice");
    if (problems === 0) sound.set(name, volume);
  }
  return sound;
}

function isMode(mode: number, most: number): boolean {
  return mode >= 0 && mode <= most;
}

function checkModeAndUser(source: Struct, path: string, problem: Problem): void {
  if (isSet(source, "defaultMode") && !isMode(integer(source, "defaultMode"), 0o777)) {
    problem(`${path}.defaultMode`, "is no file mode");
  }
  if (isSet(source, "defaultUser") && !isUserId(integer(source, "defaultUser"))) {
    problem(`${path}.defaultUser`, "is no user id");
  }
}

const volumeFields = new Set([
  "metadata.name",
  "metadata.namespace",
  "metadata.labels",
  "metadata.annotations",
  "metadata.uid",
]);

function checkDownwardFile(file: Struct, path: string, problem: Problem): void {
  const target = text(file, "path");
  if (target === "" || !isFreeDescending(target)) problem(`${path}.path`, "is no relative path");
  const field = part(file, "fieldRef");
  const resource = part(file, "resourceFieldRef");
  if ((field === null) === (resource === null)) problem(path, "needs one of fieldRef and resourceFieldRef");
  if (field !== null) checkFieldRef(field, volumeFields, `${path}.fieldRef`, problem);
  else if (resource !== null) checkResourceRef(resource, true, `${path}.resourceFieldRef`, problem);
  if (isSet(file, "mode") && !isMode(integer(file, "mode"), 0o777)) problem(`${path}.mode`, "is no file mode");
  if (isSet(file, "user") && !isUserId(integer(file, "user"))) problem(`${path}.user`, "is no user id");
}

const knownFields = new Set([
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.serviceAccountName",
  "spec.schedulerName",
  "status.phase",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
]);

/** Checks a reference to one of the pod's fields; `allowed` are the fields that can be had whole. */
export function checkFieldRef(ref: Struct, allowed: ReadonlySet<string>, path: string, problem: Problem): void {
  const version = text(ref, "apiVersion");
  if (version !== "" && version !== "v1") return problem(`${path}.apiVersion`, "is not v1");
  const field = text(ref, "fieldPath");
  const [, map, key] = /^(.+?)\['(.*)'\]$/s.exec(field) ?? [];
  if (map !== undefined && key !== undefined) {
    const fits =
      map === "metadata.annotations" ? isLabelKey(key.toLowerCase()) : map === "metadata.labels" && isLabelKey(key);
    if (!fits) problem(`${path}.fieldPath`, "is no label or annotation");
    return;
  }
  const meant = field === "spec.host" ? "spec.nodeName" : field;
  if (!knownFields.has(meant) || !allowed.has(meant)) problem(`${path}.fieldPath`, "is no field that can be had here");
}

const resources = new Set(["cpu", "memory", "ephemeral-storage"]);
const sizes = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/** Checks a reference to a container's resource. */
export function checkResourceRef(ref: Struct, inVolume: boolean, path: string, problem: Problem): void {
  const [, name = ""] = /^(?:limits|requests)\.(.*)$/s.exec(text(ref, "resource")) ?? [];
  if (inVolume && text(ref, "containerName") === "") problem(`${path}.containerName`, "is required");
  else if (!resources.has(name) && !name.startsWith("hugepages-"))
    problem(`${path}.resource`, "is no resource that can be had here");
  const divisor = quantity(ref, "divisor");
  if (divisor === null || divisor.nano === 0n || (!resources.has(name) && !name.startsWith("hugepages-"))) return;
  if (!isPrintedAs(divisor, name === "cpu" ? ["1m", "1"] : sizes))
    problem(`${path}.divisor`, "is no divisor for this resource");
}

function isInitiator(name: string): boolean {
  if (name.startsWith("iqn")) return /iqn\.[0-9]{4}-[0-9]{2}\.([0-9A-Za-z\-.]+)(:[^,;*&$|\t\n\f\r ]+)$/.test(name);
  return /^eui.[0-9A-Za-z]{16}$/u.test(name) || /^naa.[0-9A-Za-z]{32}$/u.test(name);
}

/** What Go's net.SplitHostPort takes. */
function isHostPort(pair: string): boolean {
  if (pair.startsWith("[")) {
    const end = pair.indexOf("]");
    if (end < 0 || pair[end + 1] !== ":" || end + 1 !== pair.lastIndexOf(":")) return false;
    return !pair.slice(1).includes("[") && !pair.slice(end + 1).includes("]");
  }
  return pair.split(":").length === 2 && !/[[\]]/.test(pair);
}
