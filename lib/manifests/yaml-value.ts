import { type Fields, isArray, isFields, maxDepth, type Tick, type Value } from "./value.ts";
import type { AliasNode, Node } from "./yaml-parse.ts";
import { floatKey, floatText, isMergeKey, resolveScalar, type Scalar } from "./yaml-scalar.ts";

/** A mapping's entries by key; the text before the colon tells the key's type, for Go keeps 1 and "1" apart. */
type Entries = Map<string, { readonly key: string; value: Value }>;

/** A mapping's key; `unsayable` is why it cannot be a key in JSON. */
interface Key {
  readonly id: string;
  readonly text: string;
  readonly unsayable: string | null;
}

/**
 * What JSON cannot say. Go finds it only when it writes the whole document, so one under a key that is given again later
 * does no harm.
 */
interface Unsayable {
  readonly unsayable: string;
}

type Frame =
  | { readonly kind: "sequence"; readonly items: readonly Node[]; next: number; readonly out: Value[] }
  | {
      readonly kind: "mapping";
      readonly items: readonly Node[];
      next: number;
      readonly out: Entries;
      /** The key whose value is under way. */
      key: Key | null;
      /** Whether the entries go into another mapping. */
      readonly merged: boolean;
    }
  /** Mappings to merge into one, the last first. */
  | { readonly kind: "merge"; readonly items: readonly Node[]; next: number; readonly out: Entries }
  | { readonly kind: "alias"; readonly node: AliasNode };

/** go-yaml's measure of how much of a document may come from aliases (decode.go, allowedAliasRatio). */
function allowedAliasRatio(steps: number): number {
  if (steps <= 400_000) return 0.99;
  if (steps >= 4_000_000) return 0.1;
  return 0.99 - 0.89 * ((steps - 400_000) / 3_600_000);
}

/**
 * Turns a document into a JSON value as sigs.k8s.io/yaml does: scalars by go-yaml v2, aliases followed within its
 * measure, `<<` merged where it stands (what comes after it wins, what came before loses), keys made texts.
 * It keeps its own stack. Throws SyntaxError.
 */
export function yamlValue(root: Node, tick: Tick = () => {}): Value {
  let steps = 0;
  let aliased = 0;
  let aliasDepth = 0;
  let deepest = 0;
  let unsayable = false;
  const active = new Set<AliasNode>();
  const frames: Frame[] = [];
  let result: Value = null;
  /** The value just read, waiting for the frame below; undefined while there is none. */
  let done: Value | undefined;

  const step = (): void => {
    tick();
    steps++;
    if (aliasDepth > 0) aliased++;
    if (aliased > 100 && steps > 1000 && aliased / steps > allowedAliasRatio(steps)) {
      throw new SyntaxError("too much of the document comes from aliases");
    }
  };
  const enter = (start: Node, into: Entries | null): void => {
    let node = start;
    step();
    while (node.kind === "alias") {
      if (active.has(node)) throw new SyntaxError(`line ${node.line}: an anchored value that contains itself`);
      active.add(node);
      aliasDepth++;
      frames.push({ kind: "alias", node });
      node = node.target;
      step();
    }
    if (node.kind === "scalar") {
      done = scalarValue(resolveScalar(node), node.line);
      if (isUnsayable(done)) unsayable = true;
      return;
    }
    if (frames.length >= deepest) deepest = frames.length + 1;
    if (node.kind === "sequence") frames.push({ kind: "sequence", items: node.items, next: 0, out: [] });
    else {
      const out: Entries = into ?? new Map();
      frames.push({ kind: "mapping", items: node.items, next: 0, out, key: null, merged: into !== null });
    }
  };

  enter(root, null);
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    switch (frame.kind) {
      case "alias":
        // Its value is done, or merged.
        active.delete(frame.node);
        aliasDepth--;
        frames.pop();
        break;
      case "sequence": {
        if (done !== undefined) frame.out.push(done);
        done = undefined;
        const item = frame.items[frame.next++];
        if (item !== undefined) {
          enter(item, null);
          break;
        }
        done = frame.out;
        frames.pop();
        break;
      }
      case "mapping": {
        if (done !== undefined && frame.key !== null) {
          const { id, text, unsayable: fault } = frame.key;
          frame.out.set(id, { key: text, value: fault === null ? done : unsayableValue(fault) });
        }
        done = undefined;
        frame.key = null;
        const key = frame.items[frame.next];
        const value = frame.items[frame.next + 1];
        if (key === undefined || value === undefined) {
          frames.pop();
          if (frame.merged) break;
          done = { fields: entriesOf(frame.out) };
          break;
        }
        frame.next += 2;
        if (key.kind === "scalar" && isMergeKey(key)) {
          frames.push({ kind: "merge", items: mergeSources(value), next: 0, out: frame.out });
          break;
        }
        let scalar = key;
        step();
        if (scalar.kind === "alias") {
          aliasDepth++;
          while (scalar.kind === "alias") {
            scalar = scalar.target;
            step();
          }
          aliasDepth--;
        }
        if (scalar.kind !== "scalar") throw new SyntaxError("a mapping key that is itself a mapping or sequence");
        frame.key = keyOf(resolveScalar(scalar), scalar.line);
        if (frame.key.unsayable !== null) unsayable = true;
        enter(value, null);
        break;
      }
      case "merge": {
        done = undefined;
        const source = frame.items[frame.items.length - 1 - frame.next++];
        if (source === undefined) frames.pop();
        else enter(source, frame.out);
        break;
      }
    }
  }
  if (done !== undefined) result = done;
  if (isFields(result)) result = inOrder(result);
  if (unsayable || deepest > maxDepth) checkSayable(result);
  return result;
}

/** A document's fields in the order Go's JSON writer gives them; it shows only where `kind` and `Kind` are both there. */
export function inOrder({ fields }: Fields): Fields {
  return { fields: [...fields].sort(([a], [b]) => byBytes(a, b)) };
}

/** Throws where a finished value holds what JSON cannot say, or is too deep for it. */
function checkSayable(root: Value): void {
  let level: Value[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    const next: Value[] = [];
    for (const value of level) {
      if (isUnsayable(value)) throw new SyntaxError(value.unsayable);
      if (isArray(value)) next.push(...value);
      else if (isFields(value)) for (const [, item] of value.fields) next.push(item);
      else continue;
      if (depth >= maxDepth) throw new SyntaxError("nested deeper than 10000");
    }
    level = next;
  }
}

/** Passes for a number until the whole is known. */
function unsayableValue(unsayable: string): Unsayable & { number: string } {
  return { number: "", unsayable };
}

function isUnsayable(value: Value | Unsayable): value is Unsayable {
  return value !== null && typeof value === "object" && "unsayable" in value;
}

function mergeSources(value: Node): readonly Node[] {
  const sources = value.kind === "sequence" ? value.items : [value];
  for (const source of sources) {
    const target = source.kind === "alias" ? source.target : source;
    if (target.kind !== "mapping") throw new SyntaxError("a << that merges something else than mappings");
  }
  return sources;
}

function scalarValue(value: Scalar, line: number): Value {
  if (typeof value === "bigint") return { number: value.toString() };
  if (typeof value !== "number") return value;
  const number = floatText(value);
  return number === null ? unsayableValue(`line ${line}: infinity and NaN have no place in JSON`) : { number };
}

function keyOf(value: Scalar, line: number): Key {
  const sound = (id: string, text: string): Key => ({ id, text, unsayable: null });
  if (value === null) return { id: "n", text: "", unsayable: `line ${line}: a null as a mapping key` };
  if (typeof value === "string") return sound(`s${value}`, value);
  if (typeof value === "boolean") return sound(`b${value}`, String(value));
  if (typeof value === "number") return sound(`f${value}`, floatKey(value));
  const text = value.toString();
  if (value > 2n ** 63n - 1n) return { id: `u${text}`, text, unsayable: `line ${line}: a mapping key over 63 bits` };
  return sound(`i${text}`, text);
}

function entriesOf(entries: Entries): [string, Value][] {
  const result: [string, Value][] = [];
  for (const { key, value } of entries.values()) result.push([key, value]);
  return result;
}

/** Orders two texts by their UTF-8 bytes, which is by their code points. */
export function byBytes(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // A surrogate stands for a character beyond every one that needs none.
    const high = (code: number): number => (code >= 0xd800 && code <= 0xdfff ? code + 0x10000 : code);
    return high(x) - high(y);
  }
  return a.length - b.length;
}
