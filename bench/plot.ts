// A line plot as SVG that can be read on light and on dark: both axes logarithmic, with the spread of each point.

import type { Spread } from "./trials.ts";

/** One line. */
export interface Series {
  readonly name: string;
  /** One of two colours. */
  readonly colour: 1 | 2;
  readonly dashed: boolean;
  readonly points: readonly { readonly x: number; readonly y: Spread }[];
}

/** One pair of axes. */
export interface Panel {
  readonly title: string;
  readonly yLabel: string;
  readonly yTicks: readonly number[];
  readonly series: readonly Series[];
}

const width = 400;
const height = 300;
const margin = { top: 36, right: 24, bottom: 48, left: 56 };
const legendHeight = 28;

/** Panels side by side over the same x axis, and one legend. */
export function plot(title: string, xLabel: string, xTicks: readonly number[], panels: readonly Panel[]): string {
  const total = width * panels.length;
  const legend = panels[0]!.series.map(({ name, colour, dashed }, at) => {
    const x = margin.left + (at * (total - margin.left)) / panels[0]!.series.length;
    const y = height + legendHeight / 2;
    return `<line class="line c${colour}${dashed ? " dashed" : ""}" x1="${round(x)}" y1="${y}" x2="${round(x + 28)}" y2="${y}"/><text x="${round(x + 34)}" y="${y + 4}">${escapeXml(name)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${total} ${height + legendHeight}" role="img" aria-labelledby="title">
<title id="title">${escapeXml(title)}</title>
<style>
text { font: 12px sans-serif; fill: #1f2328; }
.title { font-weight: bold; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.line, .spread { fill: none; stroke-width: 2; }
.spread { stroke-width: 1; }
.dashed { stroke-dasharray: 5 4; }
.c1 { stroke: #0969da; }
.c2 { stroke: #bc4c00; }
.dot1 { fill: #0969da; }
.dot2 { fill: #bc4c00; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .grid { stroke: #3d444d; }
  .c1 { stroke: #58a6ff; }
  .c2 { stroke: #ffa657; }
  .dot1 { fill: #58a6ff; }
  .dot2 { fill: #ffa657; }
}
</style>
${panels.map((panel, at) => `<g transform="translate(${at * width} 0)">\n${draw(panel, xLabel, xTicks)}\n</g>`).join("\n")}
${legend.join("\n")}
</svg>
`;
}

function draw({ title, yLabel, yTicks, series }: Panel, xLabel: string, xTicks: readonly number[]): string {
  const right = width - margin.right;
  const bottom = height - margin.bottom;
  const x = scale(xTicks, margin.left, right);
  const y = scale(yTicks, bottom, margin.top);
  const middle = round((margin.left + right) / 2);
  const lines = [
    `<text class="title" x="${middle}" y="20" text-anchor="middle">${escapeXml(title)}</text>`,
    ...yTicks.flatMap((tick) => [
      `<line class="grid" x1="${margin.left}" y1="${y(tick)}" x2="${right}" y2="${y(tick)}"/>`,
      `<text x="${margin.left - 6}" y="${round(y(tick) + 4)}" text-anchor="end">${number(tick)}</text>`,
    ]),
    ...xTicks.flatMap((tick) => [
      `<line class="grid" x1="${x(tick)}" y1="${margin.top}" x2="${x(tick)}" y2="${bottom}"/>`,
      `<text x="${x(tick)}" y="${bottom + 16}" text-anchor="middle">${number(tick)}</text>`,
    ]),
    `<text x="${middle}" y="${height - 12}" text-anchor="middle">${escapeXml(xLabel)}</text>`,
    `<text transform="translate(14 ${round((margin.top + bottom) / 2)}) rotate(-90)" text-anchor="middle">${escapeXml(yLabel)}</text>`,
  ];
  for (const { colour, dashed, points } of series) {
    const path = points.map((point) => `${x(point.x)},${y(point.y.median)}`).join(" ");
    lines.push(`<polyline class="line c${colour}${dashed ? " dashed" : ""}" points="${path}"/>`);
    for (const point of points) {
      const at = x(point.x);
      lines.push(
        `<line class="spread c${colour}" x1="${at}" y1="${y(point.y.low)}" x2="${at}" y2="${y(point.y.high)}"/>`,
      );
      lines.push(`<circle class="dot${colour}" cx="${at}" cy="${y(point.y.median)}" r="3"/>`);
    }
  }
  return lines.join("\n");
}

/** From a value to its place, between the first tick and the last. */
function scale(ticks: readonly number[], from: number, to: number): (value: number) => number {
  const [least, most] = [Math.log(ticks[0]!), Math.log(ticks.at(-1)!)];
  return (value) => round(from + ((Math.log(value) - least) / (most - least)) * (to - from));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
