// Chooses fields of a pod: what is decoded of it, what a server that knows field masks is asked for, and what is handed on.

import type { Pod, PodField, PodParts } from "./pod.ts";

// The names of core/v1's JSON, as the revisions of the Pods API that knew a mask took them. Whether a pod is static, and
// when it was seen, stands in its annotations; a mask cannot choose among those.
const paths: Readonly<Record<PodField, readonly string[]>> = {
  namespace: ["metadata.namespace"],
  name: ["metadata.name"],
  uid: ["metadata.uid"],
  source: ["metadata.annotations"],
  seenMs: ["metadata.annotations"],
  deletedMs: ["metadata.deletionTimestamp"],
  nodeName: ["metadata.annotations", "spec.nodeName"],
  images: ["metadata.annotations", "spec.containers"],
  phase: ["status.phase"],
  reason: ["status.reason"],
  message: ["status.message"],
  startMs: ["status.startTime"],
  ready: ["status.conditions"],
  readySinceMs: ["status.conditions"],
  readyReason: ["status.conditions"],
  containers: ["status.containerStatuses", "status.initContainerStatuses"],
};

/** A choice of fields. */
export interface FieldMask {
  /** The value of the metadata `x-kubernetes-fieldmask`. */
  readonly header: string;
  readonly parts: PodParts;
  /** A pod with the chosen fields and no others. */
  pick(pod: Pod): Pod;
}

/** @throws RangeError for no field, or one that a pod does not have. */
export function createFieldMask(fields: readonly PodField[]): FieldMask {
  const chosen = [...new Set(fields)];
  const unknown = chosen.find((field) => !Object.hasOwn(paths, field));
  if (unknown !== undefined) throw new RangeError(`Cannot choose the field ${JSON.stringify(unknown)}: a pod has none`);
  if (chosen.length === 0) throw new RangeError("Cannot choose no field at all");
  const wanted = [...new Set(chosen.flatMap((field) => paths[field]))];
  const has = (part: string) => wanted.some((path) => path.startsWith(part));
  return {
    header: wanted.join(","),
    parts: {
      annotations: has("metadata.annotations"),
      metadata: wanted.some((path) => path.startsWith("metadata.") && path !== "metadata.annotations"),
      spec: has("spec."),
      status: has("status."),
      containers: chosen.includes("containers"),
    },
    // Callers see no more than what they named: the type says so.
    pick: (pod) => Object.fromEntries(chosen.map((field) => [field, pod[field]])) as unknown as Pod,
  };
}
