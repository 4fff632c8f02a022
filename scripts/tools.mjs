// Where the project's pinned tools are, and how its scripts start them. Plain Node 20, no dependency: scripts/setup.mjs
// uses this before anything is installed.
import { spawnSync } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's root folder. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const binFolder = join(root, "node_modules", ".bin");

/** The path of a tool that npm installed: never one of the same name from elsewhere on the machine. */
export function tool(name) {
  return join(binFolder, name);
}

/** The environment for tools that start others by name: the pinned ones first. */
export function environment(extra = {}) {
  return { ...process.env, PATH: `${binFolder}${delimiter}${process.env.PATH ?? ""}`, ...extra };
}

/** The environment for npm: while it replaces node_modules it must not run the Node in there. */
export function environmentOutside() {
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== binFolder);
  return { ...process.env, PATH: path.join(delimiter) };
}

/** Ends the script with one line on stderr. */
export function fail(message, status = 1) {
  process.stderr.write(`${message}\n`);
  process.exit(status);
}

/** Runs a command to its end and gives its output; `failed` is a clause that says why, or undefined. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
  });
  let failed;
  if (result.error) failed = result.error.code === "ENOENT" ? `${command} not found` : result.error.message;
  else if (result.signal) failed = `${command} was ended by ${result.signal}`;
  else if (result.status !== 0) failed = `${command} ended with status ${result.status}`;
  return { status: result.status, stdout: result.stdout ?? "", stderr: result.stderr ?? "", failed };
}

/** The values of `--name VALUE` and `--flag` among the arguments; anything else is refused with a line that lists what is accepted. */
export function parseArguments(accepted, { rest = false } = {}) {
  const values = {};
  const others = [];
  const args = process.argv.slice(2);
  for (let i = 0; i < args.length; i++) {
    const [name, inline] = args[i].startsWith("--") ? split(args[i]) : [undefined, undefined];
    if (name === undefined && rest) {
      others.push(args[i]);
      continue;
    }
    if (name === undefined || !(name in accepted)) {
      const known = Object.entries(accepted).map(([key, value]) => (value ? `--${key} ${value}` : `--${key}`));
      fail(`Cannot use ${args[i]}: accepted are ${known.join(", ") || "no arguments"}`, 2);
    }
    if (accepted[name] === null) values[name] = true;
    else {
      const value = inline ?? args[++i];
      if (value === undefined) fail(`Cannot use --${name}: it takes ${accepted[name]}`, 2);
      values[name] = value;
    }
  }
  return { values, rest: others };
}

function split(argument) {
  const equals = argument.indexOf("=");
  return equals < 0 ? [argument.slice(2), undefined] : [argument.slice(2, equals), argument.slice(equals + 1)];
}

/** Rows as lines: numbers right-aligned, the rest left-aligned, two spaces apart. */
export function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => String(row[i] ?? "").length)));
  const pad = (cell, i) => {
    const text = String(cell);
    return typeof cell === "number" ? text.padStart(widths[i]) : text.padEnd(widths[i]);
  };
  return rows.map((row) => row.map(pad).join("  ").trimEnd()).join("\n");
}
