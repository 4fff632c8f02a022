// Serves the pods of a public case on a socket: a server of Connect's, which shares nothing with the simulator.

import { mkdirSync } from "node:fs";
import * as http2 from "node:http2";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { PodSchema } from "../../proto/gen/pod_pb.js";
import { ListPodsResponseSchema, Pods } from "../../proto/gen/pods_pb.js";
import { cleanUp, folder } from "../support.ts";

/** A pod as the cases' pods.json have them. */
export interface CasePod {
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses: readonly {
      readonly name: string;
      readonly state: { readonly waiting?: { readonly reason: string } };
    }[];
  };
}

/** @returns Path of the socket. */
export async function servePods(
  t: TestContext,
  pods: readonly CasePod[],
  { startedMs }: { readonly startedMs?: number } = {},
): Promise<string> {
  const encoded = pods.map((pod, at) => encode(pod, at, startedMs));
  const answer = create(ListPodsResponseSchema, { pods: encoded });
  const adapter = connectNodeAdapter({
    routes: (router) =>
      router.service(Pods, {
        listPods: () => answer,
        getPod: ({ podUID }) => {
          throw new ConnectError(`pod with UID ${podUID} not found`, Code.NotFound);
        },
      }),
  });
  return serveHttp2(t, http2.createServer(adapter));
}

/** Listens as the kubelet does, on a socket of 0755 in a folder of 0750. */
export async function serveHttp2(t: TestContext, server: http2.Http2Server): Promise<string> {
  const socket = join(folder(t), "pods-api", "pods-api.sock");
  mkdirSync(dirname(socket), { mode: 0o750 });
  const sessions = new Set<http2.Http2Session>();
  server.on("session", (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  cleanUp(t, () => {
    server.close();
    for (const session of sessions) session.destroy();
  });
  return socket;
}

function encode({ namespace, name, annotations, status }: CasePod, at: number, startedMs: number | undefined) {
  const time = startedMs === undefined ? {} : { seconds: BigInt(Math.floor(startedMs / 1000)) };
  const since = startedMs === undefined ? {} : { lastTransitionTime: time };
  const pod = create(PodSchema, {
    metadata: { namespace, name, uid: String(at).padStart(32, "0"), annotations },
    spec: { nodeName: "cp-1", containers: [{ name: "main", image: "registry.test/main:1" }] },
    status: {
      phase: status.phase,
      reason: status.reason ?? "",
      conditions: status.conditions.map((condition) => ({ ...condition, ...since })),
      containerStatuses: status.containerStatuses.map(({ name: container, state }) => ({ name: container, state })),
      ...(startedMs === undefined ? {} : { startTime: time }),
    },
  });
  return toBinary(PodSchema, pod);
}
