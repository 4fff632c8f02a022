import type { Tick } from "./value.ts";
import { scanYaml, type Token, type TokenType } from "./yaml-scan.ts";
import type { YamlText } from "./yaml-text.ts";

/** A node of a YAML document. Tags of collections are not kept: Go's decoder does not look at them. */
export type Node = ScalarNode | SequenceNode | MappingNode | AliasNode;

export interface ScalarNode {
  readonly kind: "scalar";
  readonly value: string;
  /** Resolved, such as `tag:yaml.org,2002:int`; empty without one. */
  readonly tag: string;
  /** Whether the text alone decides its type: plain without a tag, or with the tag `!`. */
  readonly implicit: boolean;
  readonly line: number;
}

export interface SequenceNode {
  readonly kind: "sequence";
  readonly items: Node[];
}

export interface MappingNode {
  readonly kind: "mapping";
  /** Key, value, key, value… */
  readonly items: Node[];
}

export interface AliasNode {
  readonly kind: "alias";
  readonly target: Node;
  readonly line: number;
}

/** A stream's first document, and whether anything but comments and `---` follows it. */
export interface FirstDocument {
  readonly root: Node;
  readonly more: boolean;
}

/** What an open collection waits for. */
type State =
  | "block item"
  | "indentless item"
  | "block key"
  | "block value"
  | "first flow item"
  | "flow item"
  | "pair key"
  | "pair value"
  | "pair end"
  | "first flow key"
  | "flow key"
  | "flow value"
  | "no flow value";

const documentEnds: ReadonlySet<TokenType> = new Set([
  "version",
  "tag-directive",
  "document-start",
  "document-end",
  "stream-end",
] as const);
const documentStarts: ReadonlySet<TokenType> = new Set(["version", "tag-directive", "document-start"] as const);
const directives: ReadonlySet<TokenType> = new Set(["version", "tag-directive"] as const);
const afterDash: ReadonlySet<TokenType> = new Set(["-", "?", ":", "block-end"] as const);
const afterItem: ReadonlySet<TokenType> = new Set(["-", "block-end"] as const);
const afterKey: ReadonlySet<TokenType> = new Set(["?", ":", "block-end"] as const);
const afterPairKey: ReadonlySet<TokenType> = new Set([":", ",", "]"] as const);
const afterFlowKey: ReadonlySet<TokenType> = new Set([":", ",", "}"] as const);
const itemEnds: ReadonlySet<TokenType> = new Set([",", "]"] as const);
const entryEnds: ReadonlySet<TokenType> = new Set([",", "}"] as const);
const documentMarks: ReadonlySet<TokenType> = new Set(["document-start", "document-end"] as const);

/**
 * Reads a YAML stream's first document by libyaml's grammar, and no token further than that takes; null for a stream
 * without one. It keeps its own stack, so depth costs memory and not the call stack. Throws SyntaxError.
 */
export function parseYaml(text: YamlText, tick: Tick = () => {}): FirstDocument | null {
  const { peek, take } = scanYaml(text);
  const next = (type: TokenType): boolean => peek().type === type;
  const nextIn = (types: ReadonlySet<TokenType>): boolean => types.has(peek().type);
  const refuse = (what: string, token: Token = peek()): never => {
    throw new SyntaxError(`line ${token.line}: ${what}`);
  };

  if (next("stream-end")) return null;
  const handles = new Map<string, string>();
  const explicit = nextIn(documentStarts);
  let versions = 0;
  while (nextIn(directives)) {
    const token = take();
    if (token.type === "version") {
      if (++versions > 1) refuse("a second %YAML directive", token);
      if (token.suffix !== "1.1") refuse("%YAML with another version than 1.1", token);
    } else {
      if (handles.has(token.value)) refuse("a second %TAG directive for one handle", token);
      handles.set(token.value, token.suffix);
    }
  }
  if (!handles.has("!")) handles.set("!", "!");
  if (!handles.has("!!")) handles.set("!!", "tag:yaml.org,2002:");
  if (explicit && take().type !== "document-start") refuse("--- is expected after directives");

  const anchors = new Map<string, Node>();
  const states: State[] = [];
  const open: (SequenceNode | MappingNode)[] = [];
  let root: Node | null = null;

  const put = (made: Node): void => {
    const parent = open.at(-1);
    if (parent === undefined) root = made;
    else parent.items.push(made);
  };
  const empty = (): void => put({ kind: "scalar", value: "", tag: "", implicit: true, line: peek().line });
  const begin = (kind: "sequence" | "mapping", state: State, anchor: string | null): void => {
    const made: SequenceNode | MappingNode = { kind, items: [] };
    if (anchor !== null) anchors.set(anchor, made);
    put(made);
    open.push(made);
    states.push(state);
  };
  const end = (): void => {
    states.pop();
    open.pop();
  };
  const wait = (state: State): void => {
    states[states.length - 1] = state;
  };

  /** The tag a tag token stands for. */
  const tagOf = (token: Token): string => {
    if (token.value === "") return token.suffix;
    const prefix = handles.get(token.value);
    const tag = prefix === undefined ? "" : prefix + token.suffix;
    return tag === "" ? refuse("a tag whose handle nothing defines", token) : tag;
  };
  /** Reads a scalar or an alias, or opens a collection. */
  const node = (block: boolean, indentless: boolean): void => {
    if (next("alias")) {
      const token = take();
      const target = anchors.get(token.value);
      if (target === undefined) return refuse(`nothing before it is anchored as ${token.value.slice(0, 40)}`, token);
      return put({ kind: "alias", target, line: token.line });
    }
    let anchor: string | null = null;
    let tagToken: Token | null = null;
    const line = peek().line;
    if (next("anchor")) {
      anchor = take().value;
      if (next("tag")) tagToken = take();
    } else if (next("tag")) {
      tagToken = take();
      if (next("anchor")) anchor = take().value;
    }
    const type = peek().type;
    const tag = tagToken === null ? "" : tagOf(tagToken);
    if (indentless && type === "-") return begin("sequence", "indentless item", anchor);
    if (type === "scalar" || ((anchor !== null || tag !== "") && !opens(type, block))) {
      const token = type === "scalar" ? take() : null;
      const implicit = (tag === "" && (token === null || token.plain)) || (token !== null && tag === "!");
      const made: Node = { kind: "scalar", value: token?.value ?? "", tag, implicit, line: token?.line ?? line };
      if (anchor !== null) anchors.set(anchor, made);
      return put(made);
    }
    if (!opens(type, block)) return refuse(type === "stream-end" ? "the text ends too early" : "a value is expected");
    take();
    if (type === "[") return begin("sequence", "first flow item", anchor);
    if (type === "{") return begin("mapping", "first flow key", anchor);
    if (type === "block-sequence") return begin("sequence", "block item", anchor);
    return begin("mapping", "block key", anchor);
  };

  if (explicit && nextIn(documentEnds)) empty();
  else node(true, false);

  // A list is no manifest, and 10 MiB of it take seconds.
  if (open[0]?.kind === "sequence") return { root: open[0], more: false };
  for (let state = states.at(-1); state !== undefined; state = states.at(-1)) {
    tick();
    switch (state) {
      case "block item":
        if (next("-")) {
          take();
          if (nextIn(afterItem)) empty();
          else node(true, false);
        } else if (next("block-end")) {
          take();
          end();
        } else refuse("a - is expected");
        break;
      case "indentless item":
        if (!next("-")) {
          end();
          break;
        }
        take();
        if (nextIn(afterDash)) empty();
        else node(true, false);
        break;
      case "block key":
        if (next("?")) {
          take();
          wait("block value");
          if (nextIn(afterKey)) empty();
          else node(true, true);
        } else if (next("block-end")) {
          take();
          end();
        } else refuse("a key is expected");
        break;
      case "block value":
        wait("block key");
        if (!next(":")) {
          empty();
          break;
        }
        take();
        if (nextIn(afterKey)) empty();
        else node(true, true);
        break;
      case "first flow item":
      case "flow item":
        if (!next("]")) {
          if (state === "flow item") {
            if (!next(",")) refuse("a comma or ] is expected");
            take();
          }
          wait("flow item");
          if (next("?")) {
            take();
            begin("mapping", "pair key", null);
            break;
          }
          if (!next("]")) {
            node(false, false);
            break;
          }
        }
        take();
        end();
        break;
      case "pair key":
        wait("pair value");
        if (nextIn(afterPairKey)) {
          // libyaml takes that token, so what stood after it is then out of place.
          take();
          empty();
        } else node(false, false);
        break;
      case "pair value":
        wait("pair end");
        if (next(":")) {
          take();
          if (!nextIn(itemEnds)) {
            node(false, false);
            break;
          }
        }
        empty();
        break;
      case "pair end":
        end();
        break;
      case "first flow key":
      case "flow key":
        if (!next("}")) {
          if (state === "flow key") {
            if (!next(",")) refuse("a comma or } is expected");
            take();
          }
          if (next("?")) {
            take();
            wait("flow value");
            if (nextIn(afterFlowKey)) empty();
            else node(false, false);
            break;
          }
          if (!next("}")) {
            wait("no flow value");
            node(false, false);
            break;
          }
        }
        take();
        end();
        break;
      case "flow value":
        wait("flow key");
        if (next(":")) {
          take();
          if (!nextIn(entryEnds)) {
            node(false, false);
            break;
          }
        }
        empty();
        break;
      case "no flow value":
        wait("flow key");
        empty();
        break;
    }
  }

  if (next("document-end")) take();
  let more = true;
  try {
    while (nextIn(documentMarks)) take();
    more = !next("stream-end");
  } catch {
    // What follows is no YAML: the kubelet does not look at it, but it is there.
  }
  return { root: root!, more };
}

function opens(type: TokenType, block: boolean): boolean {
  return type === "[" || type === "{" || (block && (type === "block-sequence" || type === "block-mapping"));
}
