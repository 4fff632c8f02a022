import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type ServerOptions } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fetchMetrics, type MetricsRequest } from "../lib/fetch_metrics.ts";
import { type Identity, makeAuthority, needsOpenssl } from "./certificates.ts";
import { inFolder } from "./probes/support.ts";

const line = "kubelet_pod_watch_events_dropped_total 0";
const canary = "canary-of-a-token";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** What the kubelet answers whoever has the token. */
const answerMetrics: Handler = (request, response) => {
  if (request.headers.authorization !== `Bearer ${canary}`) {
    response.writeHead(request.headers.authorization === undefined ? 401 : 403).end("no");
    return;
  }
  sendText(response, `# TYPE a counter\na 1\n${line}\n`);
};

function sendText(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
}

async function withServer<T>(server: Server, use: (port: number) => Promise<T>): Promise<T> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    server.close();
    if ("closeAllConnections" in server) (server as ReturnType<typeof createServer>).closeAllConnections();
  }
}

/** Asks a server without TLS. */
function ask(handler: Handler, differs: Partial<MetricsRequest> = {}) {
  return withServer(createServer(handler), (port) =>
    fetchMetrics({ url: `http://127.0.0.1:${port}/metrics`, nodeName: "node-1", timeoutMs: 20_000, ...differs }),
  );
}

/** Asks a server that shows this certificate, with a token, as `URL` and what else is given. */
function askTls(shown: Identity, differs: Partial<MetricsRequest>, options: ServerOptions = {}, path = "/metrics") {
  const files = { cert: readFileSync(shown.certFile), key: readFileSync(shown.keyFile) };
  return withServer(createTlsServer({ ...files, ...options }, answerMetrics), (port) =>
    fetchMetrics({ url: `https://127.0.0.1:${port}${path}`, nodeName: "node-1", timeoutMs: 20_000, ...differs }),
  );
}

/** The lines that were kept; fails for a problem. */
function textOf(answer: Awaited<ReturnType<typeof fetchMetrics>>): string {
  if (typeof answer === "string") throw new Error(answer);
  return answer.text;
}

describe("over TLS", { skip: needsOpenssl }, () => {
  test("a certificate of the node is taken at a loopback address, and one of the address", () =>
    inFolder(async (folder) => {
      const authority = makeAuthority(folder, "ca");
      const tokenFile = join(folder, "token");
      // As `kubectl create token` in a file has it.
      writeFileSync(tokenFile, `${canary}\n`);
      const trusted = { caFile: authority.certFile, tokenFile };
      const ofNode = authority.issue("node", "DNS:node-1");
      assert.equal(textOf(await askTls(ofNode, trusted)), line);
      assert.equal(textOf(await askTls(authority.issue("address", "IP:127.0.0.1"), trusted)), line);

      const other = await askTls(ofNode, { ...trusted, nodeName: "node-2" });
      assert.match(String(other), /^the server's certificate is for neither 127\.0\.0\.1 nor node-2/);
    }));

  test("a certificate that another authority signed is not, whatever the environment says", () =>
    inFolder(async (folder) => {
      const shown = makeAuthority(folder, "ca").issue("node", "DNS:node-1");
      const { certFile: caFile } = makeAuthority(folder, "other");
      const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      try {
        assert.match(String(await askTls(shown, { caFile })), /is not signed by one of --ca-file \([A-Z_]+\)$/);
      } finally {
        if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
        else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
      }
    }));

  // As the kubelet makes them: one file with the certificate and the one that signed it.
  test("a self-signed certificate of the kubelet is taken by the file it is in", () =>
    inFolder(async (folder) => {
      const authority = makeAuthority(folder, "node-1-ca@1");
      const shown = authority.issue("node-1@1", "DNS:node-1");
      const [certFile, tokenFile] = [join(folder, "kubelet.crt"), join(folder, "token")];
      writeFileSync(certFile, readFileSync(shown.certFile, "utf8") + readFileSync(authority.certFile, "utf8"));
      writeFileSync(tokenFile, canary);
      assert.equal(textOf(await askTls({ ...shown, certFile }, { caFile: certFile, tokenFile })), line);
    }));

  test("both sides show a certificate", () =>
    inFolder(async (folder) => {
      const authority = makeAuthority(folder, "ca");
      const shown = authority.issue("node", "DNS:node-1");
      const tokenFile = join(folder, "token");
      writeFileSync(tokenFile, canary);
      const asked = { ca: readFileSync(authority.certFile), requestCert: true, rejectUnauthorized: true };
      const trusted = { caFile: authority.certFile, tokenFile };
      assert.equal(textOf(await askTls(shown, { ...trusted, ...authority.issue("client", "DNS:c") }, asked)), line);
      const stranger = makeAuthority(folder, "other").issue("stranger", "DNS:c");
      for (const client of [{}, stranger, { ...stranger, keyFile: shown.keyFile }]) {
        const answer = await askTls(shown, { ...trusted, ...client }, asked);
        assert.match(String(answer), /^[A-Z_\d]+$/);
      }
    }));

  test("no token, a wrong one: what to do, and not what was sent", () =>
    inFolder(async (folder) => {
      const authority = makeAuthority(folder, "ca");
      const shown = authority.issue("node", "DNS:node-1");
      const tokenFile = join(folder, "token");
      writeFileSync(tokenFile, `${canary}x`);
      const trusted = { caFile: authority.certFile };
      assert.match(String(await askTls(shown, trusted)), /^status 401, .*--token-file/);
      const wrong = String(await askTls(shown, { ...trusted, tokenFile }));
      assert.match(wrong, /^status 403, .*'nodes\/metrics'$/);
      assert.doesNotMatch(wrong, /canary/);
    }));

  test("a server that speaks no TLS", () =>
    inFolder(async (folder) => {
      const { certFile: caFile } = makeAuthority(folder, "ca");
      const answer = await withServer(createServer(answerMetrics), (port) =>
        fetchMetrics({ url: `https://127.0.0.1:${port}/`, nodeName: "n", timeoutMs: 20_000, caFile }),
      );
      assert.match(String(answer), /^[A-Z_]+$/);
    }));

  test("files that hold nothing of use are named, and not shown", () =>
    inFolder(async (folder) => {
      const { certFile: caFile, keyFile } = makeAuthority(folder, "ca");
      const of = (name: string, text: string) => {
        writeFileSync(join(folder, name), text);
        return join(folder, name);
      };
      mkdirSync(join(folder, "folder"));
      const url = "https://127.0.0.1:1/metrics";
      for (const [differs, wanted] of [
        [{ tokenFile: join(folder, "none") }, /^cannot read .*\/none: ENOENT$/],
        [{ tokenFile: join(folder, "folder") }, /^cannot read .*\/folder: no regular file/],
        [{ tokenFile: of("empty", "\n") }, /\/empty holds no token/],
        [{ tokenFile: of("lines", `${canary}\r\nHost: ${canary}`) }, /\/lines holds no token/],
        [{ caFile: of("junk", canary) }, /\/junk holds no PEM$/],
        [{ certFile: caFile, keyFile: of("key", canary) }, /\/key holds no PEM$/],
        [{ certFile: caFile, keyFile: of("broken", `-----BEGIN PRIVATE KEY-----\n${canary}`) }, /^[A-Z_\d]+$|^Error$/],
        [{ certFile: caFile, keyFile }, /^ECONNREFUSED$/],
      ] as const) {
        const answer = String(await fetchMetrics({ url, caFile, nodeName: "n", timeoutMs: 20_000, ...differs }));
        assert.match(answer, wanted);
        assert.ok(!answer.includes(canary), answer);
      }
    }));
});

describe("an answer", () => {
  test("is read in pieces, and kept by the lines that count", async () => {
    const more = 'kubelet_pod_requests_get_total{a="ä"} 7';
    const pieces = ["# HELP kubelet_pod_x\nkubel", "et_pod_watch_events_dropped", "_total 0\nother 1\n", more];
    const answer = await ask((_, response) => {
      response.setHeader("content-type", "text/plain");
      const next = () => {
        const piece = pieces.shift();
        if (piece === undefined) response.end();
        else response.write(piece, () => setImmediate(next));
      };
      next();
    });
    assert.deepEqual(
      textOf(answer)
        .replace(/"[^"]*"/, '""')
        .split("\n"),
      [line, more.replace("ä", "")],
    );
  });

  test("without anything of the Pods API has no lines", async () => {
    assert.equal(textOf(await ask((_, response) => sendText(response, "up 1\n"))), "");
  });

  test("a redirect is not followed", async () => {
    const asked: (string | undefined)[] = [];
    const answer = await ask(({ url }, response) => {
      asked.push(url);
      response.writeHead(302, { location: `/${canary}` }).end();
    });
    assert.equal(answer, "status 302, a redirect, which is not followed");
    assert.deepEqual(asked, ["/metrics"]);
  });

  // A server that sends back what it was sent would have it printed.
  test("nothing of it is told but its status", async () => {
    const answer = await ask((_, response) => {
      response.writeHead(500, canary, { "x-canary": canary, "content-type": canary }).end(canary);
    });
    assert.equal(answer, "status 500");
    const html = await ask((_, response) => response.writeHead(200, { "content-type": canary }).end(canary));
    assert.equal(html, "the answer is not in the text format of Prometheus");
  });

  test("no proxy is asked", async () => {
    const names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "NODE_USE_ENV_PROXY"];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = name.startsWith("NODE") ? "1" : "http://127.0.0.1:1";
    try {
      assert.equal(textOf(await ask((_, response) => sendText(response, line))), line);
    } finally {
      names.forEach((name, at) => {
        if (before[at] === undefined) delete process.env[name];
        else process.env[name] = before[at];
      });
    }
  });

  const endless = (piece: string, status = 200): Handler => {
    return (_, response) => {
      response.writeHead(status, { "content-type": "text/plain" });
      const send = () => {
        if (!response.destroyed) response.write(piece, send);
      };
      send();
    };
  };

  test("without an end is given up, by its bytes, its lines and its status", { timeout: 60_000 }, async () => {
    assert.equal(
      await ask(endless(`${line}\n# `.padEnd(8000, "x").concat("\n"))),
      "the answer has over 16777216 bytes",
    );
    assert.equal(await ask(endless("x".repeat(8000))), "the answer is not in the text format of Prometheus");
    assert.equal(await ask(endless("x".repeat(8000), 500)), "status 500");
  });

  test("that does not come, or stops half-way, is given up in time", async () => {
    const wanted = "no whole answer within 200 ms";
    assert.equal(await ask(() => {}, { timeoutMs: 200 }), wanted);
    const halfWay: Handler = (_, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      response.write(`${line}\n`);
    };
    assert.equal(await ask(halfWay, { timeoutMs: 200 }), wanted);
    const silent = createTcpServer((socket) => socket.on("error", () => {}));
    const answer = await withServer(silent, (port) =>
      fetchMetrics({ url: `https://127.0.0.1:${port}/`, nodeName: "n", timeoutMs: 200 }),
    );
    assert.equal(answer, wanted);
  });

  test("that breaks off, and one that is no HTTP", async () => {
    const broken = await ask((_, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": 1000 });
      response.write(line, () => response.destroy());
    });
    assert.match(String(broken), /^[A-Z_]+$/);
    const noHttp = createTcpServer((socket) => socket.on("error", () => {}).end(`${canary}\r\n\r\n`));
    const answer = await withServer(noHttp, (port) =>
      fetchMetrics({ url: `http://127.0.0.1:${port}/`, nodeName: "n", timeoutMs: 20_000 }),
    );
    assert.match(String(answer), /^[A-Z_]+$/);
  });
});
