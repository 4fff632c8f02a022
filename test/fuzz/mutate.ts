// Recorded answers with something done to them: to their frames, to their bytes, to the pods in them.

import fc from "fast-check";
import { type Conversation, conversations, encode, type Frame, type Method, recordedPods } from "./recordings.ts";

/** What a server sends, in the pieces in which it comes. */
export interface Input {
  readonly kind: "frames" | "bytes" | "pod" | "event";
  readonly method: Method;
  readonly chunks: readonly Buffer[];
  /** Of `pod`: the pod that was put into the answer, for whoever wants to read it another way. */
  readonly pod?: Buffer;
}

type Edit<T> = (value: T) => T;

/** Bytes at the edges of what protobuf, HPACK and HTTP/2 make of one. */
const byte = fc.oneof(
  fc.constantFrom(0, 1, 7, 8, 10, 18, 26, 0x1f, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0x82, 0xbe, 0xfe, 0xff),
  fc.nat(255),
);
const somewhere = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
const at = (share: number, length: number) => Math.floor(share * length);
const someBytes = fc.array(byte, { minLength: 0, maxLength: 24 }).map((values) => Buffer.from(values));

function splice(bytes: Buffer, start: number, removed: number, added: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, start), added, bytes.subarray(start + removed)]);
}

const byteEdit: fc.Arbitrary<Edit<Buffer>> = fc.oneof(
  fc.tuple(somewhere, byte).map(([where, value]) => (bytes: Buffer) => {
    return splice(bytes, at(where, bytes.length), 1, Buffer.from([value]));
  }),
  fc.tuple(somewhere, fc.nat(7)).map(([where, bit]) => (bytes: Buffer) => {
    if (bytes.length === 0) return bytes;
    const start = at(where, bytes.length);
    return splice(bytes, start, 1, Buffer.from([bytes[start]! ^ (1 << bit)]));
  }),
  fc.tuple(somewhere, someBytes).map(([where, added]) => (bytes: Buffer) => {
    return splice(bytes, at(where, bytes.length), 0, added);
  }),
  fc.tuple(somewhere, fc.nat(40)).map(([where, count]) => (bytes: Buffer) => {
    return splice(bytes, at(where, bytes.length), count, Buffer.alloc(0));
  }),
  somewhere.map((where) => (bytes: Buffer) => bytes.subarray(0, at(where, bytes.length))),
  // A part of it once more, or many times.
  fc.tuple(somewhere, fc.integer({ min: 1, max: 64 }), fc.constantFrom(1, 2, 30)).map(([where, count, times]) => {
    return (bytes: Buffer) => {
      const start = at(where, bytes.length);
      const part = bytes.subarray(start, start + count);
      return splice(bytes, start, 0, Buffer.concat(Array.from({ length: times }, () => part)));
    };
  }),
);

/** A varint of any length up to eleven bytes, also one that is longer than it need be. */
const varint = fc
  .tuple(fc.array(fc.nat(127), { minLength: 0, maxLength: 10 }), fc.nat(127))
  .map(([more, last]) => Buffer.from([...more.map((value) => value | 128), last]));

/** Where the fields of a message begin and end, also those of the messages in it, as far as they can be read. */
function fieldsOf(bytes: Buffer, start = 0, end = bytes.length, depth = 0): { start: number; end: number }[] {
  const fields: { start: number; end: number }[] = [];
  let position = start;
  const read = () => {
    let [value, factor] = [0, 1];
    for (;;) {
      if (position >= end) return Number.NaN;
      const next = bytes[position++]!;
      value += (next & 127) * factor;
      factor *= 128;
      if (next < 128) return value;
    }
  };
  while (position < end) {
    const from = position;
    const type = read() % 8;
    if (type === 0) read();
    else if (type === 1) position += 8;
    else if (type === 5) position += 4;
    else if (type === 2) {
      const length = read();
      const inner = position;
      position += length;
      if (position <= end && depth < 6) fields.push(...fieldsOf(bytes, inner, position, depth + 1));
    } else return fields;
    if (!(position <= end)) return fields;
    fields.push({ start: from, end: position });
  }
  return fields;
}

/** To one field of a serialized message: away, twice, another number or type, another length, other content. */
const fieldEdit: fc.Arbitrary<Edit<Buffer>> = fc
  .tuple(somewhere, fc.constantFrom("drop", "twice", "tag", "length", "value", "grow", "many"), varint, byte, someBytes)
  .map(([where, what, number, value, content]) => (bytes: Buffer) => {
    const fields = fieldsOf(bytes);
    const field = fields[at(where, fields.length)];
    if (field === undefined) return Buffer.concat([bytes, content]);
    const { start, end } = field;
    const whole = bytes.subarray(start, end);
    switch (what) {
      case "drop":
        return splice(bytes, start, end - start, Buffer.alloc(0));
      case "twice":
        return splice(bytes, start, 0, whole);
      case "tag":
        return splice(bytes, start, 1, Buffer.from([value]));
      case "length":
        return splice(bytes, start + 1, 1, number);
      case "value":
        return splice(bytes, start, end - start, Buffer.concat([whole.subarray(0, 1), number, content]));
      case "grow":
        return splice(bytes, end, 0, content);
      default:
        return splice(bytes, start, 0, Buffer.concat(Array.from({ length: 200 }, () => whole.subarray(0, 64))));
    }
  });

/** A pod of a recording after some edits; whether the edits leave the lengths around them right is up to chance. */
const pod = fc
  .tuple(fc.constantFrom(...recordedPods), fc.array(fc.oneof(fieldEdit, byteEdit), { minLength: 0, maxLength: 4 }))
  .map(([bytes, edits]) => edits.reduce<Buffer>((edited, edit) => edit(edited), bytes));

const strangeFrame: fc.Arbitrary<Frame> = fc.record({
  type: fc.oneof(fc.nat(10), fc.nat(255)),
  flags: fc.oneof(fc.constantFrom(0, 1, 4, 5, 8, 9, 12, 32, 45), fc.nat(255)),
  stream: fc.oneof(fc.constantFrom(0, 1, 2, 3, 0x7fffffff, 0x80000001), fc.nat(0xffffffff)),
  payload: someBytes,
});

type Frames = readonly Frame[];

const frameEdit: fc.Arbitrary<Edit<Frames>> = fc.oneof(
  somewhere.map((where) => (frames: Frames) => frames.toSpliced(at(where, frames.length), 1)),
  fc.tuple(somewhere, strangeFrame).map(([where, frame]) => (frames: Frames) => {
    return frames.toSpliced(at(where, frames.length + 1), 0, frame);
  }),
  fc.tuple(somewhere, somewhere).map(([from, to]) => (frames: Frames) => {
    const moved = frames[at(from, frames.length)];
    if (moved === undefined) return frames;
    return frames.toSpliced(at(from, frames.length), 1).toSpliced(at(to, frames.length), 0, moved);
  }),
  fc.tuple(somewhere, fc.constantFrom(1, 2, 200)).map(([where, times]) => (frames: Frames) => {
    const frame = frames[at(where, frames.length)];
    // What is much larger shows no more and takes memory that is to be the client's.
    if (frame === undefined || frame.payload.length * times > 65536 || frames.length > 500) return frames;
    return frames.toSpliced(at(where, frames.length), 0, ...Array(times).fill(frame));
  }),
  fc
    .tuple(somewhere, fc.constantFrom("type", "flags", "stream", "payload"), strangeFrame)
    .map(([where, key, { [key]: value }]) => (frames: Frames) => {
      const frame = frames[at(where, frames.length)];
      return frame === undefined ? frames : frames.with(at(where, frames.length), { ...frame, [key]: value });
    }),
  // A frame in two, as a server that fills its windows sends it.
  fc.tuple(somewhere, somewhere).map(([where, cut]) => (frames: Frames) => {
    const frame = frames[at(where, frames.length)];
    if (frame === undefined) return frames;
    const length = at(cut, frame.payload.length);
    return frames.toSpliced(
      at(where, frames.length),
      1,
      { ...frame, flags: frame.flags & ~5, payload: frame.payload.subarray(0, length) },
      { ...frame, type: frame.type === 1 ? 9 : frame.type, payload: frame.payload.subarray(length) },
    );
  }),
  // Padding, right or wrong.
  fc.tuple(somewhere, fc.nat(255), fc.boolean()).map(([where, length, right]) => (frames: Frames) => {
    const frame = frames[at(where, frames.length)];
    if (frame === undefined) return frames;
    const payload = Buffer.concat([Buffer.from([length]), frame.payload, Buffer.alloc(right ? length : 0)]);
    return frames.with(at(where, frames.length), { ...frame, flags: frame.flags | 8, payload });
  }),
  fc.tuple(somewhere, fc.oneof(byteEdit, fieldEdit)).map(([where, edit]) => (frames: Frames) => {
    const frame = frames[at(where, frames.length)];
    return frame === undefined
      ? frames
      : frames.with(at(where, frames.length), { ...frame, payload: edit(frame.payload) });
  }),
);

/** Cut at these places of the whole. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const bounds = [0, ...places.map((place) => at(place, bytes.length)).sort((a, b) => a - b), bytes.length];
  return bounds.slice(1).flatMap((end, index) => {
    const part = bytes.subarray(bounds[index]!, end);
    return part.length === 0 ? [] : [part];
  });
}

const places = fc.array(somewhere, { minLength: 0, maxLength: 6 });
const conversation = fc.constantFrom(...conversations);

const editedFrames = fc
  .tuple(conversation, fc.array(frameEdit, { minLength: 1, maxLength: 5 }), places)
  .map(([{ method, frames }, edits, cuts]): Input => {
    const edited = edits.reduce((all: Frames, edit) => edit(all), frames);
    return { kind: "frames", method, chunks: cut(Buffer.concat(edited.map((frame) => encode(frame))), cuts) };
  });

const editedBytes = fc
  .tuple(conversation, fc.array(byteEdit, { minLength: 1, maxLength: 5 }), places)
  .map(([{ method, frames }, edits, cuts]): Input => {
    const whole = Buffer.concat(frames.map((frame) => encode(frame)));
    return {
      kind: "bytes",
      method,
      chunks: cut(
        edits.reduce<Buffer>((bytes, edit) => edit(bytes), whole),
        cuts,
      ),
    };
  });

/** A whole answer, right in everything, around a body. */
function around({ frames }: Conversation, body: Buffer): Buffer {
  const first = frames.findIndex(({ type }) => type === 0);
  const last = frames.findLastIndex(({ type }) => type === 0);
  const parts: Buffer[] = [];
  for (let start = 0; start < body.length; start += 16384) {
    const payload = body.subarray(start, start + 16384);
    parts.push(encode({ type: 0, flags: 0, stream: 1, payload }));
  }
  return Buffer.concat([
    ...frames.slice(0, first).map((frame) => encode(frame)),
    ...parts,
    ...frames.slice(last + 1).map((frame) => encode(frame)),
  ]);
}

function message(bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

function field(number: number, bytes: Uint8Array): Buffer {
  const head = [number * 8 + 2];
  let rest = bytes.length;
  for (; rest >= 128; rest >>>= 7) head.push((rest & 127) | 128);
  head.push(rest);
  return Buffer.concat([Buffer.from(head), bytes]);
}

const listed = conversations.find(({ name }) => name === "kubelet pods list")!;
const watched = conversations.find(({ name }) => name === "watch-dropped watch")!;

const editedPod = fc.tuple(pod, places).map(([bytes, cuts]): Input => {
  const body = message(Buffer.concat([field(1, recordedPods[0]!), field(1, bytes), field(1, recordedPods[1]!)]));
  return { kind: "pod", method: "list", chunks: cut(around(listed, body), cuts), pod: bytes };
});

const event = fc
  .tuple(pod, fc.array(byteEdit, { minLength: 0, maxLength: 2 }), fc.oneof(fc.nat(6), fc.nat(2 ** 31 - 1)))
  .map(([bytes, edits, type]) => {
    const kind = [8];
    for (let rest = type; ; rest = Math.floor(rest / 128)) {
      kind.push(rest >= 128 ? (rest % 128) + 128 : rest);
      if (rest < 128) break;
    }
    return edits.reduce<Buffer>((all, edit) => edit(all), Buffer.concat([Buffer.from(kind), field(2, bytes)]));
  });

const editedEvent = fc.tuple(fc.array(event, { minLength: 1, maxLength: 4 }), places).map(([events, cuts]): Input => {
  const body = Buffer.concat(events.map((bytes) => message(bytes)));
  return { kind: "event", method: "watch", chunks: cut(around(watched, body), cuts) };
});

/** Half of them frames and bytes of connections, half pods and events in answers that are right around them. */
export const input: fc.Arbitrary<Input> = fc.oneof(editedFrames, editedBytes, editedPod, editedEvent);
