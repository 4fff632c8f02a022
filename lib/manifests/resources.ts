import type { Struct } from "./decode.ts";
import { isSet, type Problem, part, parts, quantities, text } from "./fields.ts";
import { isWhole, parseQuantity, type Quantity, roundToMilli, wholeValue } from "./quantity.ts";
import { isLabelKey } from "./rules.ts";

/** What containers and pods may request and limit (validation.go, validateResourceRequirements and around). */

type List = ReadonlyMap<string, Quantity>;

const containerResources = new Set(["cpu", "memory", "ephemeral-storage"]);
const objectCounts = new Set([
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
]);
const hugePages = "hugepages-";

function isNative(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith("requests.") && isLabelKey(`requests.${name}`);
}

function isContainerResource(name: string): boolean {
  if (!isLabelKey(name)) return false;
  if (!name.includes("/")) return containerResources.has(name) || name.startsWith(hugePages);
  return isNative(name) || isExtended(name);
}

function isPodResource(name: string): boolean {
  if (!isLabelKey(name)) return false;
  return name === "cpu" || name === "memory" || (name.startsWith(hugePages) && !name.includes("/"));
}

/** A resource list as defaulting leaves it. */
function rounded(list: List): Map<string, Quantity> {
  const result = new Map<string, Quantity>();
  for (const [name, amount] of list) result.set(name, roundToMilli(amount));
  return result;
}

/** A container's requests: what is limited and not requested is requested as limited. */
function requestsOf(resources: Struct): Map<string, Quantity> {
  return new Map([...rounded(quantities(resources, "limits")), ...rounded(quantities(resources, "requests"))]);
}

/** Checks a container's resources; `defaulted` where limits stand for missing requests. */
export function checkContainerResources(resources: Struct, path: string, problem: Problem): void {
  check(rounded(quantities(resources, "limits")), requestsOf(resources), isContainerResource, path, problem);
  if (parts(resources, "claims").length > 0) problem(`${path}.claims`, "names claims, which a static pod cannot have");
}

/** Checks a pod's overhead. */
export function checkOverhead(spec: Struct, path: string, problem: Problem): void {
  check(rounded(quantities(spec, "overhead")), new Map(), isContainerResource, path, problem);
}

function check(limits: List, requests: List, isName: (name: string) => boolean, path: string, problem: Problem): void {
  if (limits.size === 0 && requests.size === 0) return;
  for (const [which, list] of [["limits", limits] as const, ["requests", requests] as const]) {
    for (const [name, amount] of list) {
      const here = `${path}.${which}[${shown(name)}]`;
      if (!isName(name)) problem(here, "is not a resource this can have");
      if (amount.nano < 0n) problem(here, "is negative");
      if ((objectCounts.has(name) || isExtended(name)) && !isWhole(amount)) problem(here, "has to be a whole number");
      if (name.startsWith(hugePages) && !isDivisible(name, amount)) problem(here, "is not a multiple of its page size");
    }
  }
  for (const [name, amount] of requests) {
    const limit = limits.get(name);
    const shared = isNative(name) && !name.startsWith(hugePages);
    if (limit === undefined) {
      if (!shared) problem(`${path}.limits[${shown(name)}]`, "is required beside the request");
    } else if (shared ? amount.nano > limit.nano : amount.nano !== limit.nano) {
      problem(`${path}.requests[${shown(name)}]`, shared ? "is over its limit" : "is not equal to its limit");
    }
  }
  const names = [...limits.keys(), ...requests.keys()];
  if (names.some((name) => name.startsWith(hugePages)) && !names.some((name) => name === "cpu" || name === "memory")) {
    problem(path, "has huge pages without cpu or memory");
  }
}

function isDivisible(name: string, amount: Quantity): boolean {
  const page = parseQuantity(name.slice(hugePages.length));
  if (page === null || page.nano <= 0n || !isWhole(roundToMilli(page))) return false;
  const size = wholeValue(page);
  return wholeValue(amount) % size === 0n;
}

/** A resource's name for a path, cut where it is no name anyway. */
function shown(name: string): string {
  return /^[A-Za-z0-9./_-]{1,80}$/.test(name) ? name : "…";
}

/** Checks `spec.resources`: its own rules, and that it covers the containers' resources. */
export function checkPodResources(spec: Struct, path: string, problem: Problem): void {
  const resources = part(spec, "resources");
  if (resources === null) return;
  if (isSet(resources, "claims")) problem(`${path}.claims`, "cannot be set for a pod");
  const limits = rounded(quantities(resources, "limits"));
  const requests = rounded(quantities(resources, "requests"));
  check(limits, requests, isPodResource, path, problem);
  for (const [name, amount] of aggregate(spec, requestsOf)) {
    const own = requests.get(name);
    if (own !== undefined && amount > own.nano)
      problem(`${path}.requests[${shown(name)}]`, "is less than the containers request");
  }
  const limitsOf = (list: Struct): Map<string, Quantity> => rounded(quantities(list, "limits"));
  for (const [name, amount] of aggregate(spec, limitsOf)) {
    const own = limits.get(name);
    if (name.startsWith(hugePages) && own !== undefined && amount > own.nano) {
      problem(`${path}.limits[${shown(name)}]`, "is less than the containers' limits");
    }
  }
  for (const container of parts(spec, "containers")) {
    for (const [name, amount] of limitsOf(part(container, "resources") ?? {})) {
      const own = limits.get(name);
      if (own !== undefined && amount.nano > own.nano)
        problem(`${path}.limits[${shown(name)}]`, "is less than a container's limit");
    }
  }
}

/** What all containers need at most at one time, in nanos. */
function aggregate(spec: Struct, of: (resources: Struct) => List): Map<string, bigint> {
  const total = new Map<string, bigint>();
  const add = (into: Map<string, bigint>, list: Iterable<readonly [string, bigint]>): void => {
    for (const [name, amount] of list) into.set(name, (into.get(name) ?? 0n) + amount);
  };
  const amounts = (container: Struct): [string, bigint][] =>
    [...of(part(container, "resources") ?? {})].map(([name, { nano }]) => [name, nano]);
  for (const container of parts(spec, "containers")) add(total, amounts(container));
  const sidecars = new Map<string, bigint>();
  const starting = new Map<string, bigint>();
  const keepMost = (into: Map<string, bigint>, list: Iterable<readonly [string, bigint]>): void => {
    for (const [name, amount] of list) if (amount > (into.get(name) ?? amount - 1n)) into.set(name, amount);
  };
  for (const container of parts(spec, "initContainers")) {
    if (text(container, "restartPolicy") === "Always") {
      add(total, amounts(container));
      add(sidecars, amounts(container));
      keepMost(starting, sidecars);
    } else {
      const combined = new Map(amounts(container));
      add(combined, sidecars);
      keepMost(starting, combined);
    }
  }
  keepMost(total, starting);
  return total;
}

/** Checks how a container is resized. */
export function checkResizePolicy(container: Struct, restartPolicy: string, path: string, problem: Problem): void {
  const seen = new Set<string>();
  for (const [i, policy] of parts(container, "resizePolicy").entries()) {
    const name = text(policy, "resourceName");
    const restart = text(policy, "restartPolicy");
    const here = `${path}.resizePolicy[${i}]`;
    if (seen.has(name)) problem(here, "names a resource twice");
    seen.add(name);
    if (name !== "cpu" && name !== "memory") problem(`${here}.resourceName`, "is neither cpu nor memory");
    if (restart !== "NotRequired" && restart !== "RestartContainer") {
      problem(`${here}.restartPolicy`, "is neither NotRequired nor RestartContainer");
    } else if (restartPolicy === "Never" && restart !== "NotRequired") {
      problem(`${here}.restartPolicy`, "has to be NotRequired in a pod that never restarts");
    }
  }
}
