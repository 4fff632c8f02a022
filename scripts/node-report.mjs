// Reads what node-reporter.mjs writes, for the scripts that start `node --test`.
import { relative, resolve } from "node:path";
import { root } from "./tools.mjs";

/**
 * The tests of a report: leaves, and parents that failed or were skipped for a reason of their own. Each has its file, its
 * path of names, its state (passed, failed, skipped; of one that is to do, failed is skipped), reason and message, and
 * whether it is to do.
 */
export function readNodeReport(text) {
  const found = [];
  // Events come children first: each waits at its depth until its parent gives it a name to stand under.
  const waiting = new Map();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const event = JSON.parse(line);
    const file = relative(root, resolve(root, event.file ?? event.name));
    const levels = waiting.get(file) ?? [];
    waiting.set(file, levels);
    const children = levels[event.nesting + 1] ?? [];
    levels[event.nesting + 1] = [];
    for (const child of children) child.path.unshift(event.name);
    const own = { file, path: [event.name], message: event.message, ...stateOf(event) };
    const counts =
      children.length === 0
        ? !event.suite || own.state !== "passed" || own.todo
        : own.state === "failed" && !event.onlySubtestsFailed;
    const here = [...children, ...(counts ? [own] : [])];
    if (event.nesting === 0) found.push(...here);
    else levels[event.nesting] = [...(levels[event.nesting] ?? []), ...here];
  }
  return found;
}

function stateOf({ todo, skip, passed }) {
  const isGiven = (mark) => mark !== undefined && mark !== false;
  if (isGiven(todo)) {
    const reason = `todo: ${todo === true ? "" : todo}`;
    return { state: passed ? "passed" : "skipped", reason, todo: true };
  }
  if (isGiven(skip)) return { state: "skipped", reason: typeof skip === "string" ? skip : undefined, todo: false };
  return { state: passed ? "passed" : "failed", reason: undefined, todo: false };
}
