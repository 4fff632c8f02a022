import type { Struct } from "./decode.ts";
import { flag, integer, integers, isSet, type Problem, part, parts, text, texts } from "./fields.ts";
import { checkContainerResources, checkResizePolicy } from "./resources.ts";
import { hasNoBacksteps, isDescending, isDnsLabel, isPadded, isPort, isPortName } from "./rules.ts";
import { checkContainerSecurity } from "./security.ts";
import { checkFieldRef, checkResourceRef } from "./volumes.ts";

/** Containers and init containers of a pod (validation.go, with the defaults of defaults.go worked in). */

/** What containers are checked against. */
export interface PodContext {
  readonly spec: Struct;
  readonly volumes: ReadonlyMap<string, Struct>;
  readonly restartPolicy: string;
  /** The pod's grace period in seconds, defaulted. */
  readonly gracePeriod: number;
}

/** Checks the regular containers. */
export function checkContainers(context: PodContext, path: string, problem: Problem): void {
  const containers = parts(context.spec, "containers");
  if (containers.length === 0) return problem(path, "is required");
  const names = new Set<string>();
  const ports = new Set<string>();
  for (const [i, container] of containers.entries()) {
    const here = `${path}[${i}]`;
    checkContainer(container, context, here, problem);
    if (names.has(text(container, "name"))) problem(`${here}.name`, "is given twice");
    names.add(text(container, "name"));
    checkRunning(container, context, here, problem);
    checkRestartRules(container, here, problem);
    checkHostPorts(container, context, ports, here, problem);
    if (!flag(context.spec, "hostNetwork")) continue;
    for (const [p, port] of parts(container, "ports").entries()) {
      const host = integer(port, "hostPort");
      if (host !== 0 && host !== integer(port, "containerPort")) {
        problem(`${here}.ports[${p}].hostPort`, "differs from containerPort, and hostNetwork is on");
      }
    }
  }
}

/** Checks the init containers. */
export function checkInitContainers(context: PodContext, path: string, problem: Problem): void {
  const names = new Set(parts(context.spec, "containers").map((container) => text(container, "name")));
  for (const [i, container] of parts(context.spec, "initContainers").entries()) {
    const here = `${path}[${i}]`;
    const name = text(container, "name");
    const sidecar = text(container, "restartPolicy") === "Always";
    checkContainer(container, context, here, problem);
    checkRestartRules(container, here, problem);
    if (names.has(name)) problem(`${here}.name`, "is given twice");
    if (name !== "") names.add(name);
    checkHostPorts(container, context, new Set(), here, problem);
    if (sidecar) checkRunning(container, context, here, problem);
    else {
      for (const field of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"]) {
        if (isSet(container, field)) problem(`${here}.${field}`, "cannot be set for an init container that ends");
      }
      if (parts(container, "resizePolicy").some((policy) => text(policy, "restartPolicy") === "RestartContainer")) {
        problem(`${here}.resizePolicy`, "cannot restart an init container that ends");
      }
    }
  }
}

/** What holds for both. */
function checkContainer(container: Struct, context: PodContext, path: string, problem: Problem): void {
  const name = text(container, "name");
  if (!isDnsLabel(name)) problem(`${path}.name`, name === "" ? "is required" : "is no DNS label");
  const image = text(container, "image");
  if (image === "") problem(`${path}.image`, "is required");
  else if (isPadded(image)) problem(`${path}.image`, "has white space around it");
  if (!["", "File", "FallbackToLogsOnError"].includes(text(container, "terminationMessagePolicy"))) {
    problem(`${path}.terminationMessagePolicy`, "is neither File nor FallbackToLogsOnError");
  }
  checkPorts(container, `${path}.ports`, problem);
  checkEnv(container, context.spec, `${path}.env`, problem);
  checkMounts(container, context.volumes, `${path}.volumeMounts`, problem);
  if (parts(container, "volumeDevices").length > 0) {
    problem(`${path}.volumeDevices`, "needs a persistent volume claim, which a static pod cannot have");
  }
  if (!["", "Always", "IfNotPresent", "Never"].includes(text(container, "imagePullPolicy"))) {
    problem(`${path}.imagePullPolicy`, "is none of Always, IfNotPresent, Never");
  }
  checkContainerResources(part(container, "resources") ?? {}, `${path}.resources`, problem);
  checkResizePolicy(container, context.restartPolicy, path, problem);
  const hostUsers = context.spec.hostUsers !== false;
  checkContainerSecurity(part(container, "securityContext"), hostUsers, `${path}.securityContext`, problem);
}

function checkPorts(container: Struct, path: string, problem: Problem): void {
  const names = new Set<string>();
  for (const [i, port] of parts(container, "ports").entries()) {
    const here = `${path}[${i}]`;
    const name = text(port, "name");
    if (name !== "") {
      if (!isPortName(name)) problem(`${here}.name`, "is no port name");
      else if (names.has(name)) problem(`${here}.name`, "is given twice");
      names.add(name);
    }
    const number = integer(port, "containerPort");
    if (!isPort(number)) problem(`${here}.containerPort`, number === 0 ? "is required" : "is no port");
    const host = integer(port, "hostPort");
    if (host !== 0 && !isPort(host)) problem(`${here}.hostPort`, "is no port");
    if (!["", "TCP", "UDP", "SCTP"].includes(text(port, "protocol")))
      problem(`${here}.protocol`, "is none of TCP, UDP, SCTP");
  }
}

/** Checks that no host port is taken twice; with hostNetwork a port without one takes its own number. */
function checkHostPorts(
  container: Struct,
  context: PodContext,
  taken: Set<string>,
  path: string,
  problem: Problem,
): void {
  for (const [i, port] of parts(container, "ports").entries()) {
    const own = flag(context.spec, "hostNetwork") ? integer(port, "containerPort") : 0;
    const number = integer(port, "hostPort") || own;
    if (number === 0) continue;
    const key = `${text(port, "protocol") || "TCP"}/${text(port, "hostIP")}/${number}`;
    if (taken.has(key)) problem(`${path}.ports[${i}].hostPort`, "is taken twice");
    taken.add(key);
  }
}

const envFields = new Set([
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
]);

function isEnvName(name: string): boolean {
  return /^[\x20-\x3c\x3e-\x7e]+$/.test(name);
}

function checkEnv(container: Struct, spec: Struct, path: string, problem: Problem): void {
  for (const [i, variable] of parts(container, "env").entries()) {
    const here = `${path}[${i}]`;
    if (!isEnvName(text(variable, "name"))) problem(`${here}.name`, "is no name for a variable");
    const from = part(variable, "valueFrom");
    if (from === null) continue;
    const sources = Object.keys(from);
    if (sources.length !== 1) problem(`${here}.valueFrom`, "needs exactly one source");
    else if (text(variable, "value") !== "") problem(`${here}.valueFrom`, "is given beside a value");
    const field = part(from, "fieldRef");
    if (field !== null) checkFieldRef(field, envFields, `${here}.valueFrom.fieldRef`, problem);
    const resource = part(from, "resourceFieldRef");
    if (resource !== null) checkResourceRef(resource, false, `${here}.valueFrom.resourceFieldRef`, problem);
    const file = part(from, "fileKeyRef");
    if (file !== null) checkFileKey(file, spec, `${here}.valueFrom.fileKeyRef`, problem);
  }
}

function checkFileKey(file: Struct, spec: Struct, path: string, problem: Problem): void {
  if (!isEnvName(text(file, "key"))) problem(`${path}.key`, "is no name for a variable");
  const name = text(file, "volumeName");
  if (!isDnsLabel(name)) problem(`${path}.volumeName`, "is no DNS label");
  const target = text(file, "path");
  if (target === "" || !hasNoBacksteps(target)) problem(`${path}.path`, "is missing or has a .. in it");
  // The last volume of a name counts, sound or not; one without a type is an emptyDir.
  const volume = parts(spec, "volumes").findLast((one) => text(one, "name") === name);
  if (volume === undefined) problem(`${path}.volumeName`, "names no volume");
  else if (!isSet(volume, "emptyDir") && Object.keys(volume).some((field) => field !== "name")) {
    problem(`${path}.volumeName`, "names a volume that is no emptyDir");
  }
}

const mountOptions = ["noexec", "nodev", "nosuid"];

function checkMounts(container: Struct, volumes: ReadonlyMap<string, Struct>, path: string, problem: Problem): void {
  const targets = new Set<string>();
  const privileged = flag(part(container, "securityContext") ?? {}, "privileged");
  for (const [i, mount] of parts(container, "volumeMounts").entries()) {
    const here = `${path}[${i}]`;
    const volume = volumes.get(text(mount, "name"));
    if (volume === undefined) problem(`${here}.name`, "names no volume of the pod");
    const target = text(mount, "mountPath");
    if (target === "") problem(`${here}.mountPath`, "is required");
    if (targets.has(target)) problem(`${here}.mountPath`, "is given twice");
    targets.add(target);
    for (const field of ["subPath", "subPathExpr"]) {
      if (!isDescending(text(mount, field))) problem(`${here}.${field}`, "is no relative path");
    }
    if (text(mount, "subPath") !== "" && text(mount, "subPathExpr") !== "") {
      problem(`${here}.subPathExpr`, "is given beside subPath");
    }
    const propagation = isSet(mount, "mountPropagation") ? text(mount, "mountPropagation") : null;
    if (propagation !== null && !["Bidirectional", "HostToContainer", "None"].includes(propagation)) {
      problem(`${here}.mountPropagation`, "is none of Bidirectional, HostToContainer, None");
    } else if (propagation === "Bidirectional" && !privileged) {
      problem(`${here}.mountPropagation`, "can be Bidirectional in privileged containers only");
    }
    if (isSet(mount, "recursiveReadOnly")) {
      const recursive = text(mount, "recursiveReadOnly");
      if (recursive === "Enabled" || recursive === "IfPossible") {
        if (!flag(mount, "readOnly")) problem(`${here}.recursiveReadOnly`, "needs readOnly");
        if (propagation !== null && propagation !== "None")
          problem(`${here}.recursiveReadOnly`, "needs no mountPropagation");
      } else if (recursive !== "Disabled") {
        problem(`${here}.recursiveReadOnly`, "is none of Disabled, IfPossible, Enabled");
      }
    }
    const options = texts(mount, "bindMountOptions");
    if (options.some((option) => !mountOptions.includes(option)) || new Set(options).size !== options.length) {
      problem(`${here}.bindMountOptions`, "holds an option that is unknown or given twice");
    } else if (options.length > 0 && volume !== undefined && isSet(volume, "image")) {
      problem(`${here}.bindMountOptions`, "cannot be used with an image volume");
    }
  }
}

/** Checks what only a container that keeps running has: probes and hooks. */
function checkRunning(container: Struct, context: PodContext, path: string, problem: Problem): void {
  const lifecycle = part(container, "lifecycle");
  if (lifecycle !== null) {
    for (const hook of ["postStart", "preStop"]) {
      const handler = part(lifecycle, hook);
      if (handler === null) continue;
      checkHandler(
        handler,
        ["exec", "httpGet", "tcpSocket", "sleep"],
        context.gracePeriod,
        `${path}.lifecycle.${hook}`,
        problem,
      );
    }
    if (isSet(lifecycle, "stopSignal")) {
      const os = part(context.spec, "os");
      const signal = text(lifecycle, "stopSignal");
      if (os === null) problem(`${path}.lifecycle.stopSignal`, "needs spec.os.name");
      else if (!(text(os, "name") === "windows" ? windowsSignals : linuxSignals).has(signal)) {
        if (["windows", "linux"].includes(text(os, "name"))) problem(`${path}.lifecycle.stopSignal`, "is no signal");
      }
    }
  }
  for (const kind of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    const probe = part(container, kind);
    if (probe === null) continue;
    const here = `${path}.${kind}`;
    checkHandler(probe, ["exec", "httpGet", "tcpSocket", "grpc"], context.gracePeriod, here, problem);
    for (const field of [
      "initialDelaySeconds",
      "timeoutSeconds",
      "periodSeconds",
      "successThreshold",
      "failureThreshold",
    ]) {
      if (integer(probe, field) < 0) problem(`${here}.${field}`, "is negative");
    }
    const grace = isSet(probe, "terminationGracePeriodSeconds")
      ? integer(probe, "terminationGracePeriodSeconds")
      : null;
    if (grace !== null && grace <= 0) problem(`${here}.terminationGracePeriodSeconds`, "has to be over 0");
    if (kind === "readinessProbe") {
      if (grace !== null) problem(`${here}.terminationGracePeriodSeconds`, "cannot be set for a readiness probe");
    } else if (![0, 1].includes(integer(probe, "successThreshold"))) problem(`${here}.successThreshold`, "has to be 1");
  }
}

function checkHandler(
  handler: Struct,
  types: readonly string[],
  gracePeriod: number,
  path: string,
  problem: Problem,
): void {
  const given = types.filter((type) => isSet(handler, type));
  if (given.length !== 1) problem(path, given.length === 0 ? "has no handler" : "has more than one handler");
  const exec = part(handler, "exec");
  if (exec !== null && texts(exec, "command").length === 0) problem(`${path}.exec.command`, "is required");
  const http = part(handler, "httpGet");
  if (http !== null) {
    const here = `${path}.httpGet`;
    checkPortOrName(http, `${here}.port`, problem);
    const scheme = text(http, "scheme") || "HTTP";
    if (scheme !== "HTTP" && scheme !== "HTTPS") problem(`${here}.scheme`, "is neither HTTP nor HTTPS");
    if (!parts(http, "httpHeaders").every((header) => /^[-A-Za-z0-9]+$/.test(text(header, "name")))) {
      problem(`${here}.httpHeaders`, "holds a name that is no header's");
    }
    if (isSet(http, "protocol")) {
      const protocol = text(http, "protocol");
      if (protocol !== "HTTP1" && protocol !== "HTTP2") problem(`${here}.protocol`, "is neither HTTP1 nor HTTP2");
      else if (protocol === "HTTP2" && (scheme !== "HTTP" || text(http, "host") !== "")) {
        problem(`${here}.protocol`, "can be HTTP2 only with the scheme HTTP and no host");
      }
    }
  }
  const tcp = part(handler, "tcpSocket");
  if (tcp !== null) checkPortOrName(tcp, `${path}.tcpSocket.port`, problem);
  const grpc = types.includes("grpc") ? part(handler, "grpc") : null;
  if (grpc !== null) {
    if (!isPort(integer(grpc, "port"))) problem(`${path}.grpc.port`, "is no port");
    if (isSet(grpc, "mode") && !["Plaintext", "TLS"].includes(text(grpc, "mode")))
      problem(`${path}.grpc.mode`, "is no mode");
  }
  const sleep = types.includes("sleep") ? part(handler, "sleep") : null;
  if (sleep !== null && (integer(sleep, "seconds") < 0 || integer(sleep, "seconds") > gracePeriod)) {
    problem(`${path}.sleep.seconds`, "is negative or over the grace period");
  }
}

function checkPortOrName(action: Struct, path: string, problem: Problem): void {
  const port = action.port;
  if (typeof port === "string" ? !isPortName(port) : !isPort(integer(action, "port"))) {
    problem(path, "is neither a port nor a port name");
  }
}

/** Checks a container's own restart policy and its rules. */
function checkRestartRules(container: Struct, path: string, problem: Problem): void {
  const rules = parts(container, "restartPolicyRules");
  if (isSet(container, "restartPolicy")) {
    if (!["Always", "Never", "OnFailure"].includes(text(container, "restartPolicy"))) {
      problem(`${path}.restartPolicy`, "is none of Always, Never, OnFailure");
    }
  } else if (rules.length > 0) problem(`${path}.restartPolicy`, "is required beside restartPolicyRules");
  if (rules.length > 20) problem(`${path}.restartPolicyRules`, "holds more than 20 rules");
  for (const [i, rule] of rules.entries()) {
    const here = `${path}.restartPolicyRules[${i}]`;
    if (!["Restart", "RestartAllContainers"].includes(text(rule, "action"))) problem(`${here}.action`, "is no action");
    const codes = part(rule, "exitCodes");
    if (codes === null) problem(`${here}.exitCodes`, "is required");
    else {
      if (!["In", "NotIn"].includes(text(codes, "operator")))
        problem(`${here}.exitCodes.operator`, "is neither In nor NotIn");
      if (integers(codes, "values").length > 255) problem(`${here}.exitCodes.values`, "holds more than 255 values");
    }
  }
}

const windowsSignals = new Set(["SIGKILL", "SIGTERM"]);
const linuxSignals = new Set([
  ..."ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX"
    .split(" ")
    .map((name) => `SIG${name}`),
  ...Array.from({ length: 15 }, (_, i) => `SIGRTMIN+${i + 1}`),
  ...Array.from({ length: 14 }, (_, i) => `SIGRTMAX-${i + 1}`),
]);
