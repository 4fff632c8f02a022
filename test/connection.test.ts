import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Connector, createConnector, type Limit } from "../lib/connection.ts";
import type { GrpcRequest, MessageSink } from "../lib/grpc.ts";
import {
  faultOf,
  frame,
  frameType,
  grpcAnswer,
  inFolder,
  listen,
  type RawServer,
  type Script,
  startRawServer,
  uint32,
  until,
  withRawServer,
} from "./http2_frames.ts";

const settings = frame(frameType.settings, 0, 0);
const request: GrpcRequest = { path: "/a.B/C", body: new Uint8Array(0), maxBytes: 1 << 20, userAgent: "test" };
const long = 600_000;

function limit(timeoutMs = long, signal?: AbortSignal): Limit {
  return { atMs: performance.now() + timeoutMs, timeoutMs, signal, phase: "connect" };
}

function sink(): MessageSink {
  return { start() {}, chunk() {}, end() {} };
}

/** Uses a connector to a server of a script. */
async function connected(
  script: Script,
  use: (connector: Connector, server: RawServer) => Promise<void>,
): Promise<void> {
  await withRawServer(script, async (server) => {
    const connector = createConnector(server.path);
    try {
      await use(connector, server);
    } finally {
      connector.close();
    }
  });
}

/** Answers each call. */
const answering: Script = {
  onConnection: ({ send }) => send(settings),
  onRequest: (id, _, { send }) => send(grpcAnswer(id, Uint8Array.of(1))),
};

/** Ends when the client has closed. */
async function gone({ socket }: { socket: Socket }): Promise<void> {
  if (!socket.destroyed) await new Promise((resolve) => socket.once("close", resolve));
}

describe("one connection for every call", () => {
  test("is opened when it is needed, and used again", () =>
    connected(answering, async (connector, { peers }) => {
      assert.equal(peers.length, 0);
      await connector.reach(limit());
      const calls = Array.from({ length: 5 }, () => connector.call(request, sink(), limit()));
      for (const status of await Promise.all(calls)) assert.equal(status.code, 0);
      assert.equal(peers.length, 1);
      assert.ok(connector.bytesReceived > 100);
    }));

  test("a request goes out with the first bytes, before the server has said anything", () =>
    connected(
      { onRequest: (id, _, { send }) => send(settings, grpcAnswer(id, Uint8Array.of(1))) },
      async (connector) => {
        assert.equal((await connector.call(request, sink(), limit())).code, 0);
      },
    ));

  test("an answer counts although the server closes behind it", () =>
    connected(
      { onRequest: (id, _, { socket }) => socket.end(Buffer.concat([settings, grpcAnswer(id, Uint8Array.of(1))])) },
      async (connector, { peers }) => {
        assert.equal((await connector.call(request, sink(), limit())).code, 0);
        await until(() => peers[0]!.socket.destroyed);
        assert.equal((await connector.call(request, sink(), limit())).code, 0);
        assert.equal(peers.length, 2);
      },
    ));

  test("after a GOAWAY calls go to a new one, the old one serves its call to the end and is closed", () => {
    const goaway = frame(frameType.goaway, 0, 0, uint32(1, 0));
    return connected(
      {
        onConnection: ({ send }) => send(settings),
        onRequest: (id, _, { send, number }) => {
          if (number === 1) send(goaway);
          else send(grpcAnswer(id, Uint8Array.of(1)));
        },
      },
      async (connector, { peers }) => {
        const first = connector.call(request, sink(), limit());
        await until(() => (peers[0]?.frames.length ?? 0) > 3);
        const before = connector.bytesReceived;
        while (peers.length < 2) await connector.call(request, sink(), limit(50)).catch(() => {});
        peers[0]!.send(grpcAnswer(1, Uint8Array.of(1)));
        assert.equal((await first).code, 0);
        await gone(peers[0]!);
        assert.ok(connector.bytesReceived > before, "those of the closed connection are not forgotten");
      },
    );
  });
});

describe("close", () => {
  test("ends what is under way, in each phase, and what comes later", async () => {
    for (const onConnection of [() => {}, answering.onConnection!]) {
      await connected({ onConnection }, async (connector, { peers }) => {
        const call = connector.call(request, sink(), limit());
        const begun = connector.begin(request, sink(), limit()).then(({ status }) => status);
        await until(() => (peers[0]?.frames.length ?? 0) > 3);
        connector.close();
        assert.match((await faultOf(call, "ConnectionLost")).message, /client is closed/);
        await faultOf(begun, "ConnectionLost");
        await faultOf(connector.reach(limit()), "ConnectionLost");
        assert.equal(peers.length, 1);
        await gone(peers[0]!);
      });
    }
  });

  test("right after a call has begun it ends that too", () =>
    connected(answering, async (connector) => {
      const call = connector.call(request, sink(), limit());
      connector.close();
      await faultOf(call, "ConnectionLost");
    }));

  test("without a connection it does nothing", () => createConnector("/nowhere").close());
});

describe("a limit", () => {
  test("ends the handshake with a server that takes connections and says nothing", () =>
    connected({}, async (connector) => {
      const bounds = limit(30);
      const fault = await faultOf(connector.reach(bounds), "Timeout");
      assert.match(fault.message, /^Connected, but no HTTP\/2 settings from the server within 30 ms$/);
      assert.equal(fault.details.phase, "handshake");
      assert.equal(bounds.phase, "handshake");
    }));

  test("ends a call without an answer, which is cancelled on the server", () =>
    connected({ onConnection: ({ send }) => send(settings) }, async (connector, { peers }) => {
      await connector.reach(limit());
      const fault = await faultOf(connector.call(request, sink(), limit(30)), "Timeout");
      assert.match(fault.message, /^No complete answer to the call within 30 ms$/);
      assert.equal(fault.details.phase, "call");
      await until(() => peers[0]!.frames.some(({ type }) => type === frameType.reset));
    }));

  test("of one call ends no other", () =>
    connected({ onConnection: ({ send }) => send(settings) }, async (connector, { peers }) => {
      const other = connector.call(request, sink(), limit());
      await faultOf(connector.call(request, sink(), limit(30)), "Timeout");
      peers[0]!.send(grpcAnswer(1, Uint8Array.of(1)));
      assert.equal((await other).code, 0);
    }));

  const part = (bytes: Buffer) => Buffer.concat(Array<Buffer>(3000).fill(bytes));
  const floods = {
    "PING frames": part(frame(frameType.ping, 0, 0, Buffer.alloc(8))),
    "frames of an extension": part(frame(99, 0, 0)),
    "empty data": part(frame(frameType.data, 0, 1)),
  };
  for (const [name, bytes] of Object.entries(floods)) {
    test(`holds while ${name} flood in`, () =>
      connected(
        {
          onConnection: ({ socket }) => {
            const flood = () => {
              if (!socket.destroyed) socket.write(bytes, () => setImmediate(flood));
            };
            socket.write(settings, flood);
          },
        },
        async (connector) => {
          await faultOf(connector.call(request, sink(), limit(100)), "Timeout");
        },
      ));
  }

  test("that is endless, or over what a timer takes, does not end at once", () =>
    connected(answering, async (connector) => {
      for (const timeoutMs of [Number.POSITIVE_INFINITY, 2 ** 40]) {
        assert.equal((await connector.call(request, sink(), limit(timeoutMs))).code, 0);
      }
    }));

  test("that is over ends the call at once", () =>
    connected({}, async (connector) => {
      await faultOf(connector.call(request, sink(), limit(-10)), "Timeout");
    }));
});

describe("a signal", () => {
  const reason = new Error("no longer wanted");
  const isReason = (error: unknown) => error === reason;

  test("that was aborted before opens nothing", () =>
    connected(answering, async (connector, { peers }) => {
      const signal = AbortSignal.abort(reason);
      await assert.rejects(connector.call(request, sink(), limit(long, signal)), isReason);
      await assert.rejects(connector.begin(request, sink(), limit(long, signal)), isReason);
      await assert.rejects(connector.reach(limit(long, signal)), isReason);
      assert.equal(peers.length, 0);
    }));

  test("ends the handshake and the call with its reason", async () => {
    for (const onConnection of [() => {}, answering.onConnection!]) {
      await connected({ onConnection }, async (connector, { peers }) => {
        const aborter = new AbortController();
        const call = connector.call(request, sink(), limit(long, aborter.signal));
        await until(() => (peers[0]?.frames.length ?? 0) > 3);
        aborter.abort(reason);
        await assert.rejects(call, isReason);
        await until(() => peers[0]!.frames.some(({ type }) => type === frameType.reset));
      });
    }
  });

  test("keeps no listener once the call is over", () =>
    connected(answering, async (connector) => {
      const { signal } = new AbortController();
      let listeners = 0;
      const { addEventListener, removeEventListener } = signal;
      signal.addEventListener = (...given: Parameters<typeof addEventListener>) => {
        listeners++;
        addEventListener.apply(signal, given);
      };
      signal.removeEventListener = (...given: Parameters<typeof removeEventListener>) => {
        listeners--;
        removeEventListener.apply(signal, given);
      };
      await connector.call(request, sink(), limit(long, signal));
      assert.equal(listeners, 0);
    }));
});

// Bun ends a test after 5 s unless told otherwise, and a machine that is busy may need them.
const slow = { timeout: 60_000 };

const nodePath = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));
const listener = `
  const server = require("node:net").createServer((socket) => {
    socket.on("error", () => {});
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
  });
  server.listen({ path: process.argv[1], backlog: 1 }, () => console.log("listens"));
`;

/** Runs a program until it has said something. */
async function startChild(command: string, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`${command} ended early`)));
    child.stdout!.once("data", () => resolve());
  });
  return child;
}

async function endChild(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  // Not child.kill(): after it with any signal Deno takes the child for ended.
  process.kill(child.pid!, "SIGKILL");
  await ended;
  child.stdout!.destroy();
}

/** A server that is stopped and takes no connection, with its listen queue full. */
async function withFullQueue(use: (path: string, child: ChildProcess) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    const path = join(folder, "s.sock");
    const child = await startChild(nodePath, ["-e", listener, path]);
    const waiting: Socket[] = [];
    try {
      process.kill(child.pid!, "SIGSTOP");
      for (let isFull = false; !isFull; ) {
        const socket = connect({ path });
        waiting.push(socket);
        isFull = await new Promise<boolean>((resolve) => {
          socket.once("connect", () => resolve(false));
          socket.once("error", () => resolve(true));
        });
      }
      await use(path, child);
    } finally {
      const closed = waiting.map((socket) => gone({ socket }));
      for (const socket of waiting) socket.destroy();
      await Promise.all(closed);
      await endChild(child);
    }
  });
}

// Bun reports EAGAIN and EPROTOTYPE as ECONNREFUSED, and no node: module tells them apart.
const isBun = process.versions.bun !== undefined;

describe("a listen queue that is full, as of a kubelet that hangs: EAGAIN", { skip: isBun }, () => {
  test("is a timeout of the connect phase, and no dead socket", slow, () =>
    withFullQueue(async (path) => {
      const connector = createConnector(path);
      for (const operation of [
        connector.reach(limit(100)),
        connector.call(request, sink(), limit(100)),
        connector.begin(request, sink(), limit(100)),
      ]) {
        const fault = await faultOf(operation, "Timeout");
        assert.match(fault.message, /listen queue is full/);
        assert.equal(fault.details.phase, "connect");
      }
      connector.close();
    }),
  );

  test("is asked again until there is room, and then it is no excuse any more", slow, () =>
    withFullQueue(async (path, child) => {
      const connector = createConnector(path);
      const reached = connector.reach(limit());
      const call = connector.call(request, sink(), limit(1000));
      setTimeout(() => process.kill(child.pid!, "SIGCONT"), 30);
      await reached;
      // The listener answers no calls.
      assert.equal((await faultOf(call, "Timeout")).details.phase, "call");
      connector.close();
    }),
  );

  test("is not asked any more once the limit, the signal or close() ended the wait", slow, () =>
    withFullQueue(async (path, child) => {
      const connector = createConnector(path);
      const aborter = new AbortController();
      await faultOf(connector.reach(limit(30)), "Timeout");
      const call = connector.call(request, sink(), limit(long, aborter.signal));
      setTimeout(() => aborter.abort(), 30);
      await assert.rejects(call, { name: "AbortError" });
      const closed = createConnector(path);
      const other = closed.reach(limit());
      setTimeout(() => closed.close(), 30);
      await faultOf(other, "ConnectionLost");
      process.kill(child.pid!, "SIGCONT");
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.equal(connector.bytesReceived + closed.bytesReceived, 0);
      connector.close();
    }),
  );
});

describe("no connection", () => {
  test("a listen queue that is full never passes for an answer, whatever the runtime calls it", slow, () =>
    withFullQueue(async (path) => {
      const connector = createConnector(path);
      await faultOf(connector.reach(limit(100)), isBun ? "SocketDead" : "Timeout");
      connector.close();
    }),
  );

  async function refused(path: string, code: Parameters<typeof faultOf>[1]): Promise<void> {
    const connector = createConnector(path);
    await faultOf(connector.reach(limit()), code);
    await faultOf(connector.call(request, sink(), limit()), code);
    connector.close();
  }

  test("nothing there, a file, a folder, a path that is too long", () =>
    inFolder(async (folder) => {
      await refused(join(folder, "none"), "SocketMissing");
      await refused(join(folder, "none/s.sock"), "SocketMissing");
      writeFileSync(join(folder, "file"), "");
      await refused(join(folder, "file"), "SocketNotASocket");
      await refused(join(folder, "file/s.sock"), "SocketMissing");
      await refused(folder, "SocketNotASocket");
      await refused(join(folder, "x".repeat(108)), "PathTooLong");
    }));

  test("b10: the socket's file outlived its server", () =>
    inFolder(async (folder) => {
      // As the kubelet does it: listen under another name and rename, so that closing leaves the file.
      const server = createServer();
      await listen(server, join(folder, "123456789"));
      renameSync(join(folder, "123456789"), join(folder, "pods-api.sock"));
      await new Promise((resolve) => server.close(resolve));
      await refused(join(folder, "pods-api.sock"), "SocketDead");
    }));

  test("a datagram socket", slow, async (t) => {
    if (spawnSync("python3", ["--version"]).status !== 0) return t.skip("no python3 to make one");
    const bind =
      "import socket, sys, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1]); " +
      "print('bound', flush=True); time.sleep(600)";
    await inFolder(async (folder) => {
      const path = join(folder, "s.sock");
      const child = await startChild("python3", ["-c", bind, path]);
      try {
        await refused(path, isBun ? "SocketDead" : "NotGrpc");
      } finally {
        await endChild(child);
      }
    });
  });

  test("b01: a socket that this user may not write to", async (t) => {
    if (process.seteuid === undefined) return t.skip("no way to become another user");
    await withRawServer(answering, async ({ path }) => {
      const isRoot = process.getuid?.() === 0;
      chmodSync(path, 0o555);
      chmodSync(join(path, ".."), 0o755);
      if (isRoot) process.seteuid!(65534);
      try {
        await refused(path, "PermissionDenied");
        const connector = createConnector(path);
        const { message } = await faultOf(connector.reach(limit()), "PermissionDenied");
        assert.match(message, /No permission to connect to .* as uid \d+ \(EACCES\).* mode 0555/);
        connector.close();
      } finally {
        if (isRoot) process.seteuid!(0);
      }
    });
  });

  test("b01: a folder on the way that is closed to this user", async (t) => {
    if (process.seteuid === undefined) return t.skip("no way to become another user");
    await withRawServer(answering, async ({ path }) => {
      const isRoot = process.getuid?.() === 0;
      if (isRoot) process.seteuid!(65534);
      else chmodSync(join(path, ".."), 0o000);
      try {
        await refused(path, "PermissionDenied");
      } finally {
        if (isRoot) process.seteuid!(0);
        else chmodSync(join(path, ".."), 0o700);
      }
    });
  });

  test("a path of digits is a path and no TCP port (c04)", () =>
    inFolder(async (folder) => {
      let calls = 0;
      const decoy = createServer((socket) => {
        calls++;
        socket.destroy();
      });
      await new Promise<void>((resolve) => decoy.listen(0, "127.0.0.1", resolve));
      const { port } = decoy.address() as { port: number };
      const server = await startRawServer(join(folder, "s.sock"), answering);
      renameSync(server.path, join(folder, String(port)));
      const before = process.cwd();
      process.chdir(folder);
      try {
        const connector = createConnector(String(port));
        await connector.reach(limit());
        connector.close();
      } finally {
        process.chdir(before);
        await server.close();
        rmSync(join(folder, String(port)), { force: true });
        await new Promise((resolve) => decoy.close(resolve));
      }
      assert.equal(calls, 0);
      assert.equal(server.peers.length, 1);
    }));
});
