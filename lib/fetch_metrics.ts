// Asks a URL for the kubelet's metrics: the one place that opens a network socket. In the binary a file beside the bundle
// (scripts/flags.mjs), so it takes nothing from lib but types and what has a few lines.

import { constants, open } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { isLoopback, type MetricsCredentials } from "./metrics_url.ts";

/** What to ask. */
export interface MetricsRequest extends MetricsCredentials {
  readonly url: string;
  /** At a loopback address the kubelet shows the certificate of its node. */
  readonly nodeName: string;
  /** For everything, reading the files included. */
  readonly timeoutMs: number;
}

/** What was answered. */
export interface MetricsAnswer {
  /** When the answer began: the counters are as they were then. ms since the epoch. */
  readonly atMs: number;
  /** The lines that begin with `kubelet_pod_`. */
  readonly text: string;
}

// A kubelet answers with some 100 KB, and with megabytes where its nodes have hundreds of pods.
const maxBytes = 16 << 20;
const maxLineLength = 64 << 10;
const maxFileBytes = 1 << 20;

/**
 * Makes one GET request. No redirect is followed, no proxy asked, and no certificate taken that does not hold, whatever
 * the environment says.
 * @returns The answer, or in words why there is none. These hold nothing that a file or the server said but its status:
 * a server might send back the token it was given.
 */
export async function fetchMetrics(request: MetricsRequest): Promise<MetricsAnswer | string> {
  const { timeoutMs } = request;
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no whole answer within ${Math.round(timeoutMs)} ms`), timeoutMs);
  });
  try {
    return await Promise.race([late, ask(request, stop.signal).catch((error) => explain(error, request))]);
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

async function ask(request: MetricsRequest, signal: AbortSignal): Promise<MetricsAnswer | string> {
  const { tokenFile, caFile, certFile, keyFile, nodeName } = request;
  const url = new URL(request.url);
  const files = [];
  for (const [path, looksRight] of [
    [tokenFile, isToken],
    [caFile, isPem],
    [certFile, isPem],
    [keyFile, isPem],
  ] as const) {
    let text: string | undefined;
    try {
      text = path === undefined ? undefined : await readSmallFile(path);
    } catch (error) {
      return `cannot read ${path}: ${(error as NodeJS.ErrnoException).code}`;
    }
    if (text !== undefined && !looksRight(text)) {
      return `${path} holds no ${looksRight === isToken ? "token, which is one line of printable characters" : "PEM"}`;
    }
    files.push(text);
  }
  const [token, ca, cert, key] = files;
  const options = {
    signal,
    // A connection of its own.
    agent: false,
    headers: {
      accept: "text/plain;version=0.0.4",
      "user-agent": "kubelet-probe",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
  };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent =
      url.protocol === "http:"
        ? httpRequest(url, options, resolve)
        : httpsRequest(
            url,
            {
              ...options,
              ...{ ca, cert, key },
              // By default NODE_TLS_REJECT_UNAUTHORIZED has a say.
              rejectUnauthorized: true,
              checkServerIdentity: (host: string, certificate: PeerCertificate) =>
                isLoopback(url.hostname) && checkServerIdentity(nodeName, certificate) === undefined
                  ? undefined
                  : checkServerIdentity(host, certificate),
            },
            resolve,
          );
    // Also after the answer has begun, when nobody waits for it any more.
    sent.on("error", reject);
    sent.end();
  });
  // By the clock that nobody sets.
  const atMs = performance.timeOrigin + performance.now();
  return answer.statusCode === 200 ? readLines(answer, atMs) : aboutStatus(answer.statusCode ?? 0);
}

async function readLines(answer: IncomingMessage, atMs: number): Promise<MetricsAnswer | string> {
  if (!/^(text\/plain|application\/openmetrics-text)\b/.test(answer.headers["content-type"] ?? "")) {
    return "the answer is not in the text format of Prometheus";
  }
  const kept: string[] = [];
  let bytes = 0;
  let rest = "";
  answer.setEncoding("latin1");
  for await (const chunk of answer) {
    bytes += chunk.length;
    if (bytes > maxBytes) return `the answer has over ${maxBytes} bytes`;
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    if (rest.length > maxLineLength) return "the answer is not in the text format of Prometheus";
    kept.push(...lines.filter(isOurs));
  }
  return { atMs, text: [...kept, rest].filter(isOurs).join("\n") };
}

function isOurs(line: string): boolean {
  return line.startsWith("kubelet_pod_");
}

async function readSmallFile(path: string): Promise<string> {
  // A FIFO without a writer must not be waited for.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > maxFileBytes)
      throw Object.assign(new Error(), { code: "no regular file, or over 1 MiB" });
    return (await file.readFile("utf8")).trim();
  } finally {
    await file.close();
  }
}

function isToken(text: string): boolean {
  return /^[!-~]+$/.test(text);
}

function isPem(text: string): boolean {
  return text.includes("-----BEGIN ");
}

function aboutStatus(status: number): string {
  if (status === 401) {
    return "status 401, the kubelet knows nobody by these credentials: give --token-file of a service account, or --cert-file and --key-file";
  }
  if (status === 403) {
    return "status 403, whose credentials these are may not read metrics: a ClusterRole has to allow them 'get' on 'nodes/metrics'";
  }
  if (status >= 300 && status < 400) return `status ${status}, a redirect, which is not followed`;
  return `status ${status}`;
}

function explain(error: NodeJS.ErrnoException, { nodeName, url }: MetricsRequest): string {
  const { code = error.name } = error;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const { hostname } = new URL(url);
    const names = isLoopback(hostname) ? `neither ${hostname} nor ${nodeName}` : `not ${hostname}`;
    return `the server's certificate is for ${names}: --metrics or --node-name has to name whom it is for`;
  }
  if (/SELF_SIGNED|UNABLE_TO|ISSUER/.test(code)) {
    return `the server's certificate is not signed by one of --ca-file (${code})`;
  }
  return code;
}
