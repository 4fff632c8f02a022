// One HTTP/2 connection to a unix socket, opened when it is needed and again when it is gone, and never waited for
// beyond a limit.

import { connect as connectSocket } from "node:net";
import { Fault } from "./fault.ts";
import { type GrpcCall, type GrpcRequest, type GrpcStatus, type MessageSink, startCall } from "./grpc.ts";
import { type Http2Connection, openHttp2 } from "./http2.ts";
import { refusal } from "./refusal.ts";
import { inspectSocket } from "./socket.ts";

/** What bounds an operation, and how far it has come. */
export interface Limit {
  /** When it ends, in ms as performance.now() counts. */
  readonly atMs: number;
  /** How long that was from its start, for the message. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  phase: "connect" | "handshake" | "call";
}

/** Calls on one socket path. Every method fails with a Fault, or with the reason of the limit's signal. */
export interface Connector {
  /** Connects, and waits for the server's settings. */
  reach(limit: Limit): Promise<void>;
  /** Makes one call, connecting if need be. */
  call(request: GrpcRequest, sink: MessageSink, limit: Limit): Promise<GrpcStatus>;
  /** Begins a call whose status is waited for without a limit, once it is under way. */
  begin(request: GrpcRequest, sink: MessageSink, limit: Limit): Promise<GrpcCall>;
  /** Stops or goes on reading. */
  setPaused(paused: boolean): void;
  readonly bytesReceived: number;
  close(): void;
}

interface Link {
  readonly http2: Http2Connection;
  /** Settles with the kernel's answer to connect(). */
  readonly connected: Promise<void>;
}

const listenQueueRetryMs = 10;

/** @param path Of the socket; nothing is opened yet. */
export function createConnector(path: string): Connector {
  let link: Link | undefined;
  let receivedBefore = 0;
  const running = new Set<Limit>();

  function open(): Link {
    if (link?.http2.usable) return link;
    receivedBefore += link?.http2.bytesReceived ?? 0;
    link = undefined;
    inspectSocket(path);
    const socket = connectSocket(path);
    let isConnected = false;
    const connected = new Promise<void>((resolve, reject) => {
      socket.once("connect", () => {
        isConnected = true;
        resolve();
      });
      // Registered before the HTTP/2 layer's own listener: only here is it known that nothing was connected yet.
      socket.once("error", (error: NodeJS.ErrnoException) => {
        if (isConnected) return;
        const fault = refusal(path, error, "connect to");
        reject(fault);
        http2.close(fault);
      });
    });
    connected.catch(() => {});
    const http2 = openHttp2(socket, () => {
      const now = performance.now();
      for (const limit of running) if (now >= limit.atMs) throw timeoutFault(limit);
    });
    link = { http2, connected };
    return link;
  }

  /** Waits for `work` no longer than the limit. */
  async function within<T>(limit: Limit, work: Promise<T>): Promise<T> {
    work.catch(() => {});
    limit.signal?.throwIfAborted();
    let timer: NodeJS.Timeout | undefined;
    let abort = () => {};
    const end = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(timeoutFault(limit)), Math.max(0, limit.atMs - performance.now()));
      abort = () => reject(limit.signal!.reason);
    });
    limit.signal?.addEventListener("abort", abort);
    running.add(limit);
    try {
      return await Promise.race([work, end]);
    } finally {
      clearTimeout(timer);
      running.delete(limit);
      limit.signal?.removeEventListener("abort", abort);
    }
  }

  /** Follows a link to the server's settings. */
  async function follow({ http2, connected }: Link, limit: Limit): Promise<void> {
    limit.phase = "connect";
    await connected;
    limit.phase = "handshake";
    await http2.ready;
    limit.phase = "call";
  }

  /** Opens a link on which the kernel has taken the connection; while its listen queue is full, it is asked again. */
  async function openUnlessFull(limit: Limit): Promise<Link> {
    for (;;) {
      const opened = open();
      try {
        limit.phase = "connect";
        await opened.connected;
        return opened;
      } catch (error) {
        if (!(error instanceof Fault) || error.details.errno !== "EAGAIN") throw error;
        await new Promise((resolve) => setTimeout(resolve, listenQueueRetryMs));
        if (performance.now() >= limit.atMs) throw error;
      }
    }
  }

  async function begin(request: GrpcRequest, sink: MessageSink, limit: Limit): Promise<GrpcCall> {
    // Sent with the connection's first bytes instead of after the server's settings: that saves a turn.
    let opened = open();
    let started = startCall(opened.http2, request, sink);
    started.status.catch(() => {});
    try {
      await opened.connected;
    } catch (error) {
      if (!(error instanceof Fault) || error.details.errno !== "EAGAIN") throw error;
      opened = await openUnlessFull(limit);
      started = startCall(opened.http2, request, sink);
      started.status.catch(() => {});
    }
    // A server may answer and close within one read: then its answer counts, not the end of the connection.
    await Promise.race([follow(opened, limit), started.status]);
    limit.phase = "call";
    return started;
  }

  return {
    async reach(limit) {
      await within(
        limit,
        openUnlessFull(limit).then((opened) => follow(opened, limit)),
      );
    },
    async call(request, sink, limit) {
      let started: GrpcCall | undefined;
      try {
        return await within(
          limit,
          begin(request, sink, limit).then((call) => {
            started = call;
            return call.status;
          }),
        );
      } catch (error) {
        started?.cancel();
        throw error;
      }
    },
    async begin(request, sink, limit) {
      return within(limit, begin(request, sink, limit));
    },
    setPaused(paused) {
      link?.http2.setPaused(paused);
    },
    get bytesReceived() {
      return receivedBefore + (link?.http2.bytesReceived ?? 0);
    },
    close() {
      link?.http2.close();
    },
  };
}

function timeoutFault({ phase, timeoutMs }: Limit): Fault {
  const what = {
    connect: "No connection",
    handshake: "Connected, but no HTTP/2 settings from the server",
    call: "No complete answer to the call",
  }[phase];
  return new Fault("Timeout", `${what} within ${Math.round(timeoutMs)} ms`, { phase });
}
