// Text from a node is data: names, reasons and messages may hold anything, and none of it may steer a terminal, end a
// line, or start performance data.

// Control characters, line and paragraph separators, the marks that change the direction of text (format characters),
// what is not drawn at all and so could hide, and lone surrogates.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * @param limit The longest result in characters; what is over it is cut, and `...` says so.
 * @returns One line that is safe on a terminal: what is not is a space or `?`, and runs of spaces are one.
 */
export function plain(text: string, limit = 200): string {
  // Cut before it is cleaned: a message may have a megabyte. Four times the limit leaves room for what is folded.
  const line = text
    .slice(0, limit * 4)
    .replace(/[\s\0-\x1f]+/g, " ")
    .replace(unsafe, "?")
    .trim();
  return line.length > limit || text.length > limit * 4
    ? `${line.slice(0, limit - 3).replace(/[\ud800-\udbff]$/, "")}...`
    : line;
}

/** The same in printable ASCII, with `?` for what is not. */
export function ascii(text: string, limit = 200): string {
  return plain(text, limit).replace(/[^ -~]+/g, "?");
}

/** JSON in which no character is raw that `plain` would take out. */
export function safeJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(unsafe, (found) =>
    found === "\n" || found === " "
      ? found
      : [...Array(found.length).keys()]
          .map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`)
          .join(""),
  );
}
