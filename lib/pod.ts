// Reads the part of a serialized core/v1 Pod that a probe speaks of (field numbers: proto/pod.proto). Everything else,
// environment and arguments first of all, is stepped over without being decoded.

import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Fault } from "./fault.ts";

/** One container's state as its status tells it. */
export interface ContainerState {
  readonly kind: "waiting" | "running" | "terminated" | "";
  readonly reason: string;
  readonly message: string;
  /** Of a terminated container; 0 else. */
  readonly exitCode: number;
  /** Of a terminated container that a signal ended; 0 else. */
  readonly signal: number;
}

/** One container's status. */
export interface ContainerStatus {
  readonly name: string;
  readonly init: boolean;
  readonly ready: boolean;
  readonly restarts: number;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
}

/** A pod as the kubelet lists it. Times are in ms since the epoch, null where the kubelet gives none. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `kubernetes.io/config.source`: `file` and `http` are static pods, `api` and "" are not. */
  readonly source: string;
  /** `kubernetes.io/config.seen`: when the kubelet took the pod up. */
  readonly seenMs: number | null;
  /** When its deletion was asked for. */
  readonly deletedMs: number | null;
  /** The node its spec names; only read of static pods. */
  readonly nodeName: string;
  /** The images its spec names, init containers first; only read of static pods. */
  readonly images: readonly string[];
  /** Pending, Running, Succeeded, Failed, Unknown, or "" where there is no status. */
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
  readonly startMs: number | null;
  /** The condition Ready. */
  readonly ready: boolean;
  /** When Ready last changed. */
  readonly readySinceMs: number | null;
  /** Why it is not ready, as the condition says. */
  readonly readyReason: string;
  readonly containers: readonly ContainerStatus[];
}

/** Whether the kubelet runs the pod from a manifest and not for the API server. */
export function isStatic(pod: Pod): boolean {
  return pod.source !== "" && pod.source !== "api";
}

const sourceKey = "kubernetes.io/config.source";
const seenKey = "kubernetes.io/config.seen";

/**
 * @param bytes A serialized core/v1 Pod.
 * @throws Fault Undecodable.
 */
export function decodePod(bytes: Uint8Array): Pod {
  const reader = new BinaryReader(bytes);
  const pod = {
    namespace: "",
    name: "",
    uid: "",
    source: "",
    seenMs: null as number | null,
    deletedMs: null as number | null,
    nodeName: "",
    images: [] as string[],
    phase: "",
    reason: "",
    message: "",
    startMs: null as number | null,
    ready: false,
    readySinceMs: null as number | null,
    readyReason: "",
    containers: [] as ContainerStatus[],
  };

  function readMetadata(field: number, type: WireType): boolean {
    if (type !== WireType.LengthDelimited) return false;
    if (field === 1) pod.name = reader.string();
    else if (field === 3) pod.namespace = reader.string();
    else if (field === 5) pod.uid = reader.string();
    else if (field === 9) pod.deletedMs = readTime(reader);
    else if (field === 12) readAnnotation();
    else return false;
    return true;
  }

  function readAnnotation(): void {
    let key = "";
    let value = "";
    readMessage(reader, (field, type) => {
      if (type !== WireType.LengthDelimited) return false;
      if (field === 1) key = readKey(reader);
      else if (field === 2 && (key === sourceKey || key === seenKey)) value = reader.string();
      else return false;
      return true;
    });
    if (key === sourceKey) pod.source = value;
    else if (key === seenKey) pod.seenMs = parseTime(value);
  }

  function readSpec(field: number, type: WireType): boolean {
    if (type === WireType.LengthDelimited && field === 10) {
      pod.nodeName = reader.string();
      return true;
    }
    if (type !== WireType.LengthDelimited || (field !== 2 && field !== 20)) return false;
    let image = "";
    readMessage(reader, (inner, innerType) => {
      if (inner !== 2 || innerType !== WireType.LengthDelimited) return false;
      image = reader.string();
      return true;
    });
    if (field === 20) pod.images.splice(initImages++, 0, image);
    else pod.images.push(image);
    return true;
  }

  function readStatus(field: number, type: WireType): boolean {
    if (type !== WireType.LengthDelimited) return false;
    if (field === 1) pod.phase = reader.string();
    else if (field === 2) readCondition();
    else if (field === 3) pod.message = reader.string();
    else if (field === 4) pod.reason = reader.string();
    else if (field === 7) pod.startMs = readTime(reader);
    else if (field === 8 || field === 10) pod.containers.push(readContainer(reader, field === 10));
    else return false;
    return true;
  }

  function readCondition(): void {
    let type = "";
    let status = "";
    let sinceMs: number | null = null;
    let reason = "";
    readMessage(reader, (field, wireType) => {
      if (wireType !== WireType.LengthDelimited) return false;
      if (field === 1) type = reader.string();
      else if (field === 2) status = reader.string();
      else if (field === 4) sinceMs = readTime(reader);
      else if (field === 5) reason = reader.string();
      else return false;
      return true;
    });
    if (type !== "Ready") return;
    pod.ready = status === "True";
    pod.readySinceMs = sinceMs;
    pod.readyReason = reason;
  }

  let initImages = 0;
  let specAt: number | undefined;
  try {
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (type !== WireType.LengthDelimited || field > 3) reader.skip(type, field);
      else if (field === 1) readMessage(reader, readMetadata);
      else if (field === 3) readMessage(reader, readStatus);
      else {
        specAt = reader.pos;
        reader.skip(type, field);
      }
    }
    if (specAt !== undefined && isStatic(pod)) {
      reader.pos = specAt;
      readMessage(reader, readSpec);
    }
  } catch (error) {
    throw undecodable(error);
  }
  return pod;
}

function undecodable(error: unknown): Fault {
  return new Fault("Undecodable", `A pod in the answer is not valid protobuf: ${(error as Error).message}`);
}

/** Reads a length-delimited message; `field` says whether it has read the field, which is stepped over if not. */
function readMessage(reader: BinaryReader, field: (number: number, type: WireType) => boolean): void {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new RangeError("premature EOF");
  while (reader.pos < end) {
    const [number, type] = reader.tag();
    if (!field(number, type)) reader.skip(type, number);
  }
  if (reader.pos !== end) throw new RangeError("a field over the end of its message");
}

/** Reads a map key, without decoding one that cannot be of use: all of ours are of one origin. */
function readKey(reader: BinaryReader): string {
  const bytes = reader.bytes();
  if (bytes.length !== sourceKey.length && bytes.length !== seenKey.length) return "";
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

function readTime(reader: BinaryReader): number | null {
  let seconds: number | null = null;
  let nanos = 0;
  readMessage(reader, (field, type) => {
    if (type !== WireType.Varint) return false;
    if (field === 1) seconds = Number(reader.int64());
    else if (field === 2) nanos = reader.int32();
    else return false;
    return true;
  });
  return seconds === null ? null : seconds * 1000 + Math.trunc(nanos / 1e6);
}

function readContainer(reader: BinaryReader, init: boolean): ContainerStatus {
  const status = {
    name: "",
    init,
    ready: false,
    restarts: 0,
    state: noState,
    lastState: noState,
  };
  readMessage(reader, (field, type) => {
    if (type === WireType.Varint) {
      if (field === 4) status.ready = reader.bool();
      else if (field === 5) status.restarts = reader.int32();
      else return false;
      return true;
    }
    if (type !== WireType.LengthDelimited) return false;
    if (field === 1) status.name = reader.string();
    else if (field === 2) status.state = readState(reader);
    else if (field === 3) status.lastState = readState(reader);
    else return false;
    return true;
  });
  return status;
}

const noState: ContainerState = Object.freeze({ kind: "", reason: "", message: "", exitCode: 0, signal: 0 });
const stateKinds = ["", "waiting", "running", "terminated"] as const;

function readState(reader: BinaryReader): ContainerState {
  let state = noState;
  readMessage(reader, (kindField, kindType) => {
    const kind = stateKinds[kindField];
    if (kindType !== WireType.LengthDelimited || kind === undefined) return false;
    const found = { ...noState, kind };
    readMessage(reader, (field, type) => {
      if (kind === "terminated" && type === WireType.Varint && field === 1) found.exitCode = reader.int32();
      else if (kind === "terminated" && type === WireType.Varint && field === 2) found.signal = reader.int32();
      else if (type !== WireType.LengthDelimited) return false;
      else if (field === (kind === "terminated" ? 3 : 1) && kind !== "running") found.reason = reader.string();
      else if (field === (kind === "terminated" ? 4 : 2) && kind !== "running") found.message = reader.string();
      else return false;
      return true;
    });
    state = found;
    return true;
  });
  return state;
}

/**
 * @param text A time of `kubernetes.io/config.seen`, RFC 3339 with up to nine digits after the second.
 * @returns ms since the epoch, or null for anything else.
 */
export function parseTime(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text)) return null;
  const ms = Date.parse(text.replace(/(\.\d{3})\d+/, "$1"));
  return Number.isNaN(ms) ? null : ms;
}

/** Finds the pods in a ListPodsResponse that comes in pieces, so that no more than one pod is held at a time. */
export interface ListDecoder {
  /** Size of the message. */
  readonly bytes: number;
  /** How many messages were read whole. */
  readonly messages: number;
  start(length: number): void;
  chunk(bytes: Uint8Array): void;
  end(): void;
}

/**
 * @param onPod Called with each serialized pod, in order; the bytes are valid only during the call.
 * @returns A sink for one message; its methods throw Fault Undecodable.
 */
export function createListDecoder(onPod: (bytes: Uint8Array) => void): ListDecoder {
  let total = 0;
  let left = 0; // of the message
  let complete = 0;
  // A field is read as tag, then length, then value; the first two are varints.
  let step: "tag" | "length" | "varint" | "value" = "tag";
  let varint = 0;
  let shift = 0;
  let wanted = 0; // bytes of the value still to come
  let isPod = false;
  let held: Uint8Array | undefined; // a pod that comes in several pieces
  let heldLength = 0;

  function fail(what: string): never {
    throw new Fault("Undecodable", `The listing is not valid protobuf: ${what}`);
  }

  function beginValue(length: number, pod: boolean): void {
    step = "value";
    wanted = length;
    isPod = pod;
    held = undefined;
    heldLength = 0;
  }

  function endVarint(value: number): void {
    if (step === "varint") {
      step = "tag";
    } else if (step === "tag") {
      const field = value >>> 3;
      const type = value & 7;
      if (field === 0) fail("a field with number 0");
      if (type === WireType.Varint) step = "varint";
      else if (type === WireType.Bit64) beginValue(8, false);
      else if (type === WireType.Bit32) beginValue(4, false);
      else if (type === WireType.LengthDelimited) {
        step = "length";
        isPod = field === 1;
      } else fail(`a field of wire type ${type}`);
    } else {
      beginValue(value, isPod);
    }
  }

  return {
    get bytes() {
      return total;
    },
    get messages() {
      return complete;
    },
    start(length) {
      if (complete > 0) fail("more than one message");
      total = left = length;
      step = "tag";
      varint = shift = 0;
    },
    chunk(bytes) {
      left -= bytes.length;
      let at = 0;
      for (;;) {
        if (step === "value") {
          const piece = bytes.subarray(at, at + wanted);
          if (wanted - piece.length > left) fail("a field over the end of its message");
          at += piece.length;
          wanted -= piece.length;
          if (isPod && (held !== undefined || wanted > 0)) {
            held ??= new Uint8Array(piece.length + wanted);
            held.set(piece, heldLength);
            heldLength += piece.length;
          }
          if (wanted > 0) return;
          step = "tag";
          if (isPod) onPod(held ?? piece);
          held = undefined;
        }
        if (at >= bytes.length) return;
        const byte = bytes[at++]!;
        if (shift > 63) fail("a varint of more than ten bytes");
        // Only the low 32 bits count of a value that is skipped; tags and lengths stay below them.
        if (shift < 28) varint |= (byte & 127) << shift;
        else if (shift === 28) varint += (byte & 127) * 2 ** 28;
        else if (step !== "varint" && (byte & 127) !== 0) fail("a number over 32 bits");
        shift += 7;
        if (byte >= 128) continue;
        const value = varint;
        varint = shift = 0;
        if (step !== "varint" && value >= 2 ** 32) fail("a number over 32 bits");
        endVarint(value);
      }
    },
    end() {
      if (step !== "tag" || shift !== 0) fail("it ends inside a field");
      complete++;
    },
  };
}
