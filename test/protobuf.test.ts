import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { type Cursor, ProtobufError, readEnd, readInt32, readText, readVarint, skipField } from "../lib/protobuf.ts";

// The library's own writer and reader are the other side of every test.

const cursorOf = (bytes: Uint8Array): Cursor => ({ bytes, at: 0 });

describe("varints", () => {
  test("what the library writes is read, up to 53 bits", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }), (value) => {
        const bytes = new BinaryWriter().uint64(value).finish();
        const cursor = cursorOf(bytes);
        assert.equal(readVarint(cursor, bytes.length), Number(value));
        assert.equal(cursor.at, bytes.length);
      }),
    );
  });

  test("signed numbers of 32 bits, which are sent with 64", () => {
    fc.assert(
      fc.property(fc.integer(), (value) => {
        const bytes = new BinaryWriter().int32(value).finish();
        assert.equal(readInt32(cursorOf(bytes), bytes.length), value);
      }),
    );
  });

  test("one that ends early, or has more than ten bytes", () => {
    for (const bytes of [[], [0x80], Array(11).fill(0x80), [...Array(10).fill(0xff), 1]]) {
      const cursor = cursorOf(Uint8Array.from(bytes));
      assert.throws(() => readVarint(cursor, bytes.length), ProtobufError);
      assert.throws(() => readInt32(cursorOf(Uint8Array.from(bytes)), bytes.length), ProtobufError);
    }
  });
});

describe("texts", () => {
  test("what the library writes is read", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const bytes = new BinaryWriter().string(text).finish();
        assert.equal(readText(cursorOf(bytes), bytes.length), new BinaryReader(bytes).string());
      }),
    );
  });

  test("what is not UTF-8 is replaced and not refused: Go's reader of these messages takes it", () => {
    assert.equal(readText(cursorOf(Uint8Array.of(3, 0x61, 0xff, 0x62)), 4), "a\ufffdb");
  });

  test("one over the end of its message", () => {
    assert.throws(() => readEnd(cursorOf(Uint8Array.of(3, 0x61, 0x62)), 3), ProtobufError);
    assert.throws(() => readText(cursorOf(Uint8Array.of(2, 0x61, 0x62)), 2), ProtobufError);
  });
});

describe("fields that are stepped over", () => {
  const field = fc.oneof(
    fc.record({ type: fc.constant(WireType.Varint), value: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
    fc.record({ type: fc.constant(WireType.Bit64), value: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
    fc.record({ type: fc.constant(WireType.Bit32), value: fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }) }),
    fc.record({ type: fc.constant(WireType.LengthDelimited), value: fc.uint8Array() }),
  );

  test("as many bytes as the library steps over", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 29 - 1 }), field, (number, { type, value }) => {
        const writer = new BinaryWriter().tag(number, type);
        if (typeof value !== "bigint") writer.bytes(value);
        else if (type === WireType.Varint) writer.uint64(value);
        else if (type === WireType.Bit64) writer.fixed64(value);
        else writer.fixed32(Number(value));
        const bytes = writer.finish();
        const cursor = cursorOf(bytes);
        skipField(cursor, readVarint(cursor, bytes.length), bytes.length);
        assert.equal(cursor.at, bytes.length);
        const reader = new BinaryReader(bytes);
        const [found, foundType] = reader.tag();
        reader.skip(foundType, found);
        assert.equal(reader.pos, cursor.at);
      }),
    );
  });

  test("field 0, groups and types that do not exist, and values that end early", () => {
    for (const tag of [0, 2, 11, 12, 14, 15]) {
      assert.throws(() => skipField(cursorOf(new Uint8Array(16)), tag, 16), ProtobufError);
    }
    for (const tag of [9, 13, 10, 8]) {
      assert.throws(() => skipField(cursorOf(Uint8Array.of(0x80)), tag, 1), ProtobufError);
    }
  });
});
