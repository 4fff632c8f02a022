// File name patterns as a shell has them, for names that are given on a command line.

/**
 * Whether a pattern stands for the whole of a file's name: `*` for any characters, `?` for one, `[a-z]` for one of some,
 * `[!a-z]` for one of the others, `\` before a character for that character. A `[` that nothing closes stands for itself.
 * Takes at most the product of both lengths, whatever the pattern is.
 */
export function matchesGlob(name: string, pattern: string): boolean {
  const text = [...name];
  const parts = parse(pattern);
  let [at, part] = [0, 0];
  // Where the last star stands, and what it has taken so far.
  let star = -1;
  let taken = 0;
  while (at < text.length) {
    const wanted = parts[part];
    if (wanted === "*") {
      star = part++;
      taken = at;
    } else if (wanted?.(text[at]!)) {
      at++;
      part++;
    } else if (star >= 0) {
      part = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  return parts.slice(part).every((rest) => rest === "*");
}

type Part = "*" | ((character: string) => boolean);

function parse(pattern: string): Part[] {
  const parts: Part[] = [];
  const rest = [...pattern];
  for (let i = 0; i < rest.length; i++) {
    const found = rest[i]!;
    if (found === "*") {
      parts.push("*");
    } else if (found === "?") {
      parts.push(() => true);
    } else if (found === "[") {
      // A bracket right behind the first one, or behind its mark, is one of the characters.
      const start = rest[i + 1] === "!" || rest[i + 1] === "^" ? i + 2 : i + 1;
      const end = rest.indexOf("]", start + 1);
      if (end < 0) {
        parts.push((character) => character === "[");
        continue;
      }
      const isOneOf = ranges(rest.slice(start, end));
      const inverted = start === i + 2;
      parts.push((character) => isOneOf(character) !== inverted);
      i = end;
    } else {
      const literal = found === "\\" && i + 1 < rest.length ? rest[++i]! : found;
      parts.push((character) => character === literal);
    }
  }
  return parts;
}

function ranges(characters: readonly string[]): (character: string) => boolean {
  const pairs: (readonly [first: string, last: string])[] = [];
  for (let i = 0; i < characters.length; i++) {
    if (characters[i + 1] === "-" && i + 2 < characters.length) {
      pairs.push([characters[i]!, characters[i + 2]!]);
      i += 2;
    } else {
      pairs.push([characters[i]!, characters[i]!]);
    }
  }
  return (character) => pairs.some(([first, last]) => character >= first && character <= last);
}
