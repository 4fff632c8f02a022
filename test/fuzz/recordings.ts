// The recorded answers, as frames.

import { readFileSync } from "node:fs";

/** Which call an answer belongs to. */
export type Method = "list" | "get" | "watch";

/** Everything a server sent on one connection, in Base64. */
export interface Recording {
  readonly name: string;
  readonly method: Method;
  readonly bytes: string;
}

/** One frame of a server. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** One recorded connection. */
export interface Conversation {
  readonly name: string;
  readonly method: Method;
  readonly frames: readonly Frame[];
}

const recordings = JSON.parse(readFileSync(new URL("recorded.json", import.meta.url), "utf8")) as readonly Recording[];

/** Every recording. */
export const conversations: readonly Conversation[] = recordings.map(({ name, method, bytes }) => ({
  name,
  method,
  frames: framesOf(Buffer.from(bytes, "base64")),
}));

/** The pods in the recorded answers, serialized. */
export const recordedPods: readonly Buffer[] = conversations
  .filter(({ method }) => method === "list")
  .flatMap(({ frames }) =>
    podsOf(Buffer.concat(frames.filter(({ type }) => type === 0).map(({ payload }) => payload))),
  );

function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 9 <= bytes.length; ) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    const [type, flags, stream] = [bytes[at + 3]!, bytes[at + 4]!, bytes.readUInt32BE(at + 5)];
    frames.push({ type, flags, stream, payload: bytes.subarray(at + 9, end) });
    at = end;
  }
  return frames;
}

/** Of one gRPC message with a ListPodsResponse. */
function podsOf(message: Buffer): Buffer[] {
  const pods: Buffer[] = [];
  for (let at = 5; at < message.length; ) {
    // Field 1, its length as a varint, the pod.
    let [length, shift] = [0, 0];
    do length |= (message[++at]! & 127) << (7 * shift++);
    while (message[at]! >= 128);
    pods.push(message.subarray(at + 1, at + 1 + length));
    at += 1 + length;
  }
  return pods;
}

/** A frame as it is on the wire; its length may lie. */
export function encode({ type, flags, stream, payload }: Frame, length: number = payload.length): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length & 0xffffff, 0, 3);
  head[3] = type & 255;
  head[4] = flags & 255;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}
