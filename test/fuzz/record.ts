// `node test/fuzz/record.ts`: what a server sends for one call each, byte for byte, into recorded.json. The kubelet's own
// server (npm run build:kubelet) has the shapes that a kubelet sends, the simulator the pods that are in a bad way.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPodsClient, type PodsClient } from "../../lib/client.ts";
import { startSimulator } from "../../lib/simulator.ts";
import { kubeletServer } from "../support.ts";
import type { Method, Recording } from "./recordings.ts";

const missingUid = "00000000-0000-4000-8000-000000000000";

/** Makes one call through a socket that notes what comes back. */
async function record(name: string, method: Method, server: string): Promise<Recording> {
  const folder = mkdtempSync(join(tmpdir(), "kp-"));
  const path = join(folder, "s");
  const received: Buffer[] = [];
  const proxy = createServer((client) => {
    const upstream = connect({ path: server });
    upstream.on("data", (bytes) => received.push(bytes));
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => proxy.listen(path, resolve));
  const client = createPodsClient({ socket: path });
  try {
    await call(client, method).catch(() => {});
  } finally {
    client.close();
    proxy.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return { name, method, bytes: Buffer.concat(received).toString("base64") };
}

async function call(client: PodsClient, method: Method): Promise<void> {
  if (method === "list") await client.list();
  else if (method === "get") await client.get(missingUid);
  else {
    const signal = AbortSignal.timeout(1500);
    for await (const _ of client.watch({ signal }));
  }
}

async function fromKubelet(name: string, args: readonly string[], methods: readonly Method[]): Promise<Recording[]> {
  const folder = mkdtempSync(join(tmpdir(), "kp-"));
  const socket = join(folder, "s");
  const server: ChildProcess = spawn(kubeletServer, ["--socket", socket, ...args], { stdio: "ignore" });
  try {
    while (!existsSync(socket)) await new Promise((resolve) => setTimeout(resolve, 20));
    const recordings: Recording[] = [];
    for (const method of methods) recordings.push(await record(`kubelet ${name} ${method}`, method, socket));
    return recordings;
  } finally {
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fromSimulator(scenario: string, methods: readonly Method[]): Promise<Recording[]> {
  const folder = mkdtempSync(join(tmpdir(), "kp-"));
  const simulator = await startSimulator({ socket: join(folder, "s"), scenario, staticPods: 2, pods: 1 });
  try {
    const recordings: Recording[] = [];
    for (const method of methods) recordings.push(await record(`${scenario} ${method}`, method, simulator.socket));
    return recordings;
  } finally {
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const recordings = [
  ...(await fromKubelet("pods", ["--static", "3", "--pods", "2", "--containers", "2"], ["list", "get", "watch"])),
  ...(await fromKubelet("empty", [], ["list", "watch"])),
  ...(await fromKubelet("churn", ["--static", "1", "--churn", "200ms"], ["watch"])),
  ...(await fromKubelet("initializing", ["--ready=false"], ["list", "watch"])),
  ...(await fromSimulator("failed-pod", ["list"])),
  ...(await fromSimulator("not-ready-old", ["list", "watch"])),
  ...(await fromSimulator("watch-dropped", ["watch"])),
  ...(await fromSimulator("rate-limited", ["list"])),
  ...(await fromSimulator("server-error", ["get"])),
];
const target = new URL("recorded.json", import.meta.url);
writeFileSync(target, `${JSON.stringify(recordings, null, 2)}\n`);
for (const { name, bytes } of recordings) console.log(name, Buffer.from(bytes, "base64").length);
