// The picture of a run in README: the example of docs/quick-start.md, which a test runs, as a terminal shows it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./tools.mjs";

const columns = 100;
const [advance, lineHeight, margin] = [8, 20, 16];

/** An SVG image. Performance data is left out: its numbers are another each time. */
export function picture() {
  const page = readFileSync(join(root, "docs/quick-start.md"), "utf8");
  const example = /```console\n([\s\S]*?)```/.exec(page)[1];
  const lines = example
    .trim()
    .split("\n")
    .flatMap((line) => wrap(line.replace(/ \| .*/, " | …")));
  const [width, height] = [columns * advance + 2 * margin, lines.length * lineHeight + 2 * margin];
  const texts = lines.map(({ text, kind }, row) => {
    const y = margin + row * lineHeight + 14;
    return `<text xml:space="preserve" class="${kind}" x="${margin}" y="${y}">${escaped(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">
<title id="title">Two runs of kubelet-probe</title>
<style>
rect { fill: #0d1117; }
text { font: 13px ui-monospace, monospace; white-space: pre; fill: #f0f6fc; }
.command { fill: #7ee787; }
.CRITICAL { fill: #ff7b72; }
</style>
<rect width="${width}" height="${height}" rx="8"/>
${texts.join("\n")}
</svg>
`;
}

/** A line in rows of the terminal's width, broken at spaces; all have the kind of the line. */
function wrap(line) {
  const kind = line.startsWith("$ ") ? "command" : line.includes(" CRITICAL - ") ? "CRITICAL" : "output";
  const rows = [""];
  for (const word of line.split(" ")) {
    const row = rows.at(-1);
    if (row === "") rows[rows.length - 1] = word;
    else if (row.length + 1 + word.length <= columns) rows[rows.length - 1] = `${row} ${word}`;
    else rows.push(`  ${word}`);
  }
  return rows.map((text) => ({ text, kind }));
}

function escaped(text) {
  return text.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
}
