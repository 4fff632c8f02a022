// api-server.ts PORT STATE: what a kubelet needs of an API server, and a web server for its staticPodURL. STATE is a JSON
// file, { nodes: [...], pods: [...], manifest: "..." }, that is read at every request.

import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";

const [port, state] = process.argv.slice(2);
const read = (): { readonly nodes?: readonly Named[]; readonly pods?: readonly Named[]; readonly manifest?: string } =>
  JSON.parse(readFileSync(state!, "utf8"));

const currentVersion = () => String(Math.round(statSync(state!).mtimeMs));

interface Named {
  readonly metadata: { readonly name: string };
}

createServer((request, response) => {
  const url = new URL(request.url!, "http://localhost");
  const answer = (status: number, body: object) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  const refuse = (code: number, reason: string) =>
    answer(code, { kind: "Status", apiVersion: "v1", status: "Failure", reason, message: reason, code });

  console.log(request.method, request.url);
  if (url.pathname === "/manifest") {
    response.end(read().manifest ?? "");
  } else if (request.method !== "GET") {
    // The mirror pods it wants to make are there or not, as the test has it.
    request.resume();
    request.on("end", () => refuse(409, "AlreadyExists"));
  } else if (url.searchParams.has("sendInitialEvents")) {
    // The kubelet then lists and watches in the older way.
    refuse(422, "Invalid");
  } else if (url.searchParams.has("watch")) {
    // A watch brings no event and ends soon; the next one is told to list again if something has changed.
    if (url.searchParams.get("resourceVersion") !== currentVersion()) return refuse(410, "Expired");
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    setTimeout(() => response.end(), 1000);
  } else {
    const [, group, version, ...rest] = url.pathname.split("/");
    const apiVersion = group === "api" ? version : `${version}/${rest[0]}`;
    const [resource = "", name] = group === "api" ? rest : rest.slice(1);
    const items: readonly Named[] = resource === "nodes" || resource === "pods" ? (read()[resource] ?? []) : [];
    if (name !== undefined) {
      const found = items.find(({ metadata }) => metadata.name === name);
      return found === undefined ? refuse(404, "NotFound") : answer(200, found);
    }
    answer(200, {
      kind: `${kinds[resource] ?? "Unknown"}List`,
      apiVersion,
      metadata: { resourceVersion: currentVersion() },
      items,
    });
  }
}).listen(Number(port), "127.0.0.1");

const kinds: Readonly<Record<string, string>> = {
  nodes: "Node",
  pods: "Pod",
  services: "Service",
  csidrivers: "CSIDriver",
  podcertificaterequests: "PodCertificateRequest",
  runtimeclasses: "RuntimeClass",
};
