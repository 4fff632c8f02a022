import type { Code } from "./codes.ts";

/** Facts beside a fault's message; which ones there are depends on the code. */
export interface FaultDetails {
  /** What was under way: `connect`, `handshake` (no HTTP/2 settings yet) or `call`. */
  readonly phase?: "connect" | "handshake" | "call";
  /** The gRPC status the server answered with, 1 to 16. */
  readonly grpcStatus?: number;
  /** The gRPC message the server answered with, decoded, otherwise as it came. */
  readonly grpcMessage?: string;
  /** The operating system's error name, such as ECONNREFUSED. */
  readonly errno?: string;
  /** Of RateLimited: the client's own budget was used up, and the kubelet was not asked. */
  readonly own?: true;
  /** Of InventoryUnavailable: the code of what was in the way. */
  readonly cause?: Code;
}

/**
 * A failure with a code of the code table. Everything below the runner throws this and nothing else on purpose; any
 * other error that reaches the runner is a bug and becomes InternalError.
 */
export class Fault extends Error {
  override readonly name = "Fault";
  readonly code: Code;
  readonly details: FaultDetails;

  constructor(code: Code, message: string, details: FaultDetails = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}
