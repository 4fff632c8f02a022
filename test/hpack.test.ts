import assert from "node:assert/strict";
import { createServer } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { createHpackDecoder, encodeHeaders, HpackError } from "../lib/hpack.ts";
import {
  endHeaders,
  endStream,
  frame,
  frameType,
  headerBlock,
  hpackInteger,
  inFolder,
  listen,
} from "./http2_frames.ts";

// Bun ends a test after 5 s unless told otherwise, and a machine that is busy may need them.
const slow = { timeout: 60_000 };

const limit = 1 << 16;

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(" ", ""), "hex");
}

/** Blocks of one connection, and the fields each stands for. */
function decodesTo(blocks: readonly (readonly [string, Readonly<Record<string, string>>])[]): void {
  const decoder = createHpackDecoder(limit);
  for (const [hex, fields] of blocks) assert.deepEqual({ ...decoder.decode(bytes(hex)) }, fields);
}

const requests = [
  { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com" },
  { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com", "cache-control": "no-cache" },
  {
    ":method": "GET",
    ":scheme": "https",
    ":path": "/index.html",
    ":authority": "www.example.com",
    "custom-key": "custom-value",
  },
];
const responses = [
  {
    ":status": "302",
    "cache-control": "private",
    date: "Mon, 21 Oct 2013 20:13:21 GMT",
    location: "https://www.example.com",
  },
  {
    ":status": "307",
    "cache-control": "private",
    date: "Mon, 21 Oct 2013 20:13:21 GMT",
    location: "https://www.example.com",
  },
  {
    ":status": "200",
    "cache-control": "private",
    date: "Mon, 21 Oct 2013 20:13:22 GMT",
    location: "https://www.example.com",
    "content-encoding": "gzip",
    "set-cookie": "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  },
];
// The examples C.5 and C.6 have a table of 256 bytes, so that entries are thrown out.
const tableOf256 = "3fe101";

describe("RFC 7541 appendix C", () => {
  test("C.2: each form of a field", () => {
    decodesTo([
      ["400a637573746f6d2d6b65790d637573746f6d2d686561646572", { "custom-key": "custom-header" }],
      ["040c2f73616d706c652f70617468", { ":path": "/sample/path" }],
      ["100870617373776f726406736563726574", { password: "secret" }],
      ["82", { ":method": "GET" }],
    ]);
  });
  test("C.3: requests with a table, without Huffman codes", () => {
    decodesTo([
      ["828684410f7777772e6578616d706c652e636f6d", requests[0]!],
      ["828684be58086e6f2d6361636865", requests[1]!],
      ["828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", requests[2]!],
    ]);
  });
  test("C.4: the same with Huffman codes", () => {
    decodesTo([
      ["828684418cf1e3c2e5f23a6ba0ab90f4ff", requests[0]!],
      ["828684be5886a8eb10649cbf", requests[1]!],
      ["828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", requests[2]!],
    ]);
  });
  test("C.5: responses whose table throws entries out", () => {
    decodesTo([
      [
        `${tableOf256}4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e` +
          "1768747470733a2f2f7777772e6578616d706c652e636f6d",
        responses[0]!,
      ],
      ["4803333037c1c0bf", responses[1]!],
      [
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b42" +
          "5a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
        responses[2]!,
      ],
    ]);
  });
  test("C.6: the same with Huffman codes", () => {
    decodesTo([
      [
        `${tableOf256}488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9` +
          "ae82ae43d3",
        responses[0]!,
      ],
      ["4883640effc1c0bf", responses[1]!],
      [
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f" +
          "3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        responses[2]!,
      ],
    ]);
  });
});

describe("header blocks of the runtime's own HTTP/2 server", () => {
  const name = fc.stringMatching(/^x-[a-z0-9]{1,12}$/);
  const value = fc.stringMatching(/^[!-~]([ -~]{0,60}[!-~])?$/);
  // Few names, so that the table's entries are met again.
  const answers = fc.sample(fc.dictionary(name, value, { minKeys: 1, maxKeys: 6 }), { numRuns: 40, seed: 7 });
  const cases = answers.flatMap((answer, index) => [answer, { ...answer, ...answers[index >> 1] }]);

  test("every answer is decoded, with a table that is kept, closed and opened again", slow, () =>
    inFolder(async (folder) => {
      let served = 0;
      const server = createServer();
      server.on("stream", (stream) => {
        stream.respond({ ":status": 200, ...cases[served++] }, { endStream: true });
      });
      const path = join(folder, "s.sock");
      await listen(server, path);
      const decoded: Record<string, string>[] = [];
      const socket = connect(path);
      await new Promise<void>((resolve, reject) => {
        const decoder = createHpackDecoder(limit);
        let buffer = Buffer.alloc(0);
        const request = (index: number) => {
          const fields = { ":method": "GET", ":scheme": "http", ":authority": "localhost", ":path": "/" };
          // HEADER_TABLE_SIZE, which the encoder answers with a change of size in its next block.
          const tableSize = index % 20 === 7 ? 0 : 4096;
          socket.write(frame(frameType.settings, 0, 0, [0, 1, 0, 0, tableSize >> 8, tableSize & 255]));
          socket.write(frame(frameType.headers, endHeaders | endStream, index * 2 + 1, encodeHeaders(fields)));
        };
        socket.on("error", reject);
        socket.on("data", (chunk) => {
          buffer = Buffer.concat([buffer, chunk as Buffer]);
          while (buffer.length >= 9 && buffer.length >= 9 + buffer.readUIntBE(0, 3)) {
            const end = 9 + buffer.readUIntBE(0, 3);
            const payload = buffer.subarray(9, end);
            const [type, flags] = [buffer[3]!, buffer[4]!];
            buffer = buffer.subarray(end);
            if (type === frameType.settings && (flags & 1) === 0) socket.write(frame(frameType.settings, 1, 0));
            if (type !== frameType.headers) continue;
            try {
              assert.equal(flags & endHeaders, endHeaders);
              decoded.push({ ...decoder.decode(payload) });
            } catch (error) {
              return reject(error);
            }
            if (decoded.length === cases.length) return resolve();
            request(decoded.length);
          }
        });
        socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        request(0);
      }).finally(async () => {
        const closed = new Promise((resolve) => socket.once("close", resolve));
        socket.destroy();
        await closed;
        await new Promise((resolve) => server.close(resolve));
      });
      for (const [index, { date, ...fields }] of decoded.entries()) {
        assert.deepEqual(fields, { ":status": "200", ...cases[index] });
      }
    }),
  );
});

describe("what breaks RFC 7541", () => {
  const breaks = (hex: string, pattern: RegExp) => {
    assert.throws(
      () => createHpackDecoder(limit).decode(bytes(hex)),
      (error) => {
        assert.ok(error instanceof HpackError);
        assert.match(error.message, pattern);
        return true;
      },
    );
  };
  test("references that lead nowhere", () => {
    breaks("80", /entry 0,/);
    breaks("be", /entry 62,/);
    breaks("7e0161", /entry 62,/);
    breaks("0f2f0161", /entry 62,/);
  });
  test("blocks that end early", () => {
    for (const hex of ["40", "4001", "400161", "40016102", "ff", "ff80", "00", "0f", "008261"])
      breaks(hex, /ends early/);
  });
  test("integers beyond all use", () => {
    breaks("ffffffffffff7f", /over the limit/);
    breaks("ff8080808080808000", /over the limit/);
    breaks("007f8080808080", /over the limit/);
  });
  test("a table over what was announced, and a change of its size behind a field", () => {
    breaks("3fe21f", /4097 bytes/);
    breaks("8220", /behind a field/);
  });
  test("Huffman strings with wrong padding, the end marker, or half a code", () => {
    breaks("00016181fe", /padding/); // zeros at the end
    breaks("00016182ffff", /padding/); // more than seven bits
    breaks("00016184ffffffff", /does not exist/); // the end marker
    breaks("000161811c", /padding/); // a code of which a bit is missing
  });
});

describe("limits", () => {
  test("an HPACK bomb, references to one large entry, is refused before it grows", () => {
    const large = Buffer.concat([Buffer.from([0x40, 1, 97]), hpackInteger(4000, 7), Buffer.alloc(4000, 98)]);
    const bomb = Buffer.concat([large, Buffer.alloc(1 << 16, 0xbe)]);
    assert.throws(() => createHpackDecoder(limit).decode(bomb), /headers over 65536 bytes/);
  });
  test("an entry larger than the table empties it", () => {
    const decoder = createHpackDecoder(limit);
    decoder.decode(bytes("400161016240016301 64"));
    assert.equal(decoder.decode(bytes("bf")).a, "b");
    const large = Buffer.concat([Buffer.from([0x40, 1, 97]), hpackInteger(4096, 7), Buffer.alloc(4096, 98)]);
    assert.equal(decoder.decode(large).a!.length, 4096);
    assert.throws(() => decoder.decode(bytes("be")), /entry 62/);
  });
  test("a table of size 0 remembers nothing", () => {
    const decoder = createHpackDecoder(limit);
    decoder.decode(bytes("20 40 0161 0162"));
    assert.throws(() => decoder.decode(bytes("be")), /entry 62/);
  });
});

describe("names and values", () => {
  test("a repeated name keeps its values, in order", () => {
    const block = headerBlock([
      ["a", "1"],
      ["b", "2"],
      ["a", "3"],
    ]);
    assert.deepEqual({ ...createHpackDecoder(limit).decode(block) }, { a: "1, 3", b: "2" });
  });
  test("a name of Object.prototype is a name like any other", () => {
    const headers = createHpackDecoder(limit).decode(headerBlock([["__proto__", "x"]]));
    assert.deepEqual(Object.entries(headers), [["__proto__", "x"]]);
    assert.equal("toString" in headers, false);
  });
  test("bytes over 127 stand as Latin-1", () => {
    assert.equal(createHpackDecoder(limit).decode(headerBlock([["a", "\xff\x80"]])).a, "\xff\x80");
  });
});

describe("encodeHeaders", () => {
  test("whatever it takes is decoded to the same", () => {
    const name = fc.stringMatching(/^[!-~]{0,126}$/);
    const value = fc.stringMatching(/^[!-~]{0,4096}$/);
    fc.assert(
      fc.property(fc.dictionary(name, value), (fields) => {
        assert.deepEqual({ ...createHpackDecoder(1 << 20).decode(encodeHeaders(fields)) }, { ...fields });
      }),
    );
  });
  test("values of every length whose form differs", () => {
    for (const length of [126, 127, 128, 254, 255, 256, 382, 383, 4095, 4096]) {
      const fields = { a: "x".repeat(length), b: "y" };
      assert.deepEqual({ ...createHpackDecoder(1 << 20).decode(encodeHeaders(fields)) }, fields);
    }
  });
  test("a name or value over the limit is refused, not sent wrong", () => {
    assert.throws(() => encodeHeaders({ a: "x".repeat(4097) }), RangeError);
    assert.throws(() => encodeHeaders({ ["a".repeat(127)]: "x" }), RangeError);
  });
});

describe("mutated blocks", () => {
  test("each is decoded or refused with HpackError", slow, () => {
    const decode = (block: Uint8Array) => {
      try {
        createHpackDecoder(limit).decode(block);
      } catch (error) {
        assert.ok(error instanceof HpackError, String(error));
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), decode), { numRuns: 2000 });
    const valid = bytes("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf");
    fc.assert(
      fc.property(fc.nat(valid.length - 1), fc.nat(255), (at, byte) => {
        const block = Buffer.from(valid);
        block[at] = byte;
        decode(block);
      }),
      { numRuns: 2000 },
    );
  });
});
