// The Pods API without any client library, for what a library hides.

import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { connect } from "node:net";

/** One answer as it came. */
export interface RawAnswer {
  /** Whether the status came with the first and only block of headers. */
  readonly trailersOnly: boolean;
  readonly status: number;
  readonly message: string;
  readonly messages: readonly Buffer[];
}

/** Opens a connection; an error on it is an error of the calls on it. */
export function openRaw(path: string) {
  const session = connectHttp2("http://localhost", { createConnection: () => connect(path) });
  session.on("error", () => {});
  return session;
}

/** Calls a method of any service, with a body of its own and further metadata. */
export async function rawCall(
  path: string,
  method: string,
  body: Uint8Array = new Uint8Array(0),
  metadata: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  const session = openRaw(path);
  try {
    return await new Promise((resolve, reject) => {
      session.once("error", reject);
      const stream = session.request({
        ":method": "POST",
        ":path": method,
        "content-type": "application/grpc",
        te: "trailers",
        ...metadata,
      });
      let first: IncomingHttpHeaders = {};
      let last: IncomingHttpHeaders = {};
      const chunks: Buffer[] = [];
      stream.on("response", (headers) => {
        first = headers;
      });
      stream.on("trailers", (headers) => {
        last = headers;
      });
      stream.on("data", (chunk) => chunks.push(chunk));
      stream.once("error", reject);
      stream.once("close", () => {
        const trailersOnly = "grpc-status" in first;
        const end = trailersOnly ? first : last;
        resolve({
          trailersOnly,
          status: Number(end["grpc-status"]),
          message: decodeURIComponent(String(end["grpc-message"] ?? "")),
          messages: split(Buffer.concat(chunks)),
        });
      });
      const frame = Buffer.alloc(5 + body.length);
      frame.writeUInt32BE(body.length, 1);
      frame.set(body, 5);
      stream.end(frame);
    });
  } finally {
    session.destroy();
  }
}

function split(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    messages.push(bytes.subarray(at + 5, end));
    at = end;
  }
  return messages;
}

/** The length-delimited fields of a protobuf message by number; those of other kinds have an empty value. */
export function fieldsOf(bytes: Uint8Array): ReadonlyMap<number, readonly Buffer[]> {
  const fields = new Map<number, Buffer[]>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    const list = fields.get(number) ?? [];
    fields.set(number, list);
    if (tag % 8 === 2) {
      const length = varint();
      list.push(Buffer.from(bytes.subarray(at, at + length)));
      at += length;
    } else if (tag % 8 === 0) {
      varint();
      list.push(Buffer.alloc(0));
    } else throw new Error(`field ${number} has wire type ${tag % 8}`);
  }
  return fields;
}
