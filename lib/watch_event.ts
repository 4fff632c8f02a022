import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Fault } from "./fault.ts";
import type { MessageSink } from "./grpc.ts";
import { decodePod, type Pod } from "./pod.ts";

/**
 * One event of a watch. `synced` comes once, after an `added` for each pod there was. The pod of `deleted` has a name,
 * namespace and UID only.
 */
export type WatchEvent =
  | { readonly type: "added" | "modified" | "deleted"; readonly pod: Pod }
  | { readonly type: "synced" };

const types = ["", "added", "modified", "deleted", "synced"] as const;

/**
 * @param onEvent Called with each event; one of a type that is not known yet is passed over.
 * @returns A sink for WatchPodsEvent messages; its methods throw Fault Undecodable.
 */
export function createEventDecoder(onEvent: (event: WatchEvent) => void): MessageSink {
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
      const reader = new BinaryReader(message);
      let kind = 0;
      let bytes: Uint8Array | undefined;
      try {
        while (reader.pos < reader.len) {
          const [field, type] = reader.tag();
          if (field === 1 && type === WireType.Varint) kind = reader.int32();
          else if (field === 2 && type === WireType.LengthDelimited) bytes = reader.bytes();
          else reader.skip(type, field);
        }
      } catch (error) {
        throw new Fault("Undecodable", `An event of the watch is not valid protobuf: ${(error as Error).message}`);
      }
      const type = types[kind];
      if (type === "synced") onEvent({ type });
      else if (type !== undefined && type !== "") onEvent({ type, pod: decodePod(bytes ?? new Uint8Array(0)) });
    },
  };
}
