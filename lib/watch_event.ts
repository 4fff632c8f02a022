import { Fault } from "./fault.ts";
import type { MessageSink } from "./grpc.ts";
import { decodePod, type Pod, type PodParts } from "./pod.ts";
import { type Cursor, ProtobufError, readEnd, readInt32, readVarint, skipField } from "./protobuf.ts";

/**
 * One event of a watch. `synced` comes once, after an `added` for each pod there was. The pod of `deleted` has a name,
 * namespace and UID only.
 */
export type WatchEvent<P = Pod> =
  | { readonly type: "added" | "modified" | "deleted"; readonly pod: P }
  | { readonly type: "synced" };

const types = ["", "added", "modified", "deleted", "synced"] as const;

/**
 * @param onEvent Called with each event; one of a type that is not known yet is passed over.
 * @param parts What of a pod is decoded, everything by default.
 * @returns A sink for WatchPodsEvent messages; its methods throw Fault Undecodable.
 */
export function createEventDecoder(onEvent: (event: WatchEvent) => void, parts?: PodParts): MessageSink {
  let message = new Uint8Array(0);
  let length = 0;
  return {
    start(size) {
      message = new Uint8Array(size);
      length = 0;
    },
    chunk(bytes) {
      message.set(bytes, length);
      length += bytes.length;
    },
    end() {
      const cursor: Cursor = { bytes: message, at: 0 };
      let kind = 0;
      let pod = new Uint8Array(0);
      try {
        for (let fields = 0; cursor.at < length; fields++) {
          // It has two; one of millions would be read past every deadline.
          if (fields > 100) throw new ProtobufError("over 100 fields");
          const tag = readVarint(cursor, length);
          if (tag === 8) kind = readInt32(cursor, length);
          else if (tag === 18) {
            const end = readEnd(cursor, length);
            pod = message.subarray(cursor.at, end);
            cursor.at = end;
          } else skipField(cursor, tag, length);
        }
      } catch (error) {
        if (!(error instanceof ProtobufError)) throw error;
        throw new Fault("Undecodable", `An event of the watch is not valid protobuf: ${error.message}`);
      }
      const type = types[kind];
      if (type === "synced") onEvent({ type });
      else if (type !== undefined && type !== "") onEvent({ type, pod: decodePod(pod, "all", parts) });
    },
  };
}
