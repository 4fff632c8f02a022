import type { Struct } from "./decode.ts";
import { integer, isSet, type Problem, part, parts, table, text, texts } from "./fields.ts";
import { isDnsLabel, isDnsSubdomain, isLabelKey, isLabelValue } from "./rules.ts";

/** Affinity, spreading and tolerations (validation.go). A static pod is not scheduled, but the rules hold. */

/** Checks labels, of the pod or of what it selects. */
export function checkLabels(labels: ReadonlyMap<string, string>, path: string, problem: Problem): void {
  for (const [key, value] of labels) {
    if (!isLabelKey(key)) problem(path, "holds a key that is no label key");
    if (!isLabelValue(value)) problem(path, "holds a value that is no label value");
  }
}

/** Checks `spec.affinity`. */
export function checkAffinity(affinity: Struct | null, path: string, problem: Problem): void {
  if (affinity === null) return;
  const required = "requiredDuringSchedulingIgnoredDuringExecution";
  const preferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const node = part(affinity, "nodeAffinity");
  if (node !== null) {
    const selector = part(node, required);
    if (selector !== null) {
      const terms = parts(selector, "nodeSelectorTerms");
      const here = `${path}.nodeAffinity.${required}.nodeSelectorTerms`;
      if (terms.length === 0) problem(here, "is required");
      for (const [i, term] of terms.entries()) checkNodeTerm(term, true, `${here}[${i}]`, problem);
    }
    for (const [i, term] of parts(node, preferred).entries()) {
      const here = `${path}.nodeAffinity.${preferred}[${i}]`;
      checkWeight(term, here, problem);
      checkNodeTerm(part(term, "preference") ?? {}, false, `${here}.preference`, problem);
    }
  }
  for (const kind of ["podAffinity", "podAntiAffinity"]) {
    const pods = part(affinity, kind);
    if (pods === null) continue;
    for (const [i, term] of parts(pods, required).entries()) {
      checkPodTerm(term, `${path}.${kind}.${required}[${i}]`, problem);
    }
    for (const [i, term] of parts(pods, preferred).entries()) {
      const here = `${path}.${kind}.${preferred}[${i}]`;
      checkWeight(term, here, problem);
      checkPodTerm(part(term, "podAffinityTerm") ?? {}, `${here}.podAffinityTerm`, problem);
    }
  }
}

function checkWeight(term: Struct, path: string, problem: Problem): void {
  const weight = integer(term, "weight");
  if (weight < 1 || weight > 100) problem(`${path}.weight`, "is not between 1 and 100");
}

function checkNodeTerm(term: Struct, strict: boolean, path: string, problem: Problem): void {
  for (const [i, expression] of parts(term, "matchExpressions").entries()) {
    const here = `${path}.matchExpressions[${i}]`;
    const values = texts(expression, "values");
    const operator = text(expression, "operator");
    if (operator === "Gt" || operator === "Lt") {
      if (values.length !== 1) problem(`${here}.values`, "has to hold one value");
    } else checkOperator(operator, values, here, problem);
    if (!isLabelKey(text(expression, "key"))) problem(`${here}.key`, "is no label key");
    if (strict && !values.every(isLabelValue)) problem(`${here}.values`, "holds a text that is no label value");
  }
  for (const [i, expression] of parts(term, "matchFields").entries()) {
    const here = `${path}.matchFields[${i}]`;
    const values = texts(expression, "values");
    if (!["In", "NotIn"].includes(text(expression, "operator"))) problem(`${here}.operator`, "is neither In nor NotIn");
    if (values.length !== 1) problem(`${here}.values`, "has to hold one value");
    if (text(expression, "key") !== "metadata.name") problem(`${here}.key`, "is not metadata.name");
    else if (!values.every(isDnsSubdomain)) problem(`${here}.values`, "holds a text that is no node name");
  }
}

function checkOperator(operator: string, values: readonly string[], path: string, problem: Problem): void {
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0) problem(`${path}.values`, "is required");
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) problem(`${path}.values`, "cannot be given with this operator");
  } else problem(`${path}.operator`, "is no operator");
}

function checkSelector(selector: Struct | null, path: string, problem: Problem): void {
  if (selector === null) return;
  checkLabels(table(selector, "matchLabels"), `${path}.matchLabels`, problem);
  for (const [i, expression] of parts(selector, "matchExpressions").entries()) {
    const here = `${path}.matchExpressions[${i}]`;
    const values = texts(expression, "values");
    checkOperator(text(expression, "operator"), values, here, problem);
    if (!isLabelKey(text(expression, "key"))) problem(`${here}.key`, "is no label key");
    if (!values.every(isLabelValue)) problem(`${here}.values`, "holds a text that is no label value");
  }
}

function checkPodTerm(term: Struct, path: string, problem: Problem): void {
  checkSelector(part(term, "labelSelector"), `${path}.labelSelector`, problem);
  checkSelector(part(term, "namespaceSelector"), `${path}.namespaceSelector`, problem);
  if (!texts(term, "namespaces").every(isDnsLabel)) problem(`${path}.namespaces`, "holds a text that is no namespace");
  checkMatchKeys(term, path, problem);
  if (!isLabelKey(text(term, "topologyKey"))) problem(`${path}.topologyKey`, "is no label key");
}

function checkMatchKeys(term: Struct, path: string, problem: Problem): void {
  const selector = part(term, "labelSelector");
  const matching = texts(term, "matchLabelKeys");
  const mismatching = texts(term, "mismatchLabelKeys");
  for (const [field, keys] of [["matchLabelKeys", matching] as const, ["mismatchLabelKeys", mismatching] as const]) {
    if (keys.length === 0) continue;
    if (selector === null) problem(`${path}.${field}`, "needs a labelSelector");
    else if (!keys.every(isLabelKey)) problem(`${path}.${field}`, "holds a text that is no label key");
  }
  if (selector !== null) {
    const selected = new Set(table(selector, "matchLabels").keys());
    for (const expression of parts(selector, "matchExpressions")) {
      const key = text(expression, "key");
      if (matching.includes(key) && selected.has(key))
        problem(`${path}.matchLabelKeys`, "holds a key of the labelSelector");
      selected.add(key);
    }
  }
  if (matching.some((key) => mismatching.includes(key)))
    problem(`${path}.matchLabelKeys`, "shares a key with mismatchLabelKeys");
}

/** Checks `spec.topologySpreadConstraints`. */
export function checkSpreading(spec: Struct, path: string, problem: Problem): void {
  const seen = new Set<string>();
  for (const [i, constraint] of parts(spec, "topologySpreadConstraints").entries()) {
    const here = `${path}[${i}]`;
    const key = text(constraint, "topologyKey");
    const action = text(constraint, "whenUnsatisfiable");
    if (integer(constraint, "maxSkew") < 1) problem(`${here}.maxSkew`, "has to be over 0");
    if (key === "") problem(`${here}.topologyKey`, "is required");
    if (action !== "DoNotSchedule" && action !== "ScheduleAnyway") {
      problem(`${here}.whenUnsatisfiable`, "is neither DoNotSchedule nor ScheduleAnyway");
    }
    const pair = JSON.stringify([key, action]);
    if (seen.has(pair)) problem(here, "repeats a topologyKey and whenUnsatisfiable");
    seen.add(pair);
    if (isSet(constraint, "minDomains") && (integer(constraint, "minDomains") < 1 || action !== "DoNotSchedule")) {
      problem(`${here}.minDomains`, "has to be over 0, with DoNotSchedule");
    }
    for (const field of ["nodeAffinityPolicy", "nodeTaintsPolicy"]) {
      if (isSet(constraint, field) && !["Ignore", "Honor"].includes(text(constraint, field))) {
        problem(`${here}.${field}`, "is neither Ignore nor Honor");
      }
    }
    checkMatchKeys(constraint, here, problem);
    checkSelector(part(constraint, "labelSelector"), `${here}.labelSelector`, problem);
  }
}

/** One toleration, whether from the spec or from the old annotation. */
export interface Toleration {
  readonly key: string;
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
  readonly seconds: boolean;
}

/** Checks tolerations. */
export function checkTolerations(tolerations: readonly Toleration[], path: string, problem: Problem): void {
  for (const [i, { key, operator, value, effect, seconds }] of tolerations.entries()) {
    const here = `${path}[${i}]`;
    if (key !== "" && !isLabelKey(key)) problem(`${here}.key`, "is no label key");
    if (key === "" && operator !== "Exists") problem(`${here}.operator`, "has to be Exists without a key");
    if (seconds && effect !== "NoExecute") problem(`${here}.effect`, "has to be NoExecute with tolerationSeconds");
    if (operator === "" || operator === "Equal") {
      if (!isLabelValue(value)) problem(`${here}.value`, "is no label value");
    } else if (operator === "Exists") {
      if (value !== "") problem(`${here}.value`, "cannot be given with Exists");
    } else problem(`${here}.operator`, "is neither Equal nor Exists");
    if (!["", "NoSchedule", "PreferNoSchedule", "NoExecute"].includes(effect))
      problem(`${here}.effect`, "is no taint effect");
  }
}

/** The tolerations of a spec. */
export function tolerationsOf(spec: Struct): Toleration[] {
  return parts(spec, "tolerations").map((toleration) => ({
    key: text(toleration, "key"),
    operator: text(toleration, "operator"),
    value: text(toleration, "value"),
    effect: text(toleration, "effect"),
    seconds: isSet(toleration, "tolerationSeconds"),
  }));
}
