import { decodePod, type Struct } from "./decode.ts";
import { parseJson } from "./json.ts";
import { findRefusal, isMirror } from "./validate.ts";
import { isFields, type Tick, type Value } from "./value.ts";
import { readYaml } from "./yaml.ts";
import { decodeLossy } from "./yaml-scalar.ts";

/** A pod of a manifest, named as the kubelet names it. */
export interface ReadPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | null;
  readonly images: readonly string[];
}

/** What the kubelet makes of one file's bytes. */
export interface Reading {
  /** `mirror`: a valid pod with the annotation of a mirror pod, which takes its name and never runs. */
  readonly verdict: "pod" | "mirror" | "refused" | "ignored";
  readonly pod: ReadPod | null;
  readonly reason: string;
  readonly furtherDocuments: boolean;
}

/** White space to Go (unicode.IsSpace), then the brace that makes the kubelet try JSON, and JSON only. */
const jsonStart = /^[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*\{/;

/** Reads one manifest's bytes for a node whose name is already lower-cased. */
export function readManifest(bytes: Uint8Array, node: string, tick: Tick = () => {}): Reading {
  let value: Value;
  let furtherDocuments = false;
  const first = bytes[0];
  let json: string | null = null;
  // Text in UTF-8 with white space beyond ASCII in front of the brace is rare enough to be looked at twice.
  if (first === 0x7b || (first !== undefined && (first <= 0x20 || first >= 0x80))) {
    const text = decodeLossy(bytes);
    if (jsonStart.test(text)) json = text;
  }
  try {
    if (json !== null) value = parseJson(json, tick);
    else ({ value, furtherDocuments } = readYaml(bytes, tick));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const language = json === null ? "YAML" : "JSON";
    return { verdict: "ignored", pod: null, reason: `not ${language}: ${error.message}`, furtherDocuments };
  }
  return { ...interpret(value, node), furtherDocuments };
}

function interpret(value: Value, node: string): Omit<Reading, "furtherDocuments"> {
  const ignored = (reason: string): Omit<Reading, "furtherDocuments"> => ({ verdict: "ignored", pod: null, reason });
  if (value === null) return ignored("empty");
  if (!isFields(value)) return ignored("not an object");
  const { kind, apiVersion, fault } = typeOf(value);
  if (kind !== "Pod") {
    if (kind === "") return ignored(fault ?? "no kind");
    return ignored(/^[A-Za-z0-9.]{1,63}$/.test(kind) ? `a ${kind}, not a Pod` : "not a Pod");
  }
  const { pod, fault: typeFault } = decodePod(value);
  const named = nameOf(pod, node);
  const refused = (reason: string): Omit<Reading, "furtherDocuments"> => ({ verdict: "refused", pod: named, reason });
  if (fault !== null) return refused(fault);
  if (apiVersion === "" || apiVersion === "/") return refused("no apiVersion");
  if (apiVersion !== "v1" && apiVersion !== "/v1") return refused("apiVersion is not v1");
  if (typeFault !== null) return refused(`${typeFault.path} ${typeFault.what}`);
  if (named === null) return refused("no metadata.name");
  const reason = findRefusal(pod, named.namespace, named.name, node);
  if (reason !== null) return refused(reason);
  if (isMirror(pod)) {
    return {
      verdict: "mirror",
      pod: named,
      reason: "annotated as a mirror pod, which the kubelet takes from the API only",
    };
  }
  return { verdict: "pod", pod: named, reason: "" };
}

/** Kind and version as encoding/json finds them: in any case, the last one given counts. */
function typeOf(value: Value): { kind: string; apiVersion: string; fault: string | null } {
  const found = { kind: "", apiVersion: "" };
  let fault: string | null = null;
  for (const [key, item] of isFields(value) ? value.fields : []) {
    const folded = key.replaceAll("\u212a", "k").replaceAll("\u017f", "s").toLowerCase();
    const name = folded === "kind" ? "kind" : folded === "apiversion" ? "apiVersion" : null;
    if (name === null || item === null) continue;
    if (typeof item === "string") found[name] = item;
    else fault ??= `${name} is not a text`;
  }
  return { ...found, fault };
}

function nameOf(pod: Struct, node: string): ReadPod | null {
  const metadata = struct(pod.metadata);
  const name = metadata.name;
  if (typeof name !== "string" || name === "") return null;
  const namespace = metadata.namespace;
  const uid = metadata.uid;
  const containers = struct(pod.spec).containers;
  return {
    namespace: typeof namespace === "string" && namespace !== "" ? namespace : "default",
    name: `${name}-${node}`,
    uid: typeof uid === "string" && uid !== "" ? uid : null,
    images: Array.isArray(containers)
      ? containers.map((container) => struct(container).image).map((image) => (typeof image === "string" ? image : ""))
      : [],
  };
}

function struct(value: unknown): Struct {
  return typeof value === "object" && value !== null ? (value as Struct) : {};
}
