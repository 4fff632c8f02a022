import type { Struct } from "./decode.ts";
import { isSet, part, parts, text } from "./fields.ts";

/** Volume types that need an object of the API server, and what that object is. */
const volumeObjects: Readonly<Record<string, string>> = {
  configMap: "a ConfigMap",
  secret: "a Secret",
  csi: "a CSI driver",
  glusterfs: "Endpoints",
  persistentVolumeClaim: "a PersistentVolumeClaim",
  ephemeral: "a PersistentVolumeClaim",
  azureFile: "a Secret",
};
/** Volume types that may name a Secret. */
const secretVolumes = new Set(["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"]);
const projectionObjects: Readonly<Record<string, string>> = {
  configMap: "a ConfigMap",
  secret: "a Secret",
  serviceAccountToken: "a service account token",
  clusterTrustBundle: "a ClusterTrustBundle",
  podCertificate: "a pod certificate",
};

/**
 * The object of the API server that a pod refers to, with the field that does; null for none. The kubelet runs no static
 * pod that has one (podutil.HasAPIObjectReference), and none whose reference is broken, so no more is asked.
 */
export function findReference(spec: Struct): { readonly path: string; readonly object: string } | null {
  for (const field of ["serviceAccountName", "serviceAccount"]) {
    if (text(spec, field) !== "") return { path: `spec.${field}`, object: "a service account" };
  }
  if (parts(spec, "imagePullSecrets").some((secret) => text(secret, "name") !== "")) {
    return { path: "spec.imagePullSecrets", object: "a Secret" };
  }
  for (const list of ["initContainers", "containers"]) {
    for (const [i, container] of parts(spec, list).entries()) {
      for (const [e, source] of parts(container, "envFrom").entries()) {
        const object = isSet(source, "configMapRef") ? "a ConfigMap" : "a Secret";
        return { path: `spec.${list}[${i}].envFrom[${e}]`, object };
      }
      for (const [e, variable] of parts(container, "env").entries()) {
        const from = part(variable, "valueFrom") ?? {};
        const path = `spec.${list}[${i}].env[${e}]`;
        if (isSet(from, "secretKeyRef")) return { path, object: "a Secret" };
        if (isSet(from, "configMapKeyRef")) return { path, object: "a ConfigMap" };
      }
    }
  }
  if (parts(spec, "resourceClaims").length > 0) return { path: "spec.resourceClaims", object: "a ResourceClaim" };
  for (const [i, volume] of parts(spec, "volumes").entries()) {
    const path = `spec.volumes[${i}]`;
    for (const type of Object.keys(volume)) {
      const object = volumeObjects[type];
      if (object !== undefined) return { path: `${path}.${type}`, object };
      if (!secretVolumes.has(type)) continue;
      const secret = part(part(volume, type) ?? {}, "secretRef");
      if (secret !== null && text(secret, "name") !== "")
        return { path: `${path}.${type}.secretRef`, object: "a Secret" };
    }
    const projected = part(volume, "projected");
    for (const [s, source] of parts(projected ?? {}, "sources").entries()) {
      const here = `${path}.projected.sources[${s}]`;
      for (const [type, object] of Object.entries(projectionObjects)) {
        if (isSet(source, type)) return { path: `${here}.${type}`, object };
      }
      if (!isSet(source, "downwardAPI")) return { path: here, object: "nothing known" };
    }
  }
  return null;
}
