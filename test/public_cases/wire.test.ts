// Public cases about what goes over the socket; test/cases/CASES.md has each one's source and the right behaviour.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as http2 from "node:http2";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { age, checkOf, cleanUp, metricOf, probe, probeJson, root, simulate } from "../support.ts";
import { serveHttp2 } from "./pods_server.ts";

function caseJson(id: string): unknown {
  return JSON.parse(readFileSync(join(root, "test", "cases", id, "scenario.json"), "utf8"));
}

describe("c01: an answer over 4 MiB (NVIDIA/dcgm-exporter#408, #509, kubernetes-sigs/cri-tools#872)", () => {
  const { pods, bytesPerPod, expectExit } = caseJson("c01") as {
    readonly pods: number;
    readonly bytesPerPod: number;
    readonly expectExit: number;
  };
  const options = { staticPods: 4, pods: pods - 4, podBytes: bytesPerPod };

  test("it is taken, and its pods counted", async (t) => {
    const { socket, expect } = await simulate(t, "healthy", options);
    const run = await probeJson(["all", "--socket", socket, "--expect", expect.join(",")]);
    assert.equal(run.ended.status, expectExit);
    assert.equal(metricOf(run, "ready", "pods"), pods);
    assert.ok(metricOf(run, "ready", "size")! > 4 << 20);
  });

  test("a limit of the client's own is AnswerTooLarge, and never the rate limit", async (t) => {
    const { socket } = await simulate(t, "healthy", options);
    for (const [profile, status] of [
      ["nagios", 3],
      ["npd", 2],
      ["kube", 1],
    ] as const) {
      const run = await probeJson(["ready", "--socket", socket, "--max-bytes", "4194304", "--profile", profile]);
      assert.equal(run.code, "AnswerTooLarge");
      assert.match(run.summary, /4194304/);
      assert.doesNotMatch(run.summary, /rate/i);
      assert.equal(run.ended.status, status);
    }
  });
});

describe("c03: the :authority header on a unix socket (grpc/grpc#38142, nodejs/node#32326)", () => {
  test("a server that resets what is no host name serves the probe", async (t) => {
    const { socket, expect } = await simulate(t, "strict-authority");
    const ended = await probe(["all", "--socket", socket, "--expect", expect.join(",")]);
    assert.equal(ended.status, (caseJson("c03") as { readonly expectExit: number }).expectExit, ended.stdout);
  });

  for (const form of ["", "unix:", "unix://"]) {
    test(`it is localhost, once, without a host header beside it: ${form}PATH`, async (t) => {
      const seen: http2.IncomingHttpHeaders[] = [];
      const server = http2.createServer();
      server.on("stream", (stream, headers) => {
        seen.push(headers);
        stream.respond(
          { ":status": 200, "content-type": "application/grpc", "grpc-status": 9, "grpc-message": "" },
          { endStream: true },
        );
      });
      const socket = await serveHttp2(t, server);
      await probe(["all", "--socket", `${form}${socket}`, "--expect-count", "0:"]);
      assert.ok(seen.length >= 2, `${seen.length} calls`);
      for (const headers of seen) {
        assert.equal(headers[":authority"], "localhost");
        assert.equal(headers.host, undefined);
        assert.equal(headers.te, "trailers");
        assert.match(headers["content-type"]!, /^application\/grpc(\+proto)?$/);
      }
    });
  }
});

describe("c04: a transport that dials TCP instead of the socket (connectrpc/connect-es#756, grpc/grpc-node#258)", () => {
  const { decoyTcp, socketForms } = caseJson("c04") as {
    readonly decoyTcp: string;
    readonly socketForms: readonly string[];
  };

  for (const form of socketForms) {
    test(`${form}: the decoy on ${decoyTcp} sees nothing, a GOAWAY and a reconnect included`, async (t) => {
      const [host, port] = decoyTcp.split(":");
      let connections = 0;
      const decoy = createServer((socket) => {
        connections++;
        socket.destroy();
      });
      const failed = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
        decoy.once("error", resolve);
        decoy.listen(Number(port), host, () => resolve(undefined));
      });
      if (failed !== undefined) return t.skip(`the decoy cannot listen on ${decoyTcp}: ${failed.code}`);
      cleanUp(t, () => decoy.close());

      const simulator = await simulate(t, "goaway");
      const written = form.replace("/run/x.sock", simulator.socket);
      const ended = await probe(["all", "--socket", written, "--expect", simulator.expect.join(",")]);
      assert.equal(ended.status, 0, ended.stdout);
      assert.ok(simulator.connections >= 2, `${simulator.connections} connections`);
      assert.equal(connections, 0);
    });
  }
});

describe("c07: FAILED_PRECONDITION without an end (kubernetes/kubernetes#140286, #140257, #112814)", () => {
  interface Stage {
    readonly socketAgeSec?: number;
    readonly readinessExit?: number;
    readonly inventoryExit?: number;
    readonly midCall?: string;
    readonly exit?: number;
  }
  for (const stage of caseJson("c07") as readonly Stage[]) {
    if (stage.socketAgeSec !== undefined) {
      test(`${stage.socketAgeSec} s after the kubelet's start`, async (t) => {
        const { socket, expect } = await simulate(t, "initializing");
        age(socket, stage.socketAgeSec!);
        const ready = await probeJson(["ready", "--socket", socket]);
        assert.equal(ready.code, "Initializing");
        assert.equal(ready.ended.status, stage.readinessExit);
        assert.match(
          ready.summary,
          stage.socketAgeSec! < 60 ? /, \d s after its start$/ : /, 15 min( \d+ s)? after its start$/,
        );

        const inventory = await probeJson(["static-pods", "--socket", socket, "--expect", expect.join(",")]);
        assert.equal(inventory.code, "InventoryUnavailable");
        assert.equal(checkOf(inventory, "static-pods").findings[0]!.cause, "Initializing");
        assert.equal(inventory.ended.status, stage.inventoryExit);

        // One cause, one code: all of them together say it once, and no pod is called missing.
        const all = await probeJson(["all", "--socket", socket, "--expect", expect.join(",")]);
        assert.equal(all.code, "Initializing");
        assert.equal(all.ended.status, stage.readinessExit);
        assert.deepEqual(checkOf(all, "static-pods").skipped, { cause: "Initializing" });
        assert.doesNotMatch(all.ended.stdout, /StaticPodMissing/);
      });
    } else {
      test(`${stage.midCall} in the middle of a call, then an answer`, async (t) => {
        const simulator = await simulate(t, "lost-once");
        const ended = await probe(["ready", "--socket", simulator.socket]);
        assert.equal(ended.status, stage.exit, ended.stdout);
        assert.equal(simulator.connections, 2);
      });
    }
  }

  test("not started, dead, initializing and broken have a code each", async (t) => {
    const found = [];
    for (const scenario of ["missing", "dead", "initializing", "lost"]) {
      const { socket } = await simulate(t, scenario);
      found.push((await probeJson(["ready", "--socket", socket])).code);
    }
    assert.deepEqual(found, ["SocketMissing", "SocketDead", "Initializing", "ConnectionLost"]);
  });
});

describe("c09: the socket of another API (NVIDIA/gpu-monitoring-tools#33)", () => {
  const { expectExit, message } = caseJson("c09") as { readonly expectExit: number; readonly message: string };

  for (const [check, ...args] of [["ready"], ["rate-limit"], ["all", "--expect-count", "0:"]] as const) {
    test(`${check}: UNKNOWN, this socket serves another API`, async (t) => {
      const { socket } = await simulate(t, "wrong-service");
      const ended = await probe([check, ...args, "--socket", socket]);
      assert.equal(ended.status, expectExit);
      assert.match(ended.stdout, /UNKNOWN - WrongService: /);
      assert.match(ended.stdout, /another API/);
      assert.ok(ended.stdout.includes(message), ended.stdout);
    });
  }

  test("v1alpha1 is asked for at once: no version is tried and refused before it", async (t) => {
    const simulator = await simulate(t, "healthy");
    assert.equal((await probe(["ready", "--socket", simulator.socket])).status, 0);
    assert.equal(simulator.calls, 1);
  });
});
