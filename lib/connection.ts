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
  /** Bytes received so far, on all connections. */
  readonly bytesReceived: number;
  /** Ends every operation with ConnectionLost, those to come as well. */
  close(): void;
}

interface Link {
  readonly http2: Http2Connection;
  /** Settles with the kernel's answer to connect(). */
  readonly connected: Promise<void>;
}

/** One operation under way. */
interface Attempt {
  readonly limit: Limit;
  isOver: boolean;
  call?: GrpcCall;
  /** Why the kernel took no connection so far. */
  refused?: Fault;
  /** Runs out when it is asked again. */
  retry?: NodeJS.Timeout;
}

const listenQueueRetryMs = 10;
const longestTimerMs = 2 ** 31 - 1; // a longer one would fire at once

/** @param path Of the socket; nothing is opened yet. */
export function createConnector(path: string): Connector {
  let link: Link | undefined;
  // Those that wait for the end of a call after a GOAWAY, and the one in use.
  const links = new Set<Link>();
  let receivedBefore = 0;
  let closed = false;

  function open(): Link {
    if (closed) throw closedFault();
    if (link?.http2.usable) return link;
    inspectSocket(path);
    // Never a bare string: the runtime would take one of digits for a TCP port.
    const socket = connectSocket({ path });
    const connect = new Promise<void>((resolve) => {
      socket.once("connect", resolve);
    });
    const http2 = openHttp2(socket, (error) => refusal(path, error, "connect to"));
    const opened: Link = { http2, connected: Promise.race([connect, http2.ready]) };
    opened.connected.catch(() => {});
    links.add(opened);
    socket.once("close", () => {
      links.delete(opened);
      receivedBefore += http2.bytesReceived;
    });
    link = opened;
    return opened;
  }

  /** Does `work` within the limit, and gives up what it has begun if that fails. */
  async function within<T>(limit: Limit, work: (attempt: Attempt) => Promise<T>): Promise<T> {
    limit.signal?.throwIfAborted();
    limit.phase = "connect";
    const attempt: Attempt = { limit, isOver: false };
    let timer: NodeJS.Timeout | undefined;
    let abort = () => {};
    const end = new Promise<never>((_, reject) => {
      const leftMs = Math.min(longestTimerMs, Math.max(0, limit.atMs - performance.now()));
      timer = setTimeout(() => reject(attempt.refused ?? timeoutFault(limit)), leftMs);
      abort = () => reject(limit.signal!.reason);
    });
    limit.signal?.addEventListener("abort", abort);
    try {
      return await Promise.race([work(attempt), end]);
    } catch (error) {
      attempt.call?.cancel();
      throw error;
    } finally {
      attempt.isOver = true;
      clearTimeout(timer);
      clearTimeout(attempt.retry);
      limit.signal?.removeEventListener("abort", abort);
    }
  }

  /**
   * Opens a link, and makes use of it before it is connected. While the server's listen queue is full, which the kernel
   * tells at once, it is asked again.
   */
  async function connectUnlessFull(attempt: Attempt, use: (opened: Link) => void): Promise<Link> {
    for (;;) {
      const opened = open();
      use(opened);
      try {
        await opened.connected;
        delete attempt.refused;
        return opened;
      } catch (error) {
        if (attempt.isOver || !(error instanceof Fault) || error.details.errno !== "EAGAIN") throw error;
        attempt.refused = error;
      }
      await new Promise((resolve) => {
        attempt.retry = setTimeout(resolve, listenQueueRetryMs);
      });
    }
  }

  async function handshake({ http2 }: Link, { limit }: Attempt): Promise<void> {
    limit.phase = "handshake";
    await http2.ready;
    limit.phase = "call";
  }

  async function begin(request: GrpcRequest, sink: MessageSink, attempt: Attempt): Promise<GrpcCall> {
    // Sent with the connection's first bytes instead of after the server's settings: that saves a turn.
    const opened = await connectUnlessFull(attempt, ({ http2 }) => {
      attempt.call = startCall(http2, request, sink);
      attempt.call.status.catch(() => {});
    });
    const call = attempt.call!;
    // A server may answer and close within one read: then its answer counts, not the end of the connection.
    await Promise.race([handshake(opened, attempt), call.status]);
    attempt.limit.phase = "call";
    return call;
  }

  return {
    reach(limit) {
      return within(limit, async (attempt) => handshake(await connectUnlessFull(attempt, () => {}), attempt));
    },
    call(request, sink, limit) {
      return within(limit, async (attempt) => (await begin(request, sink, attempt)).status);
    },
    begin(request, sink, limit) {
      return within(limit, (attempt) => begin(request, sink, attempt));
    },
    get bytesReceived() {
      let sum = receivedBefore;
      for (const { http2 } of links) sum += http2.bytesReceived;
      return sum;
    },
    close() {
      closed = true;
      for (const { http2 } of links) http2.close(closedFault());
    },
  };
}

function closedFault(): Fault {
  return new Fault("ConnectionLost", "The client is closed");
}

function timeoutFault({ phase, timeoutMs }: Limit): Fault {
  const what = {
    connect: "No connection",
    handshake: "Connected, but no HTTP/2 settings from the server",
    call: "No complete answer to the call",
  }[phase];
  return new Fault("Timeout", `${what} within ${Math.round(timeoutMs)} ms`, { phase });
}
