// Header compression for HTTP/2 (RFC 7541): everything a server may send is decoded; what we send uses no table and no
// Huffman code. Written here because node:http2 and a protobuf runtime cost more start-up than the whole call.

/** Header fields by lower-case name; a repeated name keeps its values joined by a comma, as HTTP has it. */
export type Headers = Record<string, string>;

/** Thrown for a header block that breaks RFC 7541, or that is over the limit given to the decoder. */
export class HpackError extends Error {
  override readonly name = "HpackError";
}

// RFC 7541 appendix A, without :authority's empty value and the like: name and value in turn.
const staticTable: readonly (readonly [string, string])[] = (
  ":authority|;:method|GET;:method|POST;:path|/;:path|/index.html;:scheme|http;:scheme|https;:status|200;:status|204;" +
  ":status|206;:status|304;:status|400;:status|404;:status|500;accept-charset|;accept-encoding|gzip, deflate;" +
  "accept-language|;accept-ranges|;accept|;access-control-allow-origin|;age|;allow|;authorization|;cache-control|;" +
  "content-disposition|;content-encoding|;content-language|;content-length|;content-location|;content-range|;" +
  "content-type|;cookie|;date|;etag|;expect|;expires|;from|;host|;if-match|;if-modified-since|;if-none-match|;if-range|;" +
  "if-unmodified-since|;last-modified|;link|;location|;max-forwards|;proxy-authenticate|;proxy-authorization|;range|;" +
  "referer|;refresh|;retry-after|;server|;set-cookie|;strict-transport-security|;transfer-encoding|;user-agent|;vary|;" +
  "via|;www-authenticate|"
)
  .split(";")
  .map((entry) => entry.split("|") as [string, string]);

// RFC 7541 appendix B: the code's length for each byte value, `a` for 5 bits to `z` for 30. The code is canonical
// (ordered by length, then by value), so the lengths are all there is to know. The end marker is thirty ones.
const codeLengths =
  "isxxxxxxxtzxxzxxxxxxxxzxxxxxxxxxbffhibdgffdgdbbbaaabbbbbbbcdkbhfibccccccccccccccccccccccdcdioijbkabababbbaccbbbabcbaab" +
  "ccccckgjixprpprrrsrssssststtrstssssqrsrsstrqprrssqsrrtqrssqqrqsrssprrrsrrsvvpo" +
  "rsruvvvwwvtuoqvwwvwtqqvvxwwwptpqrqqsrruuttvsvwvvwwwwwxwwwwwv";

interface HuffmanTable {
  /** Byte values ordered by code. */
  readonly symbols: Uint8Array;
  /** For each length: how many codes have it. */
  readonly counts: Uint16Array;
}

let huffmanTable: HuffmanTable | undefined;

function buildHuffmanTable(): HuffmanTable {
  const counts = new Uint16Array(31);
  const symbols = new Uint8Array(256);
  let next = 0;
  for (let length = 5; length <= 30; length++) {
    for (let value = 0; value < 256; value++) {
      if (codeLengths.charCodeAt(value) - 92 !== length) continue;
      symbols[next++] = value;
      counts[length]!++;
    }
  }
  return { symbols, counts };
}

function decodeHuffman(bytes: Uint8Array): string {
  huffmanTable ??= buildHuffmanTable();
  const { symbols, counts } = huffmanTable;
  const out = new Uint8Array(Math.ceil((bytes.length * 8) / 5));
  let written = 0;
  let code = 0;
  let length = 0;
  let first = 0; // the lowest code of this length
  let index = 0; // where the symbols of this length begin
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = (code << 1) | ((byte >> bit) & 1);
      length++;
      first <<= 1;
      const count = counts[length] ?? 0;
      if (code - first < count) {
        out[written++] = symbols[index + code - first]!;
        code = length = first = index = 0;
      } else if (length >= 30) {
        throw new HpackError("a Huffman code that does not exist");
      } else {
        first += count;
        index += count;
      }
    }
  }
  // What is left over must be the start of the end marker, and shorter than a byte.
  if (length > 7 || code !== (1 << length) - 1) throw new HpackError("a Huffman string with wrong padding");
  return latin1(out.subarray(0, written));
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

/** Decodes header blocks of one connection; the blocks must come in the order of the wire. */
export interface HpackDecoder {
  /**
   * @param block A whole header block.
   * @returns Its fields; bytes over 127 stand as the code points of Latin-1.
   * @throws HpackError
   */
  decode(block: Uint8Array): Headers;
}

/**
 * @param limit How many bytes of names and values one block may decode to: a block of references into the table can be
 *   thousands of times larger than itself.
 */
export function createHpackDecoder(limit: number): HpackDecoder {
  const announced = 4096; // SETTINGS_HEADER_TABLE_SIZE as it is unless said otherwise, and we say nothing
  let capacity = announced;
  let size = 0;
  const dynamic: (readonly [string, string])[] = []; // the newest last

  function shrink(): void {
    while (size > capacity) {
      const [name, value] = dynamic.shift()!;
      size -= name.length + value.length + 32;
    }
  }

  function entry(index: number): readonly [string, string] {
    const found =
      index <= staticTable.length ? staticTable[index - 1] : dynamic[staticTable.length + dynamic.length - index];
    if (found === undefined) throw new HpackError(`a reference to entry ${index}, which does not exist`);
    return found;
  }

  return {
    decode(block) {
      const headers: Headers = Object.create(null);
      let position = 0;
      let total = 0;

      function integer(prefixBits: number): number {
        if (position >= block.length) throw new HpackError("a header block that ends early");
        const mask = (1 << prefixBits) - 1;
        let value = block[position++]! & mask;
        if (value < mask) return value;
        for (let shift = 0; shift <= 21; shift += 7) {
          if (position >= block.length) throw new HpackError("a header block that ends early");
          const byte = block[position++]!;
          value += (byte & 127) << shift;
          if (byte < 128) return value;
        }
        throw new HpackError("an integer over the limit");
      }

      function text(): string {
        const huffman = position < block.length && block[position]! >= 128;
        const length = integer(7);
        if (position + length > block.length) throw new HpackError("a header block that ends early");
        const bytes = block.subarray(position, position + length);
        position += length;
        return huffman ? decodeHuffman(bytes) : latin1(bytes);
      }

      function add(name: string, value: string): void {
        total += name.length + value.length + 32;
        if (total > limit) throw new HpackError(`headers over ${limit} bytes`);
        headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
      }

      while (position < block.length) {
        const byte = block[position]!;
        if (byte >= 128) {
          add(...entry(integer(7)));
        } else if (byte >= 64) {
          const index = integer(6);
          const name = index === 0 ? text() : entry(index)[0];
          const value = text();
          add(name, value);
          size += name.length + value.length + 32;
          dynamic.push([name, value]);
          shrink();
        } else if (byte >= 32) {
          const wanted = integer(5);
          if (total > 0) throw new HpackError("a change of the table's size behind a field");
          if (wanted > announced) throw new HpackError(`a table of ${wanted} bytes, ${announced} allowed`);
          capacity = wanted;
          shrink();
        } else {
          const index = integer(4);
          add(index === 0 ? text() : entry(index)[0], text());
        }
      }
      return headers;
    },
  };
}

/**
 * Encodes a header block as literals that no table remembers.
 * @param fields Names in lower case, pseudo-headers first; in ASCII, names of at most 126 bytes and values of at most
 *   4096, for anything longer is not ours.
 */
export function encodeHeaders(fields: Readonly<Record<string, string>>): Uint8Array {
  let block = "";
  for (const name in fields) {
    const value = fields[name]!;
    if (name.length > 126 || value.length > 4096) {
      throw new RangeError(`Cannot send header ${name}: its name is over 126 bytes or its value over 4096`);
    }
    block += `\0${String.fromCharCode(name.length)}${name}${lengthOf(value)}${value}`;
  }
  return Buffer.from(block, "latin1");
}

/** An integer with a prefix of seven bits: RFC 7541 section 5.1. */
function lengthOf({ length }: string): string {
  if (length < 127) return String.fromCharCode(length);
  const rest = length - 127;
  return rest < 128 ? String.fromCharCode(127, rest) : String.fromCharCode(127, (rest & 127) | 128, rest >> 7);
}
