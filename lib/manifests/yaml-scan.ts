import type { YamlText } from "./yaml-text.ts";

/** One token of a YAML stream. */
export interface Token {
  readonly type: TokenType;
  /** The scalar's text, the anchor's name, the tag's or `%TAG` directive's handle. */
  readonly value: string;
  /** The tag's suffix, the `%TAG` directive's prefix, the `%YAML` directive's version. */
  readonly suffix: string;
  /** Whether a scalar is plain: neither quoted nor a block. */
  readonly plain: boolean;
  /** Counted from 1. */
  readonly line: number;
}

export type TokenType =
  | "stream-end"
  | "version"
  | "tag-directive"
  | "document-start"
  | "document-end"
  | "block-sequence"
  | "block-mapping"
  | "block-end"
  | "["
  | "{"
  | "]"
  | "}"
  | ","
  | "-"
  | "?"
  | ":"
  | "alias"
  | "anchor"
  | "tag"
  | "scalar";

/** A scanner gives one token after another. */
export interface Scanner {
  /** The next token, left in place. */
  peek(): Token;
  /** Takes the token that peek gave. */
  take(): Token;
}

/** A place where a mapping key without `?` may have begun. */
interface SimpleKey {
  possible: boolean;
  required: boolean;
  token: number;
  index: number;
  line: number;
  column: number;
}

/** libyaml's limits (max_flow_level, max_indents; 1024 characters for a key without `?`). */
const maxLevel = 10_000;
const maxKey = 1024;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const tab = 0x09;

const isBreak = (code: number): boolean =>
  code === lineFeed || code === carriageReturn || code === 0x85 || code === 0x2028 || code === 0x2029;
const isBlank = (code: number): boolean => code === space || code === tab;
/** 0 is the end of the text. */
const isBlankOrEnd = (code: number): boolean => code === 0 || isBlank(code) || isBreak(code);
const isBreakOrEnd = (code: number): boolean => code === 0 || isBreak(code);
const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
const isWord = (code: number): boolean =>
  isDigit(code) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f || code === 0x2d;
const isHex = (code: number): boolean =>
  isDigit(code) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66);

/** Characters a plain scalar cannot begin with, apart from `-`, `?` and `:` before something solid. */
const indicators = new Set([..."-?:,[]{}#&*!|>'\"%@`"].map((character) => character.charCodeAt(0)));
const uriCharacters = new Set([...";/?:@&=+$,.!~*'()[]%"].map((character) => character.charCodeAt(0)));
/** What may follow an anchor's name without a blank. */
const afterAnchor = new Set([..."?:,]}%@`"].map((character) => character.charCodeAt(0)));

/** Runs of ASCII in which nothing ends, for most of a manifest is that. */
const runs = {
  block: /[!-9;-~]+/y,
  flow: /[!-+\--9;->@-Z\\^-z|~]+/y,
  single: /[!-&(-~]+/y,
  double: /[!#-[\]-~]+/y,
  line: /[\t -~]+/y,
} as const;

const escapes: Readonly<Record<string, string>> = {
  "0": "\0",
  a: "\x07",
  b: "\b",
  t: "\t",
  "\t": "\t",
  n: "\n",
  v: "\v",
  f: "\f",
  r: "\r",
  e: "\x1b",
  " ": " ",
  '"': '"',
  "'": "'",
  "\\": "\\",
  N: "\x85",
  _: "\xa0",
  L: "\u2028",
  P: "\u2029",
};
const hexEscapes: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * Cuts a YAML stream into the tokens libyaml cuts it into: YAML 1.1 with libyaml's own liberties (a quoted scalar may
 * go on at any indentation, tabs may separate but not indent, `?` ends a plain scalar in `[]` and `{}`, `:` there is
 * always an indicator at the start of a token) and its own limits. The kubelet accepts a manifest if and only if these
 * rules do, and YAML 1.2 readers differ from them in both directions. Throws SyntaxError.
 */
export function scanYaml({ text, ends, fault }: YamlText): Scanner {
  let at = 0;
  let index = 0;
  let column = 0;
  let line = 0;

  let flow = 0;
  let indent = -1;
  const indents: number[] = [];
  let keyAllowed = true;
  const keys: SimpleKey[] = [{ possible: false, required: false, token: 0, index: 0, line: 0, column: 0 }];
  const keyOfToken = new Map<number, number>();

  let tokens: Token[] = [];
  let head = 0;
  let taken = 0;
  let ready = false;

  let reads = 0;
  /** Where libyaml's buffer begins and ends, as far as it matters. */
  let bufferStart = 0;
  let known = ends === null ? Number.POSITIVE_INFINITY : 0;

  const refuse = (what: string, where = line): never => {
    throw new SyntaxError(`line ${where + 1}: ${what}`);
  };

  /** Makes `count` characters known, as libyaml would before it looks at them. */
  const need = (count: number): void => {
    if (at + count <= known) return;
    bufferStart = at;
    while (at + count > known) {
      const end = ends?.[reads++];
      if (end === undefined) {
        if (fault !== null) refuse(fault);
        known = Number.POSITIVE_INFINITY;
        return;
      }
      known = end;
    }
  };
  const code = (offset = 0): number => (at + offset < text.length ? text.charCodeAt(at + offset) : 0);
  const skip = (): void => {
    at += (text.charCodeAt(at) & 0xfc00) === 0xd800 ? 2 : 1;
    index++;
    column++;
  };
  /** Takes a run at once, where nothing has to be made known on the way. */
  const skipRun = (run: RegExp): void => {
    if (ends !== null) return;
    run.lastIndex = at;
    if (!run.test(text)) return;
    index += run.lastIndex - at;
    column += run.lastIndex - at;
    at = run.lastIndex;
  };
  /** Takes a line break; what it stands for in a scalar. */
  const takeBreak = (): string => {
    const first = code();
    if (!isBreak(first)) return "";
    const both = first === carriageReturn && code(1) === lineFeed;
    at += both ? 2 : 1;
    index += both ? 2 : 1;
    column = 0;
    line++;
    return first === 0x2028 || first === 0x2029 ? String.fromCharCode(first) : "\n";
  };
  const skipBlanks = (): void => {
    need(1);
    while (isBlank(code())) {
      skip();
      need(1);
    }
  };
  const skipComment = (): void => {
    if (code() !== 0x23) return;
    skipRun(runs.line);
    while (!isBreakOrEnd(code())) {
      skip();
      need(1);
    }
  };
  /** Takes the word characters ahead. */
  const word = (): string => {
    const start = at;
    need(1);
    while (isWord(code())) {
      skip();
      need(1);
    }
    return text.slice(start, at);
  };
  /** Whether `---` or `...` stands here, alone at the start of a line. */
  const atDocumentMark = (): boolean => {
    if (column !== 0) return false;
    const first = code();
    return (first === 0x2d || first === 0x2e) && code(1) === first && code(2) === first && isBlankOrEnd(code(3));
  };

  const token = (type: TokenType, value = "", suffix = "", plain = false, where = line): Token => ({
    type,
    value,
    suffix,
    plain,
    line: where + 1,
  });
  const add = (made: Token): void => {
    tokens.push(made);
  };
  /** Puts a token before one that is still in the queue; behind them all where that one is gone. */
  const insert = (number: number, made: Token): void => {
    const place = number - taken;
    if (place < 0) tokens.push(made);
    else tokens.splice(head + place, 0, made);
  };

  const keyStands = (key: SimpleKey): boolean => {
    if (!key.possible) return false;
    if (key.line < line || key.index + maxKey < index) {
      if (key.required) refuse("a colon is missing after a key", key.line);
      key.possible = false;
      return false;
    }
    return true;
  };
  const dropKey = (): void => {
    const key = keys.at(-1)!;
    if (!key.possible) return;
    if (key.required) refuse("a colon is missing after a key", key.line);
    key.possible = false;
    keyOfToken.delete(key.token);
  };
  const saveKey = (): void => {
    if (!keyAllowed) return;
    const required = flow === 0 && indent === column;
    dropKey();
    const number = taken + (tokens.length - head);
    keys[keys.length - 1] = { possible: true, required, token: number, index, line, column };
    keyOfToken.set(number, keys.length - 1);
  };
  const indentTo = (
    to: number,
    type: "block-sequence" | "block-mapping",
    before: number | null,
    where: number,
  ): void => {
    if (flow > 0 || indent >= to) return;
    indents.push(indent);
    indent = to;
    if (indents.length > maxLevel) refuse("nested deeper than 10000");
    const made = token(type, "", "", false, where);
    if (before === null) add(made);
    else insert(before, made);
  };
  const unindentTo = (to: number): void => {
    if (flow > 0) return;
    while (indent > to) {
      add(token("block-end"));
      indent = indents.pop()!;
    }
  };

  const toNextToken = (): void => {
    for (;;) {
      need(1);
      // libyaml looks for the mark at the start of its buffer, wherever it is in the line.
      if (column === 0 && text.charCodeAt(bufferStart) === 0xfeff && ends !== null && at < text.length) skip();
      need(1);
      while (code() === space || ((flow > 0 || !keyAllowed) && code() === tab)) {
        skip();
        need(1);
      }
      skipComment();
      if (!isBreak(code())) return;
      need(2);
      takeBreak();
      if (flow === 0) keyAllowed = true;
    }
  };

  const directive = (): Token => {
    const start = line;
    skip();
    const name = word();
    if (name === "" || !isBlankOrEnd(code())) refuse("a directive without a name");
    let made: Token;
    if (name === "YAML") {
      skipBlanks();
      const number = (): string => {
        const first = at;
        need(1);
        while (isDigit(code())) {
          if (at - first >= 2) refuse("a %YAML version that is no version");
          skip();
          need(1);
        }
        return text.slice(first, at) || refuse("a %YAML version that is no version");
      };
      const major = number();
      if (code() !== 0x2e) refuse("a %YAML version that is no version");
      skip();
      made = token("version", "", `${Number(major)}.${Number(number())}`, false, start);
    } else if (name === "TAG") {
      skipBlanks();
      const handle = tagHandle(true);
      need(1);
      if (!isBlank(code())) refuse("a %TAG directive without a prefix");
      skipBlanks();
      const prefix = uri("");
      need(1);
      if (!isBlankOrEnd(code())) refuse("a %TAG prefix with other characters");
      made = token("tag-directive", handle, prefix, false, start);
    } else {
      return refuse("a directive that is neither %YAML nor %TAG");
    }
    skipBlanks();
    skipComment();
    if (!isBreakOrEnd(code())) refuse("something follows a directive");
    need(2);
    takeBreak();
    return made;
  };

  const anchor = (type: "anchor" | "alias"): Token => {
    skip();
    const name = word();
    const next = code();
    if (name === "" || !(isBlankOrEnd(next) || afterAnchor.has(next)))
      refuse("an anchor or alias without a proper name");
    return token(type, name);
  };

  const tagHandle = (inDirective: boolean): string => {
    need(1);
    if (code() !== 0x21) refuse("a tag without !");
    const start = at;
    skip();
    word();
    if (code() === 0x21) skip();
    else if (inDirective && at - start > 1) refuse("a tag handle without a closing !");
    return text.slice(start, at);
  };
  /** Takes the characters of a tag's URI, percent escapes decoded; `before` is what an attempt at a handle took. */
  const uri = (before: string): string => {
    const octets: number[] = [];
    let result = before.slice(1);
    let found = before !== "";
    const flush = (): void => {
      if (octets.length > 0) result += new TextDecoder().decode(Uint8Array.from(octets.splice(0)));
    };
    need(1);
    while (isWord(code()) || uriCharacters.has(code())) {
      found = true;
      if (code() !== 0x25) {
        flush();
        result += String.fromCharCode(code());
        skip();
      } else {
        let width = 0;
        do {
          need(3);
          if (!(code() === 0x25 && isHex(code(1)) && isHex(code(2)))) refuse("a tag with a broken percent escape");
          const octet = Number.parseInt(text.slice(at + 1, at + 3), 16);
          if (width === 0) {
            width = octet < 0x80 ? 1 : octet >> 5 === 6 ? 2 : octet >> 4 === 14 ? 3 : octet >> 3 === 30 ? 4 : 0;
            if (width === 0) refuse("a tag with a broken percent escape");
          } else if ((octet & 0xc0) !== 0x80) refuse("a tag with a broken percent escape");
          octets.push(octet);
          skip();
          skip();
          skip();
          width--;
        } while (width > 0);
      }
      need(1);
    }
    flush();
    if (!found) refuse("a tag without a name");
    return result;
  };
  const tag = (): Token => {
    let handle = "";
    let suffix: string;
    need(2);
    if (code(1) === 0x3c) {
      skip();
      skip();
      suffix = uri("");
      if (code() !== 0x3e) refuse("a tag without its closing >");
      skip();
    } else {
      handle = tagHandle(false);
      if (handle.length > 1 && handle.endsWith("!")) suffix = uri("");
      else {
        suffix = uri(handle);
        handle = "!";
        if (suffix === "") [handle, suffix] = ["", "!"];
      }
    }
    need(1);
    if (!isBlankOrEnd(code())) refuse("a tag with other characters");
    return token("tag", handle, suffix);
  };

  const blockScalar = (literal: boolean): Token => {
    const start = line;
    skip();
    need(1);
    let chomp = 0;
    let increment = 0;
    const chomping = (): void => {
      if (code() !== 0x2b && code() !== 0x2d) return;
      chomp = code() === 0x2b ? 1 : -1;
      skip();
      need(1);
    };
    chomping();
    if (isDigit(code())) {
      increment = code() - 0x30;
      if (increment === 0) refuse("a block scalar with an indentation of 0");
      skip();
      need(1);
      if (chomp === 0) chomping();
    }
    skipBlanks();
    skipComment();
    if (!isBreakOrEnd(code())) refuse("something follows a block scalar's header");
    need(2);
    takeBreak();

    let depth = increment > 0 ? Math.max(indent, 0) + increment : 0;
    /** Takes indentation and empty lines; the breaks among them. */
    const emptyLines = (): string => {
      let breaks = "";
      let widest = 0;
      for (;;) {
        need(1);
        while ((depth === 0 || column < depth) && code() === space) {
          skip();
          need(1);
        }
        if (column > widest) widest = column;
        if ((depth === 0 || column < depth) && code() === tab) refuse("a tab where a block scalar is indented");
        if (!isBreak(code())) break;
        need(2);
        breaks += takeBreak();
      }
      if (depth === 0) depth = Math.max(widest, indent + 1, 1);
      return breaks;
    };

    const parts: string[] = [];
    let trailing = emptyLines();
    let leading = "";
    let wasBlank = false;
    need(1);
    while (column === depth && code() !== 0) {
      const blank = isBlank(code());
      if (!literal && leading.startsWith("\n") && !wasBlank && !blank) {
        if (trailing === "") parts.push(" ");
      } else parts.push(leading);
      parts.push(trailing);
      wasBlank = blank;
      const from = at;
      skipRun(runs.line);
      while (!isBreakOrEnd(code())) {
        skip();
        need(1);
      }
      parts.push(text.slice(from, at));
      need(2);
      leading = takeBreak();
      trailing = emptyLines();
    }
    if (chomp !== -1) parts.push(leading);
    if (chomp === 1) parts.push(trailing);
    return token("scalar", parts.join(""), "", false, start);
  };

  /** Folds the breaks between two parts of a quoted or plain scalar. */
  const fold = (leading: string, trailing: string): string => {
    if (leading.startsWith("\n")) return trailing === "" ? " " : trailing;
    return leading + trailing;
  };

  const quotedScalar = (single: boolean): Token => {
    const start = line;
    const parts: string[] = [];
    skip();
    for (;;) {
      need(4);
      if (atDocumentMark()) refuse("a quoted text runs into the end of its document", start);
      if (code() === 0) refuse("a quoted text does not end", start);
      let folding = false;
      let from = at;
      const run = single ? runs.single : runs.double;
      skipRun(run);
      while (!isBlankOrEnd(code())) {
        const here = code();
        if (single) {
          if (here === 0x27) {
            if (code(1) !== 0x27) break;
            skip();
            parts.push(text.slice(from, at));
            skip();
            from = at;
          } else skip();
        } else if (here === 0x22) {
          break;
        } else if (here === 0x5c) {
          parts.push(text.slice(from, at));
          if (isBreak(code(1))) {
            need(3);
            skip();
            takeBreak();
            folding = true;
            from = at;
            break;
          }
          const name = code(1) === 0 ? "" : text[at + 1]!;
          const digits = hexEscapes[name];
          const meant = escapes[name];
          if (digits === undefined && meant === undefined) refuse("an escape that YAML does not know");
          skip();
          skip();
          if (digits === undefined) parts.push(meant!);
          else {
            need(digits);
            for (let i = 0; i < digits; i++) if (!isHex(code(i))) refuse("an escape without its hexadecimal digits");
            const value = Number.parseInt(text.slice(at, at + digits), 16);
            if ((value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff) refuse("an escape that is no character");
            parts.push(String.fromCodePoint(value));
            for (let i = 0; i < digits; i++) skip();
          }
          from = at;
        } else skip();
        need(2);
        skipRun(run);
      }
      parts.push(text.slice(from, at));
      need(1);
      if (code() === (single ? 0x27 : 0x22)) break;
      const [leading, trailing, blanks] = gap(folding, 0);
      parts.push(leading === null ? blanks : fold(leading, trailing));
    }
    skip();
    return token("scalar", parts.join(""), "", false, start);
  };

  /**
   * Takes blanks and breaks: the first break (null: none, and no escaped one before), the breaks after it, and the
   * blanks before any. A tab left of `floor` after a break is refused.
   */
  const gap = (folding: boolean, floor: number): [string | null, string, string] => {
    let leading: string | null = folding ? "" : null;
    let trailing = "";
    let blanks = "";
    for (;;) {
      const here = code();
      if (isBlank(here)) {
        if (leading === null) blanks += String.fromCharCode(here);
        else if (here === tab && column < floor) refuse("a tab where a plain text is indented");
        skip();
      } else if (isBreak(here)) {
        need(2);
        if (leading === null) leading = takeBreak();
        else trailing += takeBreak();
      } else return [leading, trailing, blanks];
      need(1);
    }
  };

  const plainScalar = (): Token => {
    const start = line;
    const floor = indent + 1;
    const parts: string[] = [];
    let pending = "";
    let folded = false;
    for (;;) {
      need(4);
      if (atDocumentMark() || code() === 0x23) break;
      const from = at;
      const run = flow > 0 ? runs.flow : runs.block;
      skipRun(run);
      while (!isBlankOrEnd(code())) {
        const here = code();
        if (here === 0x3a && isBlankOrEnd(code(1))) break;
        if (
          flow > 0 &&
          (here === 0x2c || here === 0x3f || here === 0x5b || here === 0x5d || here === 0x7b || here === 0x7d)
        ) {
          break;
        }
        skip();
        need(2);
        skipRun(run);
      }
      if (at > from) {
        parts.push(pending, text.slice(from, at));
        pending = "";
        folded = false;
      }
      if (!(isBlank(code()) || isBreak(code()))) break;
      need(1);
      const [leading, trailing, blanks] = gap(false, floor);
      folded = leading !== null;
      pending = leading === null ? blanks : fold(leading, trailing);
      if (flow === 0 && column < floor) break;
    }
    if (folded) keyAllowed = true;
    return token("scalar", parts.join(""), "", true, start);
  };

  const collection = (type: "[" | "{"): void => {
    saveKey();
    keys.push({ possible: false, required: false, token: taken + (tokens.length - head), index, line, column });
    flow++;
    if (flow > maxLevel) refuse("nested deeper than 10000");
    keyAllowed = true;
    skip();
    add(token(type));
  };
  const endCollection = (type: "]" | "}"): void => {
    dropKey();
    if (flow > 0) {
      flow--;
      keyOfToken.delete(keys.pop()!.token);
    }
    keyAllowed = false;
    skip();
    add(token(type));
  };
  const value = (): void => {
    const key = keys.at(-1)!;
    if (keyStands(key)) {
      insert(key.token, token("?", "", "", false, key.line));
      indentTo(key.column, "block-mapping", key.token, key.line);
      key.possible = false;
      keyOfToken.delete(key.token);
      keyAllowed = false;
    } else {
      if (flow === 0) {
        if (!keyAllowed) refuse("a colon where no mapping can be");
        indentTo(column, "block-mapping", null, line);
      }
      keyAllowed = flow === 0;
    }
    skip();
    add(token(":"));
  };
  const documentMark = (type: "document-start" | "document-end"): void => {
    unindentTo(-1);
    dropKey();
    keyAllowed = false;
    skip();
    skip();
    skip();
    add(token(type));
  };

  const fetch = (): void => {
    need(1);
    toNextToken();
    unindentTo(column);
    need(4);
    const here = code();
    const next = code(1);
    if (here === 0) {
      if (column !== 0) {
        column = 0;
        line++;
      }
      unindentTo(-1);
      dropKey();
      keyAllowed = false;
      return add(token("stream-end"));
    }
    if (column === 0 && here === 0x25) {
      unindentTo(-1);
      dropKey();
      keyAllowed = false;
      return add(directive());
    }
    if (atDocumentMark()) return documentMark(here === 0x2d ? "document-start" : "document-end");
    switch (here) {
      case 0x5b:
        return collection("[");
      case 0x7b:
        return collection("{");
      case 0x5d:
        return endCollection("]");
      case 0x7d:
        return endCollection("}");
      case 0x2c:
        dropKey();
        keyAllowed = true;
        skip();
        return add(token(","));
      case 0x2d:
        if (!isBlankOrEnd(next)) break;
        if (flow === 0) {
          if (!keyAllowed) refuse("a - where no sequence can be");
          indentTo(column, "block-sequence", null, line);
        }
        dropKey();
        keyAllowed = true;
        skip();
        return add(token("-"));
      case 0x3f:
        if (flow === 0 && !isBlankOrEnd(next)) break;
        if (flow === 0) {
          if (!keyAllowed) refuse("a ? where no mapping can be");
          indentTo(column, "block-mapping", null, line);
        }
        dropKey();
        keyAllowed = flow === 0;
        skip();
        return add(token("?"));
      case 0x3a:
        if (flow === 0 && !isBlankOrEnd(next)) break;
        return value();
      case 0x2a:
      case 0x26:
        saveKey();
        keyAllowed = false;
        return add(anchor(here === 0x2a ? "alias" : "anchor"));
      case 0x21:
        saveKey();
        keyAllowed = false;
        return add(tag());
      case 0x7c:
      case 0x3e:
        if (flow > 0) break;
        dropKey();
        keyAllowed = true;
        return add(blockScalar(here === 0x7c));
      case 0x27:
      case 0x22:
        saveKey();
        keyAllowed = false;
        return add(quotedScalar(here === 0x27));
    }
    if (
      (!isBlankOrEnd(here) && !indicators.has(here)) ||
      (here === 0x2d && !isBlank(next)) ||
      (flow === 0 && (here === 0x3f || here === 0x3a) && !isBlankOrEnd(next))
    ) {
      saveKey();
      keyAllowed = false;
      return add(plainScalar());
    }
    const shown = here === tab ? "a tab" : JSON.stringify(String.fromCharCode(here));
    return refuse(`${shown} where no value can begin`);
  };

  const peek = (): Token => {
    while (!ready) {
      if (head !== tokens.length) {
        const place = keyOfToken.get(taken);
        const key = place === undefined ? undefined : keys[place];
        if (key === undefined || !keyStands(key)) {
          ready = true;
          break;
        }
      }
      fetch();
    }
    return tokens[head]!;
  };
  const take = (): Token => {
    const made = peek();
    ready = false;
    taken++;
    head++;
    if (head > 256) {
      tokens = tokens.slice(head);
      head = 0;
    }
    return made;
  };
  return { peek, take };
}
