// The command `simulate`: serves a scenario until it is told to stop. Loaded only when asked for.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { parseArguments } from "./arguments.ts";
import { Fault } from "./fault.ts";
import { optionLines } from "./help.ts";
import {
  absolutePath,
  anyText,
  flag,
  notes,
  type OptionNotes,
  oneOf,
  option,
  optionWithDefault,
  wholeNumber,
} from "./option.ts";
import { scenarios, startSimulator } from "./simulator.ts";

export { scenarios, startSimulator } from "./simulator.ts";

const options = {
  socket: option(...absolutePath, {
    value: "PATH",
    noVariable: true,
    description: "where to serve; a socket there that nobody serves any more is replaced",
  }),
  scenario: optionWithDefault(...oneOf(...scenarios.map(({ name }) => name)), {
    value: "NAME",
    fallback: "healthy",
    description: "the state of the node, one of the list below",
  }),
  nodeName: optionWithDefault(anyText, "a name", {
    value: "NAME",
    fallback: "node-1",
    description: "the node's name, which is the end of its static pods' names",
  }),
  staticPods: optionWithDefault(...wholeNumber(0, 10_000), {
    value: "N",
    fallback: "4",
    description: "how many static pods the node has",
  }),
  pods: optionWithDefault(...wholeNumber(0, 10_000), {
    value: "N",
    fallback: "6",
    description: "how many other pods the node has",
  }),
  podBytes: option(...wholeNumber(0, 1 << 20), { value: "BYTES", description: "pads every pod to about this size" }),
  manifests: option(...absolutePath, {
    value: "DIR",
    noVariable: true,
    description: "writes the manifests of the static pods into this folder first; what is there stays",
  }),
  list: flag("prints the scenarios, each with the code a probe meets"),
};

/** What is said of the options, for completion: the binary has this file apart, and the schemas tell others nothing. */
export const simulateOptionNotes: Readonly<Record<string, OptionNotes>> = Object.fromEntries(
  Object.entries(options).map(([key, schema]) => [key, notes(schema)]),
);

/** What `simulate --help` prints. */
export function simulateHelp(): string {
  return `Usage: kubelet-probe simulate --socket PATH [OPTION...]

Serves the Pods API of a node on a unix socket until it is stopped, with the kubelet's texts and rate limit.

Options:
${optionLines(options)}

Scenarios:
${scenarioLines()}
`;
}

function scenarioLines(): string {
  const [width, codeWidth] = [
    Math.max(...scenarios.map(({ name }) => name.length)),
    Math.max(...scenarios.map(({ code }) => code.length)),
  ];
  return scenarios
    .map(({ name, code, check, summary }) => `  ${name.padEnd(width)}  ${code.padEnd(codeWidth)}  ${check}: ${summary}`)
    .join("\n");
}

/**
 * @param end Writes a text and ends the process with a status.
 * @throws Fault BadUsage
 */
export async function simulate(
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  end: (text: string, status: number) => void,
): Promise<void> {
  const { values } = parseArguments(options, words, environment);
  if (values.list) return end(`${scenarioLines()}\n`, 0);
  if (values.socket === undefined) throw new Fault("BadUsage", "Option --socket is missing: simulate --socket PATH");
  if (await isServed(values.socket)) {
    const accepted = "accepted is a free path or a socket whose server is gone";
    throw new Fault("BadUsage", `Cannot serve on ${values.socket}: somebody serves there, ${accepted}`);
  }
  const simulator = await startSimulator({
    socket: values.socket,
    scenario: values.scenario,
    node: values.nodeName,
    staticPods: values.staticPods,
    pods: values.pods,
    ...(values.podBytes === undefined ? {} : { podBytes: values.podBytes }),
  });
  try {
    if (values.manifests !== undefined) writeManifests(values.manifests, simulator.manifests);
  } catch (error) {
    await simulator.close();
    throw error;
  }
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.removeAllListeners(signal);
    process.once(signal, () => void simulator.close().then(() => end("", 0)));
  }
  process.stdout.write(
    `serving unix://${simulator.socket} as ${values.scenario}; expect ${simulator.expect.join(",")}\n`,
  );
}

/** A kubelet's socket may be named by mistake, and nothing would tell that kubelet that it has lost it. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    // A listen queue that is full is somebody's too.
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "EAGAIN"));
  });
}

/** What is there may be the manifests of the node itself. @throws Fault BadUsage */
function writeManifests(folder: string, manifests: Readonly<Record<string, string>>): void {
  try {
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(manifests)) {
      const path = join(folder, file);
      if (!existsSync(path)) writeFileSync(path, text, { flag: "wx" });
      else if (readFileSync(path, "utf8") !== text) throw new Error(`another ${file} is there, and stays`);
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Fault("BadUsage", `Cannot write the manifests into ${folder}: ${why}; accepted is a folder for them`);
  }
}
