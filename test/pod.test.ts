import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { Fault } from "../lib/fault.ts";
import { createListDecoder, decodePod, isStatic, type Pod, parseTime } from "../lib/pod.ts";
import {
  type ContainerState,
  type ContainerStatus,
  type Pod as PodMessage,
  PodSchema,
  type Time,
} from "../proto/gen/pod_pb.js";
import { ListPodsResponseSchema } from "../proto/gen/pods_pb.js";

// Bun ends a test after 5 s unless told otherwise, and a machine that is busy may need them.
const slow = { timeout: 60_000 };

const sourceKey = "kubernetes.io/config.source";
const seenKey = "kubernetes.io/config.seen";

// What decodePod is to return, from what @bufbuild/protobuf makes of the same bytes.
function expected(pod: PodMessage): Pod {
  const { metadata, spec, status } = pod;
  const source = metadata?.annotations[sourceKey] ?? "";
  const isOfManifest = source !== "" && source !== "api";
  const ready = status?.conditions.findLast(({ type }) => type === "Ready");
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    source,
    seenMs: metadata?.annotations[seenKey] === undefined ? null : parseTime(metadata.annotations[seenKey]),
    deletedMs: timeOf(metadata?.deletionTimestamp),
    nodeName: isOfManifest ? (spec?.nodeName ?? "") : "",
    images: isOfManifest ? (spec?.containers.map(({ image }) => image) ?? []) : [],
    phase: status?.phase ?? "",
    reason: status?.reason ?? "",
    message: status?.message ?? "",
    startMs: timeOf(status?.startTime),
    ready: ready?.status === "True",
    readySinceMs: timeOf(ready?.lastTransitionTime),
    readyReason: ready?.reason ?? "",
    containers: [
      ...(status?.containerStatuses ?? []).map((container) => containerOf(container, false)),
      ...(status?.initContainerStatuses ?? []).map((container) => containerOf(container, true)),
    ],
  };
}

function containerOf({ name, ready, restartCount, state, lastState }: ContainerStatus, init: boolean) {
  return { name, init, ready, restarts: restartCount, state: stateOf(state), lastState: stateOf(lastState) };
}

function stateOf(state: ContainerState | undefined): Pod["containers"][number]["state"] {
  const none = { kind: "", reason: "", message: "", exitCode: 0, signal: 0 } as const;
  if (state?.terminated !== undefined) {
    const { reason, message, exitCode, signal } = state.terminated;
    return { kind: "terminated", reason, message, exitCode, signal };
  }
  if (state?.running !== undefined) return { ...none, kind: "running" };
  if (state?.waiting === undefined) return none;
  return { ...none, kind: "waiting", reason: state.waiting.reason, message: state.waiting.message };
}

/** A time of 0 seconds is left out on the wire by the library, and by the kubelet only for the time that is none. */
function timeOf(time: Time | undefined): number | null {
  if (time === undefined || time.seconds === 0n) return null;
  return Number(time.seconds) * 1000 + Math.trunc(time.nanos / 1e6);
}

const text = fc.oneof(fc.string({ maxLength: 20 }), fc.string({ unit: "grapheme", maxLength: 8 }));
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const time = fc.record({ seconds: fc.bigInt(0n, 253402300799n), nanos: fc.nat(999_999_999) });
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const waiting = fc.record({ waiting: fc.record({ reason: text, message: text }) });
const running = fc.record({ running: fc.record({ startedAt: optional(time) }) });
const terminated = fc.record({
  terminated: fc.record({ exitCode: int32, signal: int32, reason: text, message: text, finishedAt: optional(time) }),
});
const state = optional(fc.oneof(waiting, running, terminated, fc.constant({})));
const containerStatus = fc.record({
  name: text,
  state,
  lastState: state,
  ready: fc.boolean(),
  restartCount: int32,
  image: text,
});
const seen = fc.constantFrom("2026-07-01T10:00:00.123456789+02:00", "2026-07-01T10:00:00Z", "no time", "");
const annotations = fc
  .tuple(
    fc.dictionary(text, text, { maxKeys: 3 }),
    optional(fc.constantFrom("file", "http", "api", "")),
    optional(seen),
  )
  .map(([others, source, seenAt]) => ({
    ...others,
    // As long as a key that is looked for, and another one.
    "kubernetes.io/config.hash_0": "x",
    ...(source === undefined ? {} : { [sourceKey]: source }),
    ...(seenAt === undefined ? {} : { [seenKey]: seenAt }),
  }));
const container = fc.record({ name: text, image: text });
const podInit = fc.record({
  metadata: optional(
    fc.record({
      name: text,
      namespace: text,
      uid: text,
      creationTimestamp: optional(time),
      deletionTimestamp: optional(time),
      labels: fc.dictionary(text, text, { maxKeys: 2 }),
      annotations,
    }),
  ),
  spec: optional(
    fc.record({
      containers: fc.array(container, { maxLength: 3 }),
      nodeName: text,
      initContainers: fc.array(container, { maxLength: 2 }),
    }),
  ),
  status: optional(
    fc.record({
      phase: text,
      conditions: fc.array(
        fc.record({
          type: fc.constantFrom("Ready", "PodScheduled", "ContainersReady"),
          status: fc.constantFrom("True", "False", "Unknown", ""),
          lastTransitionTime: optional(time),
          reason: text,
          message: text,
        }),
        { maxLength: 3 },
      ),
      message: text,
      reason: text,
      startTime: optional(time),
      containerStatuses: fc.array(containerStatus, { maxLength: 3 }),
      initContainerStatuses: fc.array(containerStatus, { maxLength: 2 }),
    }),
  ),
});
const podBytes = podInit.map((init) => toBinary(PodSchema, create(PodSchema, init as never)));

/** Fields that no version has had so far, of every wire type but the groups. */
const unknownField = fc.oneof(
  fc
    .tuple(fc.nat(1000), fc.bigInt(0n, 2n ** 64n - 1n))
    .map(([at, value]) => [...varint(BigInt((at + 100) * 8)), ...varint(value)]),
  fc.nat(1000).map((at) => [...varint(BigInt((at + 100) * 8 + 1)), 1, 2, 3, 4, 5, 6, 7, 8]),
  fc.nat(1000).map((at) => [...varint(BigInt((at + 100) * 8 + 5)), 1, 2, 3, 4]),
  fc
    .tuple(fc.nat(1000), fc.uint8Array({ maxLength: 200 }))
    .map(([at, bytes]) => [...varint(BigInt((at + 100) * 8 + 2)), ...varint(BigInt(bytes.length)), ...bytes]),
);

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) + 128);
  bytes.push(Number(rest));
  return bytes;
}

/** A field of a message or a text. */
function field(number: number, bytes: readonly number[] | Uint8Array): number[] {
  return [...varint(BigInt(number * 8 + 2)), ...varint(BigInt(bytes.length)), ...bytes];
}

const utf8 = (value: string) => [...Buffer.from(value)];

function undecodable(work: () => unknown, pattern = /not valid protobuf/): void {
  assert.throws(work, (error) => {
    assert.ok(error instanceof Fault, String(error));
    assert.equal(error.code, "Undecodable");
    assert.match(error.message, pattern);
    return true;
  });
}

describe("decodePod", () => {
  test("reads what @bufbuild/protobuf reads", slow, () => {
    fc.assert(
      fc.property(podBytes, (bytes) => {
        assert.deepEqual(decodePod(bytes), expected(fromBinary(PodSchema, bytes)));
      }),
      { numRuns: 200 },
    );
  });

  test("with the depth `static` a pod that is not static has a source and nothing else", slow, () => {
    fc.assert(
      fc.property(podBytes, (bytes) => {
        const whole = decodePod(bytes);
        const { source, seenMs } = whole;
        const bare = { ...decodePod(new Uint8Array(0)), source, seenMs };
        assert.deepEqual(decodePod(bytes, "static"), isStatic(whole) ? whole : bare);
      }),
      { numRuns: 100 },
    );
  });

  test("steps over fields of versions to come, at each depth", slow, () => {
    fc.assert(
      fc.property(podBytes, fc.array(unknownField, { minLength: 1, maxLength: 4 }), (bytes, fields) => {
        const extra = fields.flat();
        const known = fromBinary(PodSchema, bytes);
        const around = Uint8Array.from([...extra, ...bytes, ...extra]);
        assert.deepEqual(decodePod(around), expected(known));
        // Within metadata, with a status before it.
        const metadata = [...extra, ...field(1, utf8("name")), ...extra, ...field(3, utf8("ns"))];
        const status = [...extra, ...field(1, utf8("Running")), ...extra];
        const pod = decodePod(Uint8Array.from([...field(3, status), ...field(1, metadata)]));
        assert.deepEqual([pod.namespace, pod.name, pod.phase], ["ns", "name", "Running"]);
      }),
      { numRuns: 100 },
    );
  });

  test("an annotation's value may stand before its key", () => {
    const annotation = [...field(2, utf8("file")), ...field(1, utf8(sourceKey))];
    assert.equal(decodePod(Uint8Array.from(field(1, field(12, annotation)))).source, "file");
    const noValue = field(1, utf8(sourceKey));
    assert.equal(decodePod(Uint8Array.from(field(1, field(12, noValue)))).source, "");
  });

  test("environment, arguments and other annotations are decoded by nobody", () => {
    const canary = "canary-SECRET";
    const environment = field(7, [...field(1, utf8("PASSWORD")), ...field(2, utf8(canary))]);
    const spec = field(2, [
      ...field(1, utf8("c")),
      ...field(2, utf8("image")),
      ...field(4, utf8(canary)),
      ...environment,
    ]);
    const annotation = (key: string, value: string) => field(12, [...field(1, utf8(key)), ...field(2, utf8(value))]);
    const metadata = [...annotation(sourceKey, "file"), ...annotation("secret", canary)];
    const pod = decodePod(Uint8Array.from([...field(1, metadata), ...field(2, spec)]));
    assert.deepEqual(pod.images, ["image"]);
    assert.ok(!JSON.stringify(pod).includes(canary));
  });

  test("a time that is no date is none, so that nothing fails to print it", () => {
    const at = (seconds: bigint) => decodePod(Uint8Array.from(field(1, field(9, [8, ...varint(seconds)])))).deletedMs;
    assert.equal(at(1_700_000_000n), 1_700_000_000_000);
    assert.equal(at(8_640_000_000_000n), 8.64e15);
    assert.equal(at(8_640_000_000_001n), null);
    assert.equal(at(2n ** 64n - 5n), null); // before 1970
  });

  test("a text that is not UTF-8 stays a text", () => {
    assert.equal(decodePod(Uint8Array.from(field(1, field(1, [97, 0xff, 98])))).name, "a\ufffdb");
  });

  test("a pod that is cut is refused, wherever", () => {
    const bytes = toBinary(
      PodSchema,
      create(PodSchema, {
        metadata: { name: "n", annotations: { [sourceKey]: "file" } },
        status: { phase: "Running" },
      }),
    );
    const status = bytes.indexOf(26, 2);
    for (let length = 1; length < bytes.length; length++) {
      if (length !== status) undecodable(() => decodePod(bytes.subarray(0, length)));
    }
  });

  const broken: Readonly<Record<string, readonly number[]>> = {
    "a field over the end of its message": field(1, [10, 9, 97]),
    "a field over the end of the pod": [10, 200, 1],
    "a length of 2^64-1": [10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
    "a varint of eleven bytes": [8, ...Array<number>(10).fill(128), 1],
    "field 0": [0, 1],
    "a group": [11, 8, 1, 12],
    "the end of a group": [12],
    "wire type 6": [14, 1],
    "half a fixed64": [9, 1, 2, 3, 4],
    "half a fixed32": [13, 1],
    "half a container": field(3, [66, 4, 10]),
  };
  for (const [name, bytes] of Object.entries(broken)) {
    test(`${name} is Undecodable`, () => undecodable(() => decodePod(Uint8Array.from(bytes))));
  }

  for (const [name, inner, outer] of [
    ["fields that nobody knows", [120, 1], 3],
    ["containers, which would take gigabytes", [66, 0], 3],
    ["annotations", [98, 0], 1],
  ] as const) {
    test(`a pod of megabytes of ${name} is refused early`, () => {
      const content = new Uint8Array(4_000_000);
      for (let at = 0; at < content.length; at += 2) content.set(inner, at);
      const bytes = Buffer.concat([
        Uint8Array.from([...varint(BigInt(outer * 8 + 2)), ...varint(4_000_000n)]),
        content,
      ]);
      assert.throws(
        () => decodePod(bytes),
        (error) => error instanceof Fault && error.code === "AnswerTooLarge",
      );
    });
  }

  test("mutated bytes end in a pod or in a fault", slow, () => {
    const decode = (bytes: Uint8Array) => {
      try {
        decodePod(bytes);
      } catch (error) {
        assert.ok(error instanceof Fault && error.code === "Undecodable", String(error));
      }
    };
    const pods = fc.sample(podBytes, 30).filter(({ length }) => length > 0);
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.constantFrom(...pods), changes, (pod, changed) => {
        const bytes = Uint8Array.from(pod);
        for (const [at, byte] of changed) bytes[at % bytes.length] = byte;
        decode(bytes);
      }),
      { numRuns: 2000 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 100 }), decode), { numRuns: 1000 });
  });
});

/** Decodes one message that comes in the pieces given. */
function decodeList(pieces: readonly Uint8Array[]): Uint8Array[] {
  const pods: Uint8Array[] = [];
  const decoder = createListDecoder((bytes) => pods.push(Uint8Array.from(bytes)));
  decoder.start(pieces.reduce((sum, { length }) => sum + length, 0));
  for (const piece of pieces) decoder.chunk(piece);
  decoder.end();
  assert.equal(decoder.messages, 1);
  return pods;
}

describe("createListDecoder", () => {
  const lists = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
  const serialize = (pods: readonly Uint8Array[]) =>
    toBinary(ListPodsResponseSchema, create(ListPodsResponseSchema, { pods: pods.map((pod) => Uint8Array.from(pod)) }));

  test("finds the pods that @bufbuild/protobuf finds, split at every byte", slow, () => {
    fc.assert(
      fc.property(lists, fc.array(unknownField, { maxLength: 2 }), (pods, fields) => {
        const message = Uint8Array.from([...fields.flat(), ...serialize(pods), ...fields.flat()]);
        const wanted = fromBinary(ListPodsResponseSchema, message).pods.map((pod) => Uint8Array.from(pod));
        assert.deepEqual(wanted, pods);
        for (let at = 0; at <= message.length; at += message.length > 500 ? 17 : 1) {
          assert.deepEqual(decodeList([message.subarray(0, at), message.subarray(at)]), wanted);
        }
      }),
      { numRuns: 40 },
    );
  });

  test("in pieces of each size", () => {
    const pods = [Uint8Array.of(1), new Uint8Array(0), new Uint8Array(300).fill(7), Uint8Array.of(2, 3)];
    const message = serialize(pods);
    for (let size = 1; size < 40; size++) {
      const pieces: Uint8Array[] = [];
      for (let at = 0; at < message.length; at += size) pieces.push(message.subarray(at, at + size));
      assert.deepEqual(decodeList(pieces), pods);
    }
  });

  test("an empty message is a listing without pods", () => {
    assert.deepEqual(decodeList([]), []);
  });

  test("a second message is refused", () => {
    const decoder = createListDecoder(() => {});
    decoder.start(0);
    decoder.end();
    undecodable(() => decoder.start(0), /more than one message/);
  });

  test("a message that ends within a field is refused", () => {
    const message = serialize([Uint8Array.of(1, 2, 3), Uint8Array.of(4)]);
    for (let length = 1; length < message.length; length++) {
      if (length !== 5) undecodable(() => decodeList([message.subarray(0, length)]));
    }
  });

  test("a pod's length is checked before memory is taken for it", () => {
    const decoder = createListDecoder(() => {});
    decoder.start(100);
    undecodable(() => decoder.chunk(Uint8Array.from([10, 255, 255, 255, 127])), /over the end of its message/);
  });

  test("what cannot be is refused", () => {
    for (const bytes of [
      [0, 1],
      [11],
      [12],
      [14],
      [15],
      [10, 255, 255, 255, 255, 255, 1],
      [8, ...Array<number>(11).fill(128)],
    ]) {
      undecodable(() => decodeList([Uint8Array.from([...bytes, ...Array<number>(20).fill(0)])]));
    }
  });

  test("mutated listings end in pods or in a fault, however they are split", slow, () => {
    fc.assert(
      fc.property(lists, fc.nat(), fc.nat(255), fc.integer({ min: 1, max: 50 }), (pods, where, byte, size) => {
        const message = serialize(pods);
        fc.pre(message.length > 0);
        message[where % message.length] = byte;
        const outcome = (step: number): string => {
          const pieces: Uint8Array[] = [];
          for (let at = 0; at < message.length; at += step) pieces.push(message.subarray(at, at + step));
          try {
            return JSON.stringify(decodeList(pieces).map((pod) => [...pod]));
          } catch (error) {
            assert.ok(error instanceof Fault && error.code === "Undecodable", String(error));
            return error.code;
          }
        };
        assert.equal(outcome(size), outcome(message.length));
      }),
      { numRuns: 2000 },
    );
  });
});

test("isStatic: what a manifest's source says, and only that (d11)", () => {
  const sources = ["file", "http", "api", ""].map((source) => isStatic({ source }));
  assert.deepEqual(sources, [true, true, false, false]);
});

describe("parseTime", () => {
  test("reads the forms that Go's RFC3339Nano has", () => {
    const noon = Date.UTC(2026, 6, 1, 12);
    assert.equal(parseTime("2026-07-01T12:00:00Z"), noon);
    assert.equal(parseTime("2026-07-01T14:00:00+02:00"), noon);
    assert.equal(parseTime("2026-07-01T06:30:00-05:30"), noon);
    assert.equal(parseTime("2026-07-01T12:00:00.5Z"), noon + 500);
    assert.equal(parseTime("2026-07-01T12:00:00.04Z"), noon + 40);
    assert.equal(parseTime("2026-07-01T12:00:00.123456789Z"), noon + 123);
    assert.equal(parseTime("2026-07-01T14:00:00.999999999+02:00"), noon + 999);
  });
  test("takes nothing else for a time", () => {
    for (const other of [
      "",
      "now",
      "2026-07-01",
      "2026-07-01 12:00:00Z",
      "2026-07-01T12:00:00",
      "2026-07-01T12:00:00.Z",
      "2026-07-01T12:00:00.1234567890Z",
      "2026-13-01T12:00:00Z",
      "2026-07-01T25:00:00Z",
      "1782907200",
      "2026-07-01T12:00:00Z\n",
    ]) {
      assert.equal(parseTime(other), null, other);
    }
  });
});
