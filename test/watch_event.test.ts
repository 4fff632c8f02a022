import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { Fault } from "../lib/fault.ts";
import { createEventDecoder, type WatchEvent } from "../lib/watch_event.ts";
import { PodSchema } from "../proto/gen/pod_pb.js";
import { EventType, WatchPodsEventSchema } from "../proto/gen/pods_pb.js";

/** Decodes messages that come in pieces of a size. */
function decode(messages: readonly Uint8Array[], size = 1 << 20): WatchEvent[] {
  const events: WatchEvent[] = [];
  const decoder = createEventDecoder((event) => events.push(event));
  for (const message of messages) {
    decoder.start(message.length);
    for (let at = 0; at < message.length; at += size) decoder.chunk(message.subarray(at, at + size));
    decoder.end();
  }
  return events;
}

function event(type: number, name?: string): Uint8Array {
  const pod = name === undefined ? new Uint8Array(0) : toBinary(PodSchema, create(PodSchema, { metadata: { name } }));
  return toBinary(WatchPodsEventSchema, create(WatchPodsEventSchema, { type, pod }));
}

const summary = (events: readonly WatchEvent[]) =>
  events.map((found) => (found.type === "synced" ? "synced" : `${found.type} ${found.pod.name}`));

test("each kind of event, in pieces of each size", () => {
  const messages = [
    event(EventType.ADDED, "a"),
    event(EventType.INITIAL_SYNC_COMPLETE),
    event(EventType.MODIFIED, "b".repeat(300)),
    event(EventType.DELETED, "c"),
  ];
  for (let size = 1; size < 20; size++) {
    const expected = ["added a", "synced", `modified ${"b".repeat(300)}`, "deleted c"];
    assert.deepEqual(summary(decode(messages, size)), expected);
  }
});

test("an event of a type that is not known, or of none, is passed over", () => {
  assert.deepEqual(decode([event(EventType.UNSPECIFIED, "a"), event(5, "b"), event(-1, "c"), new Uint8Array(0)]), []);
});

test("an event without a pod has an empty one", () => {
  assert.deepEqual(summary(decode([event(EventType.ADDED)])), ["added "]);
});

test("fields that are not known are passed over, in any order", () => {
  const unknown = Uint8Array.of(0x7a, 2, 1, 2, 0x78, 0xff, 0x01, 0x7d, 1, 2, 3, 4, 0x79, 1, 2, 3, 4, 5, 6, 7, 8);
  const added = event(EventType.ADDED, "a");
  const pod = added.subarray(2);
  const type = added.subarray(0, 2);
  assert.deepEqual(summary(decode([Buffer.concat([unknown, pod, unknown, type, unknown])])), ["added a"]);
});

describe("what is not valid", () => {
  const undecodable = (message: Uint8Array) =>
    assert.throws(
      () => decode([message]),
      (error) => error instanceof Fault && error.code === "Undecodable",
    );
  test("a message cut anywhere but between its fields", () => {
    const added = event(EventType.ADDED, "a");
    for (let length = 1; length < added.length; length++) if (length !== 2) undecodable(added.subarray(0, length));
  });
  test("a pod that is not protobuf", () => undecodable(Uint8Array.of(8, 1, 18, 2, 10, 99)));
  test("a group, a wire type that does not exist, a field 0", () => {
    for (const tag of [0x0b, 0x0c, 0x0e, 0x0f, 0x00]) undecodable(Uint8Array.of(tag, 1));
  });
  test("a million fields are not read to their end", () => undecodable(new Uint8Array(2_000_000).fill(0x78)));
  test("mutated messages end in events or in a fault", () => {
    const added = event(EventType.ADDED, "a-pod");
    fc.assert(
      fc.property(fc.nat(added.length - 1), fc.nat(255), (at, byte) => {
        const bytes = Uint8Array.from(added);
        bytes[at] = byte;
        try {
          decode([bytes]);
        } catch (error) {
          assert.ok(error instanceof Fault && error.code === "Undecodable", String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });
});
