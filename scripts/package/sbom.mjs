// The CycloneDX SBOM: what goes into the binary, as the lock file has it, and the runtime around it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../tools.mjs";
import { digest, seconds } from "./reproducible.mjs";

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));

/** The SBOM in CycloneDX 1.5, as text. */
export function sbom() {
  const components = parts().map(component);
  const self = `pkg:npm/kubelet-probe@${manifest.version}`;
  const content = {
    metadata: {
      timestamp: new Date(seconds * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": self,
        name: "kubelet-probe",
        version: manifest.version,
        purl: self,
        licenses: [{ license: { id: manifest.license } }],
      },
    },
    components,
    dependencies: [{ ref: self, dependsOn: components.map((each) => each["bom-ref"]) }],
  };
  // A number of its own for each content, and the same for the same.
  const hash = digest(JSON.stringify(content));
  const uuid = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-5${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  const bom = { bomFormat: "CycloneDX", specVersion: "1.5", serialNumber: `urn:uuid:${uuid}`, version: 1, ...content };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

/** The licenses of all that is in the binary, as one SPDX expression. */
export function licenses() {
  const all = parts().flatMap(({ license }) => (license ?? "").replace(/^\((.*)\)$/, "$1").split(" AND "));
  return [manifest.license, ...new Set(all.filter((one) => one !== "" && one !== manifest.license))].join(" AND ");
}

function parts() {
  const packages = Object.entries(lock.packages)
    .filter(([path, entry]) => path !== "" && entry.dev !== true && entry.optional !== true)
    .map(([path, entry]) => ({ name: path.replace(/^.*node_modules\//, ""), ...entry }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return [...packages, { name: "bun", ...lock.packages["node_modules/bun"] }];
}

function component({ name, version, license, integrity }) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const [algorithm, base64] = integrity.split("-");
  return {
    type: name === "bun" ? "platform" : "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(base64, "base64").toString("hex") }],
    // The text of a field in npm may be an expression: Apache-2.0 AND BSD-3-Clause.
    licenses:
      license === undefined ? [] : / |\(/.test(license) ? [{ expression: license }] : [{ license: { id: license } }],
  };
}
