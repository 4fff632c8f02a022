// `npm run docs`: docs/codes.md from the table that `explain` prints, the manual page, the JSON
// Schema, and the generated parts of the other documents.
// `npm run check:docs`: whether they are what that would give. Needs the pinned Node, which takes types off.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { toJsonSchema } from "@valibot/to-json-schema";
import { codes } from "../lib/codes.ts";
import { exitStatus, helpExit, profiles, usageExit } from "../lib/exit.ts";
import { exitTable, overrideAdvice, reportedBy } from "../lib/explain.ts";
import { explanations } from "../lib/explanations.ts";
import { startSimulator } from "../lib/simulator.ts";
import { statuses } from "../lib/status.ts";
import { faultsDocument } from "../test/faults/document.ts";
import { reportSchema } from "../test/json_schema.ts";
import { manualPage } from "./man.mjs";
import { picture } from "./picture.mjs";
import { fail, parseArguments, root } from "./tools.mjs";

const { values } = parseArguments({ check: null });

const wanted = new Map([
  ["docs/codes.md", codesDocument()],
  ["docs/exit-status.md", withParts("docs/exit-status.md", { profiles: profileTable(), purposes: purposeTable() })],
  ["docs/json.md", withParts("docs/json.md", { example: await jsonExample() })],
  ["docs/report.schema.json", jsonSchema()],
  ["docs/faults.md", faultsDocument()],
  ["docs/kubelet-probe.1", manualPage()],
  ["docs/run.svg", picture()],
]);
const stale = [];
for (const [name, text] of wanted) {
  const path = join(root, name);
  if (text === read(path)) continue;
  if (values.check) stale.push(name);
  else {
    writeFileSync(path, text);
    console.log(name);
  }
}
if (stale.length > 0) fail(`Not up to date: ${stale.join(", ")}; see 'npm run docs'`);

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The document with what is between `<!-- NAME -->` and `<!-- /NAME -->` made anew. */
function withParts(name, parts) {
  let text = readFileSync(join(root, name), "utf8");
  for (const [part, content] of Object.entries(parts)) {
    const [start, end] = [`<!-- ${part} -->\n`, `<!-- /${part} -->`];
    const [from, to] = [text.indexOf(start), text.indexOf(end)];
    if (from < 0 || to < from) fail(`Cannot find the part ${part} in ${name}`);
    text = `${text.slice(0, from + start.length)}\n${content}\n${text.slice(to)}`;
  }
  return text;
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function codesDocument() {
  const all = Object.keys(codes);
  const index = all.map((code) => {
    const { status, brief } = codes[code];
    return [
      `[${code}](#${code.toLowerCase()})`,
      status,
      ...profiles.map((profile) => ownExit(code, { profile })),
      brief,
    ];
  });
  return `# Codes

Every outcome has one code, which is never renamed and never used for anything else. \`kubelet-probe explain CODE\` prints
what is below, without network and without a kubelet. How a code becomes an exit status: [exit-status.md](exit-status.md).

This file is made by \`npm run docs\`.

${table(["code", "status", ...profiles, "in brief"], index)}

The exit statuses are those of the code's own status; where a code can have another one, its section says when.

${all.map(codeSection).join("\n")}`;
}

function ownExit(code, rules) {
  return exitStatus({ status: codes[code].status, code }, rules);
}

function codeSection(code) {
  const { meaning, causes, actions, otherStatus } = explanations[code];
  const { columns, rows } = exitTable(code);
  const other = otherStatus === undefined ? "" : `; ${otherStatus.status} ${inline(otherStatus.when)}`;
  const parts = [`## ${code}`, `${inline(meaning)}`];
  if (causes.length > 0) {
    parts.push(
      "Likely causes, the most likely first:",
      causes.map((cause, at) => `${at + 1}. ${inline(cause)}`).join("\n"),
    );
  }
  if (actions.length > 0) parts.push("What to do:", actions.map(action).join("\n"));
  parts.push(
    `Status: ${codes[code].status}${other}.`,
    table(
      ["--profile", ...columns],
      rows.map(({ options, exits }) => [`\`${options}\``, ...exits]),
    ),
    `${inline(reportedBy(code))} ${inline(overrideAdvice(code))}`.trim(),
  );
  return `${parts.join("\n\n")}\n`;
}

function action([what, ...commands]) {
  const block = commands.map((command) => `  ${command}\n`).join("");
  return `- ${inline(what)}${block === "" ? "" : `\n\n  \`\`\`sh\n${block}  \`\`\`\n`}`;
}

/** Text of the table as Markdown. */
function inline(text) {
  return text.replace(/[<>*_`|\\]/g, "\\$&");
}

function profileTable() {
  // A code whose exit status is that of its status in every profile.
  const code = "ServerError";
  const rows = profiles.map((profile) => [
    `\`${profile}\``,
    ...statuses.map((status) => exitStatus({ status, code }, { profile })),
    usageExit(profile),
    helpExit(profile, false),
    helpExit(profile, true),
  ]);
  const head = ["profile", ...statuses, "wrong usage", "help, version", "the same, profile asked for"];
  return `${table(head, rows)}\n`;
}

function purposeTable() {
  const purposes = ["startup", "readiness", "liveness"];
  const rows = Object.keys(codes)
    .filter((code) => explanations[code].checks.includes("ready"))
    .map((code) => [
      `\`${code}\``,
      ...purposes.map((purpose) => (ownExit(code, { profile: "kube", purpose }) === 0 ? "0, passes" : "1, fails")),
    ]);
  return `${table(["code of `ready`", ...purposes.map((purpose) => `\`--for ${purpose}\``)], rows)}\n`;
}

/** The schema that the tests hold the output to, for readers: new fields may come, so none is forbidden. */
function jsonSchema() {
  // What JSON Schema cannot say, such as that a word is one of the codes, the tests alone hold.
  const schema = toJsonSchema(reportSchema, { errorMode: "ignore" });
  const open = (value) => {
    if (Array.isArray(value)) return value.map(open);
    if (typeof value !== "object" || value === null) return value;
    const { additionalProperties, ...rest } = value;
    return Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, open(inner)]));
  };
  const { $schema, ...rest } = open(schema);
  return `${JSON.stringify({ $schema, title: "kubelet-probe/v1", ...rest }, null, 2)}\n`;
}

/** A report of the program itself, with the path and the times of this machine replaced. */
async function jsonExample() {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-docs-"));
  const socket = join(folder, "pods-api.sock");
  const simulator = await startSimulator({ socket, scenario: "failed-pod", node: "cp-1", staticPods: 2 });
  try {
    const words = ["static-pods", "--socket", socket, "--expect", simulator.expect.join(","), "--output", "json"];
    const environment = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("KUBELET_PROBE_")),
    );
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(root, "main.ts"), ...words, "--node-name", "cp-1"],
      { env: { ...environment, NODE_NO_WARNINGS: "1" } },
    ).catch((error) => error);
    const text = stdout
      .replaceAll(socket, "/var/lib/kubelet/pods-api/pods-api.sock")
      .replace(/"startedAt": "[^"]*"/, '"startedAt": "2026-01-01T00:00:00.000Z"')
      .replace(/"durationMs": \d+/, '"durationMs": 31');
    return `\`\`\`json\n${text.trim()}\n\`\`\`\n`;
  } finally {
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
