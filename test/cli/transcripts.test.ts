// Plays the transcripts of this folder, test/cli/*.txt, against the built binary. A transcript is blocks:
//
//   $ kubelet-probe ready --socket "$SOCKET"       a shell command
//   READY OK - Ready: the kubelet …                the lines of its standard output
//   ! a line of its standard error
//   ? 0                                            its exit status
//
// Between blocks stand comments (#), and directives for what follows:
//
//   @simulate NAME [OPTION=VALUE …]    serves a scenario at $SOCKET in place of the one before, which pods in $EXPECT
//   @env NAME=VALUE                    an environment variable for one command, the next
//   @setup COMMAND                     a shell command that only prepares something
//   @needs root | otherUser | …        skips the next command where that is missing
//
// Commands run in a folder of their own, with `kubelet-probe` and its links found in PATH and nothing else in the
// environment but a deadline that nothing is to meet by accident. In outputs [path], [time], [age], [number], [rest] stand for what changes, and a line [lines] for any
// number of lines.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Simulator } from "../../lib/simulator.ts";
import { baseEnvironment, binaryForAll, execute, folder, needs, root, simulate } from "../support.ts";

type Step =
  | { readonly kind: "directive"; readonly line: number; readonly name: string; readonly words: string }
  | {
      readonly kind: "command";
      readonly line: number;
      readonly command: string;
      readonly stdout: string;
      readonly stderr: string;
      readonly status: number;
    };

const links = ["check_kubelet_socket", "check_kubelet_ready", "check_kubelet_static_pods", "check_kubelet_all"];

const here = join(root, "test", "cli");
const files = readdirSync(here).filter((name) => name.endsWith(".txt"));

for (const file of files) {
  const steps = parse(readFileSync(join(here, file), "utf8"), file);
  test(file, async (t) => {
    const home = folder(t);
    // Commands of other users run in it too.
    chmodSync(home, 0o755);
    const bin = join(home, "bin");
    const work = join(home, "work");
    mkdirSync(bin);
    mkdirSync(work);
    const program = binaryForAll(t);
    for (const name of ["kubelet-probe", ...links]) symlinkSync(program, join(bin, name));
    const socket = join(home, "pods-api", "pods-api.sock");
    const base = { PATH: `${bin}:${baseEnvironment.PATH}`, SOCKET: socket, HERE: work, KUBELET_PROBE_TIMEOUT: "20s" };

    let simulator: Simulator | undefined;
    let once: Record<string, string> = {};
    let skip: string | false = false;
    const run = (command: string) =>
      execute("sh", ["-c", command], {
        cwd: work,
        env: { ...base, EXPECT: simulator?.expect.join(",") ?? "", ...once },
      });

    for (const step of steps) {
      const at = `${file}:${step.line}`;
      if (step.kind === "command") {
        await t.test(`${at} ${step.command}`, { skip }, async () => {
          const { stdout, stderr, status, signal } = await run(step.command);
          assert.equal(signal, null);
          match(stdout, step.stdout, `${at}: standard output`);
          match(stderr, step.stderr, `${at}: standard error`);
          assert.equal(status, step.status, `${at}: exit status; ${stdout}${stderr}`);
        });
        once = {};
        skip = false;
        continue;
      }
      switch (step.name) {
        case "simulate": {
          await simulator?.close();
          const [scenario, ...options] = step.words.split(" ");
          const given = options.map((option) => option.split("="));
          simulator = await simulate(t, scenario!, {
            ...Object.fromEntries(given.map(([key, value]) => [key, Number(value)])),
            socket,
          });
          break;
        }
        case "env": {
          const [, name, value] = /^(\w+)=(.*)$/.exec(step.words)!;
          once[name!] = value!;
          break;
        }
        case "setup": {
          const { status, stderr } = await run(step.words);
          assert.equal(status, 0, `${at}: ${stderr}`);
          break;
        }
        case "needs":
          skip = needs[step.words as keyof typeof needs];
          break;
        default:
          assert.fail(`${at}: there is no directive @${step.name}`);
      }
    }
  });
}

function parse(text: string, file: string): Step[] {
  const steps: Step[] = [];
  let open: { line: number; command: string; stdout: string; stderr: string } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (open !== undefined) {
      const status = /^\? (\d+)$/.exec(line);
      if (status !== null) {
        steps.push({ kind: "command", ...open, status: Number(status[1]) });
        open = undefined;
      } else if (line.startsWith("! ")) open.stderr += `${line.slice(2)}\n`;
      else open.stdout += `${line}\n`;
      continue;
    }
    if (line === "" || line.startsWith("#")) continue;
    const directive = /^@(\w+) (.*)$/.exec(line);
    if (line.startsWith("$ ")) open = { line: index + 1, command: line.slice(2), stdout: "", stderr: "" };
    else if (directive !== null) {
      steps.push({ kind: "directive", line: index + 1, name: directive[1]!, words: directive[2]! });
    } else throw new Error(`${file}:${index + 1} is no command, directive or comment: ${line}`);
  }
  if (open !== undefined) throw new Error(`${file}:${open.line} has no line with its exit status`);
  return steps;
}

const placeholders: Readonly<Record<string, string>> = {
  "[path]": "/[^\\s,;:]*",
  "[time]": "\\d+(\\.\\d{1,6})?",
  "[age]": "\\d+ (ms|s|min)( \\d+ s)?",
  "[number]": "\\d+",
  "[rest]": "[^\\n]*",
};

function match(actual: string, wanted: string, what: string): void {
  const pattern = wanted
    .split(/(^\[lines\]\n|\[[a-z]+\])/m)
    .map((part) =>
      part === "[lines]\n" ? "(?:[^\\n]*\\n)*" : (placeholders[part] ?? part.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")),
    )
    .join("");
  if (new RegExp(`^${pattern}$`).test(actual)) return;
  assert.equal(actual, wanted, what);
}
