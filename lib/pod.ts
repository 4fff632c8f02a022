// Reads the part of a serialized core/v1 Pod that a probe speaks of (field numbers: proto/pod.proto). Everything else,
// environment and arguments first of all, is stepped over without being decoded.

import { Fault } from "./fault.ts";
import {
  type Cursor,
  lengthDelimited,
  ProtobufError,
  readEnd,
  readInt32,
  readText,
  readVarint,
  skipField,
} from "./protobuf.ts";

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
  /** The images of the containers of its spec, init containers left out; only read of static pods. */
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

/**
 * Whether the kubelet runs the pod from a manifest and not for the API server.
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { isStatic } from "./mod.ts";
 *
 * assert.ok(isStatic({ source: "file" }));
 * assert.ok(!isStatic({ source: "api" }));
 * ```
 */
export function isStatic(pod: Pick<Pod, "source">): boolean {
  return pod.source !== "" && pod.source !== "api";
}

/** No pod's. GetPod looks a UID up and copies nothing, so asking for it is the cheapest call that costs a token. */
export const impossibleUid = "kubelet-probe-no-such-pod";

/** How much of a pod is decoded. */
export type Depth = "all" | "static";

/** The name of one field of a pod. */
export type PodField = keyof Pod;

/** Which parts of a pod are decoded; a part that is left out reads as one that is not there. */
export interface PodParts {
  readonly annotations: boolean;
  readonly metadata: boolean;
  readonly spec: boolean;
  readonly status: boolean;
  /** Of the status; most of the work is theirs. */
  readonly containers: boolean;
}

const allParts: PodParts = { annotations: true, metadata: true, spec: true, status: true, containers: true };

interface Draft {
  namespace: string;
  name: string;
  uid: string;
  source: string;
  seenMs: number | null;
  deletedMs: number | null;
  nodeName: string;
  images: string[];
  phase: string;
  reason: string;
  message: string;
  startMs: number | null;
  ready: boolean;
  readySinceMs: number | null;
  readyReason: string;
  containers: ContainerStatus[];
}

// A tag is the field's number times eight plus its wire type; these name the fields of proto/pod.proto.
const podTags = { metadata: 10, spec: 18, status: 26 };

/**
 * @param bytes A serialized core/v1 Pod.
 * @param depth With `static`, a pod that is not static has a source and nothing else.
 * @param parts What of it is decoded, everything by default.
 * @throws Fault Undecodable, or AnswerTooLarge for a pod of fields without end.
 */
export function decodePod(bytes: Uint8Array, depth: Depth = "all", parts: PodParts = allParts): Pod {
  const cursor: PodCursor = { bytes, at: 0, fields: 0 };
  const end = bytes.length;
  const pod: Draft = {
    namespace: "",
    name: "",
    uid: "",
    source: "",
    seenMs: null,
    deletedMs: null,
    nodeName: "",
    images: [],
    phase: "",
    reason: "",
    message: "",
    startMs: null,
    ready: false,
    readySinceMs: null,
    readyReason: "",
    containers: [],
  };
  let metadata = 0;
  let spec = 0;
  let status = 0;
  try {
    while (cursor.at < end) {
      const tag = readTag(cursor, end);
      if (tag === podTags.metadata) metadata = cursor.at;
      else if (tag === podTags.spec) spec = cursor.at;
      else if (tag === podTags.status) status = cursor.at;
      skipField(cursor, tag, end);
    }
    // What a pod is decides what is read of it, and stands in its metadata.
    if (metadata > 0 && parts.annotations) {
      cursor.at = metadata;
      readAnnotations(cursor, readEnd(cursor, end), pod);
    }
    if (depth === "static" && !isStatic(pod)) return pod;
    if (metadata > 0 && parts.metadata) {
      cursor.at = metadata;
      readMetadata(cursor, readEnd(cursor, end), pod);
    }
    if (spec > 0 && parts.spec && isStatic(pod)) {
      cursor.at = spec;
      readSpec(cursor, readEnd(cursor, end), pod);
    }
    if (status > 0 && parts.status) {
      cursor.at = status;
      readStatus(cursor, readEnd(cursor, end), pod, parts.containers);
    }
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw new Fault("Undecodable", `A pod in the answer is not valid protobuf: ${error.message}`);
  }
  return pod;
}

// A real pod has some thousand. One of megabytes with nothing but fields of two bytes would be read past every deadline,
// and its containers would take gigabytes.
const maxFields = 100_000;

interface PodCursor extends Cursor {
  /** How many were read so far. */
  fields: number;
}

function readTag(cursor: PodCursor, end: number): number {
  if (++cursor.fields > maxFields) {
    throw new Fault("AnswerTooLarge", `A pod in the answer has over ${maxFields} fields`);
  }
  return readVarint(cursor, end);
}

const sourceKey = "kubernetes.io/config.source";
const seenKey = "kubernetes.io/config.seen";

function readAnnotations(cursor: PodCursor, end: number, pod: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 98) readAnnotation(cursor, readEnd(cursor, end), pod);
    else skipField(cursor, tag, end);
  }
}

/** A map's entry has its key in field 1 and its value in field 2. */
function readAnnotation(cursor: PodCursor, end: number, pod: Draft): void {
  let key = "";
  let value = 0;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 10) {
      const start = cursor.at;
      const length = readEnd(cursor, end) - cursor.at;
      cursor.at = start;
      // Only keys of these lengths can be ours.
      if (length === sourceKey.length || length === seenKey.length) key = readText(cursor, end);
      else skipField(cursor, tag, end);
    } else {
      if (tag === 18) value = cursor.at;
      skipField(cursor, tag, end);
    }
  }
  if (value === 0 || (key !== sourceKey && key !== seenKey)) return;
  cursor.at = value;
  const text = readText(cursor, end);
  cursor.at = end;
  if (key === sourceKey) pod.source = text;
  else pod.seenMs = parseTime(text);
}

function readMetadata(cursor: PodCursor, end: number, pod: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 10) pod.name = readText(cursor, end);
    else if (tag === 26) pod.namespace = readText(cursor, end);
    else if (tag === 42) pod.uid = readText(cursor, end);
    else if (tag === 74) pod.deletedMs = readTime(cursor, readEnd(cursor, end));
    else skipField(cursor, tag, end);
  }
}

function readSpec(cursor: PodCursor, end: number, pod: Draft): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 82) pod.nodeName = readText(cursor, end);
    else if (tag === 18) pod.images.push(readImage(cursor, readEnd(cursor, end)));
    else skipField(cursor, tag, end);
  }
}

function readImage(cursor: PodCursor, end: number): string {
  let image = "";
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 18) image = readText(cursor, end);
    else skipField(cursor, tag, end);
  }
  return image;
}

function readStatus(cursor: PodCursor, end: number, pod: Draft, containers: boolean): void {
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 10) pod.phase = readText(cursor, end);
    else if (tag === 18) readCondition(cursor, readEnd(cursor, end), pod);
    else if (tag === 26) pod.message = readText(cursor, end);
    else if (tag === 34) pod.reason = readText(cursor, end);
    else if (tag === 58) pod.startMs = readTime(cursor, readEnd(cursor, end));
    else if (!containers) skipField(cursor, tag, end);
    else if (tag === 66) pod.containers.push(readContainer(cursor, readEnd(cursor, end), false));
    else if (tag === 82) pod.containers.push(readContainer(cursor, readEnd(cursor, end), true));
    else skipField(cursor, tag, end);
  }
}

function readCondition(cursor: PodCursor, end: number, pod: Draft): void {
  let type = "";
  let status = "";
  let sinceMs: number | null = null;
  let reason = "";
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 10) type = readText(cursor, end);
    else if (tag === 18) status = readText(cursor, end);
    else if (tag === 34) sinceMs = readTime(cursor, readEnd(cursor, end));
    else if (tag === 42) reason = readText(cursor, end);
    else skipField(cursor, tag, end);
  }
  if (type !== "Ready") return;
  pod.ready = status === "True";
  pod.readySinceMs = sinceMs;
  pod.readyReason = reason;
}

const latestMs = 8.64e15; // of a Date

/** Null for no time, for one that is no date, and for one before 1970, which reads as a very late one. */
function readTime(cursor: PodCursor, end: number): number | null {
  let seconds: number | null = null;
  let nanos = 0;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 8) seconds = readVarint(cursor, end);
    else if (tag === 16) nanos = readInt32(cursor, end);
    else skipField(cursor, tag, end);
  }
  if (seconds === null) return null;
  const ms = seconds * 1000 + Math.trunc(nanos / 1e6);
  return ms <= latestMs ? ms : null;
}

function readContainer(cursor: PodCursor, end: number, init: boolean): ContainerStatus {
  const status = { name: "", init, ready: false, restarts: 0, state: noState, lastState: noState };
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 10) status.name = readText(cursor, end);
    else if (tag === 18) status.state = readState(cursor, readEnd(cursor, end));
    else if (tag === 26) status.lastState = readState(cursor, readEnd(cursor, end));
    else if (tag === 32) status.ready = readVarint(cursor, end) !== 0;
    else if (tag === 40) status.restarts = readInt32(cursor, end);
    else skipField(cursor, tag, end);
  }
  return status;
}

const noState: ContainerState = Object.freeze({ kind: "", reason: "", message: "", exitCode: 0, signal: 0 });

function readState(cursor: PodCursor, end: number): ContainerState {
  let state = noState;
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 10) state = readWaiting(cursor, readEnd(cursor, end));
    else if (tag === 26) state = readTerminated(cursor, readEnd(cursor, end));
    else {
      if (tag === 18) state = { ...noState, kind: "running" };
      skipField(cursor, tag, end);
    }
  }
  return state;
}

function readWaiting(cursor: PodCursor, end: number): ContainerState {
  const state = { ...noState, kind: "waiting" as const };
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 10) state.reason = readText(cursor, end);
    else if (tag === 18) state.message = readText(cursor, end);
    else skipField(cursor, tag, end);
  }
  return state;
}

function readTerminated(cursor: PodCursor, end: number): ContainerState {
  const state = { ...noState, kind: "terminated" as const };
  while (cursor.at < end) {
    const tag = readTag(cursor, end);
    if (tag === 8) state.exitCode = readInt32(cursor, end);
    else if (tag === 16) state.signal = readInt32(cursor, end);
    else if (tag === 26) state.reason = readText(cursor, end);
    else if (tag === 34) state.message = readText(cursor, end);
    else skipField(cursor, tag, end);
  }
  return state;
}

/**
 * @param text A time of `kubernetes.io/config.seen`, RFC 3339 with up to nine digits after the second.
 * @returns ms since the epoch, or null for anything else.
 */
export function parseTime(text: string): number | null {
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (parts === null) return null;
  // Date.parse is bound to take three digits behind the second, and no other number.
  const ms = Date.parse(`${parts[1]}.${(parts[2] ?? "").slice(0, 3).padEnd(3, "0")}${parts[3]}`);
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
  // Where the pieces of a pod are put together that comes in several: most do, and each would leave its own buffer behind.
  let scratch = new Uint8Array(0);
  let held = 0; // bytes of it that are there

  function fail(what: string): never {
    throw new Fault("Undecodable", `The listing is not valid protobuf: ${what}`);
  }

  function beginValue(length: number, pod: boolean): void {
    step = "value";
    wanted = length;
    isPod = pod;
    held = 0;
  }

  function endVarint(value: number): void {
    if (step === "varint") {
      step = "tag";
    } else if (step === "tag") {
      const field = value >>> 3;
      const type = value & 7;
      if (field === 0) fail("a field with number 0");
      if (type === 0) step = "varint";
      else if (type === 1) beginValue(8, false);
      else if (type === 5) beginValue(4, false);
      else if (type === lengthDelimited) {
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
          if (isPod && (held > 0 || wanted > 0)) {
            const size = held + piece.length + wanted;
            if (scratch.length < size) scratch = new Uint8Array(Math.max(size, 2 * scratch.length));
            scratch.set(piece, held);
            held += piece.length;
          }
          if (wanted > 0) return;
          step = "tag";
          if (isPod) onPod(held > 0 ? scratch.subarray(0, held) : piece);
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
