// The binary: the only place that exits, handles signals and writes to the standard output.

import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { failureLine, findProfile, type Invocation, type Plan, plan } from "./lib/cli.ts";
import { type ExitRules, exitStatus, usageExit } from "./lib/exit.ts";
import type { Fault } from "./lib/fault.ts";
import { type FormatOptions, formatText, type Output } from "./lib/format_text.ts";
import { plain } from "./lib/plain.ts";
import { type Report, run } from "./lib/probe.ts";
import { checks } from "./probes/list.ts";

// Baked in by the build.
declare const __KP_SIMULATOR__: string;

// A deadline ends the calls; this much later the process ends whatever holds it up.
const graceMs = 50;
// The device number of /dev/null on Linux: major 1, minor 3.
const nullDevice = 0x103;

const invocation: Invocation = {
  name: process.argv0,
  words: process.argv.slice(2),
  environment: process.env,
};
const { profile } = findProfile(invocation);
let rules: ExitRules = { profile };
let ending = false;
// By when a reader has to have taken the output, in ms as performance.now() counts.
let outputDeadlineMs = 5000;

/** Writes what there is to say and ends with the status, written or not. */
function end(text: string, status: number): void {
  if (ending) return;
  ending = true;
  const exit = () => process.exit(status);
  const bytes = Buffer.from(text);
  let written = 0;
  const target = openOutput();
  // A reader that does not read must not hold up the verdict. A thread on a loaded node needs its time, though: 12 probes
  // at once with a deadline of 100 ms lost one output in 30 to a patience of 50 ms.
  const patienceMs = target === undefined ? graceMs * 10 : graceMs;
  setTimeout(exit, Math.max(patienceMs, outputDeadlineMs - performance.now()));
  const writeRest = (): void => {
    try {
      while (written < bytes.length) written += writeSync(target ?? 1, bytes, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return void setTimeout(writeRest, 2);
      // A closed or full output changes nothing about the verdict.
    }
    exit();
  };
  const writeAside = (): void => {
    write(1, bytes, written, bytes.length - written, null, (error, count) => {
      if (error?.code === "EAGAIN") return void setTimeout(writeAside, 2);
      written += error === null ? count : bytes.length;
      if (written < bytes.length) writeAside();
      else exit();
    });
  };
  if (target === undefined) writeAside();
  else writeRest();
}

/**
 * A file descriptor that can be written to at once, without a wait that nobody could end, or undefined where there is
 * none: then a thread has to do the waiting, which costs 2 ms of start-up.
 */
function openOutput(): number | undefined {
  try {
    const stats = fstatSync(1);
    // Opened anew, a pipe does not wait for its reader. A file needs no waiting, and has its position to keep.
    if (stats.isFIFO()) return openSync("/proc/self/fd/1", constants.O_WRONLY | constants.O_NONBLOCK);
    return stats.isFile() || stats.rdev === nullDevice ? 1 : undefined;
  } catch {
    return undefined;
  }
}

/** Ends because of something that no report tells of. */
function fail(code: "BadUsage" | "InternalError" | "Timeout", message: string): void {
  const status = code === "Timeout" ? "CRITICAL" : "UNKNOWN";
  end(
    failureLine(profile, code, message),
    code === "BadUsage" ? usageExit(profile) : exitStatus({ status, code }, rules),
  );
}

// The runtime's own answer to these would be status 1: WARNING, and a stack trace.
process.on("uncaughtException", (error) => fail("InternalError", describe(error)));
process.on("unhandledRejection", (error) => fail("InternalError", describe(error)));
// So would be being ended by a signal; what SIGUSR1 would do on Node is open a port for a debugger.
const endings = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGXCPU", "SIGUSR1", "SIGUSR2"] as const;
for (const signal of endings) {
  process.on(signal, () => fail("InternalError", `ended by ${signal} before there was a verdict`));
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

async function runPlan(given: Extract<Plan, { kind: "run" }>): Promise<void> {
  let planned = given;
  const startMs = performance.now();
  rules = planned.rules;
  const { timeoutMs } = planned.run;
  outputDeadlineMs = performance.now() + timeoutMs + graceMs * 2;
  const guard = setTimeout(() => fail("Timeout", `no verdict within ${timeoutMs} ms`), timeoutMs + graceMs);
  if (planned.consult) {
    const { consultKubelet } = await import("./lib/consult.ts");
    planned = await consultKubelet(planned);
  }
  const leftMs = planned.consult ? Math.max(1, timeoutMs - (performance.now() - startMs)) : timeoutMs;
  const report = await run({ ...planned.run, timeoutMs: leftMs });
  clearTimeout(guard);
  const status = exitStatus(report, rules);
  const silent = planned.quiet && report.status === "OK";
  const options: FormatOptions = { ...planned, profile, exitStatus: status };
  const text = formatText(report, options);
  if (planned.output === "text" && planned.outputFile === undefined) return end(silent ? "" : text, status);
  // The verdict is there: nothing that becomes of its other forms changes it, nor holds it up.
  setTimeout(() => end(silent ? "" : text, status), Math.max(graceMs, outputDeadlineMs - performance.now()));
  try {
    const output = await formatAs(report, planned.output, options);
    if (planned.outputFile === undefined) return end(silent ? "" : output, status);
    const { writeOutputFile } = await import("./lib/output_file.ts");
    await writeOutputFile(planned.outputFile, output);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    await complain(`Cannot write ${planned.outputFile ?? "the output"}: ${why}`);
  }
  end(silent ? "" : text, status);
}

async function formatAs(report: Report, output: Output, options: FormatOptions): Promise<string> {
  if (output === "text") return formatText(report, options);
  const { format } = await import("./lib/format.ts");
  return format(report, output, options);
}

/** Says something beside the output, to whoever reads it at once. */
function complain(message: string): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, graceMs);
    write(2, `${plain(message, 400)}\n`, () => resolve());
  });
}

/** Of the compiled binary, whose own script is a file inside of it. */
function binaryPath(): string | undefined {
  return process.argv[1]?.startsWith("/$bunfs/") ? process.execPath : undefined;
}

/** In the binary the simulator is a file beside the bundle; scripts/build.mjs says why. */
function loadSimulator(): Promise<typeof import("./lib/simulate.ts")> {
  return typeof __KP_SIMULATOR__ === "string" ? import(__KP_SIMULATOR__) : import("./lib/simulate.ts");
}

async function act(planned: Plan): Promise<void> {
  switch (planned.kind) {
    case "run":
      return runPlan(planned);
    case "help": {
      if (planned.about === "simulate") {
        const { simulateHelp } = await loadSimulator();
        return end(simulateHelp(), planned.exitStatus);
      }
      if (planned.about === "selftest") {
        const { selftestHelp } = await import("./lib/selftest.ts");
        return end(selftestHelp(), planned.exitStatus);
      }
      const { helpText } = await import("./lib/help.ts");
      return end(helpText(checks, planned.about), planned.exitStatus);
    }
    case "version": {
      const { version, commit, date } = await import("./lib/version.ts");
      return end(`kubelet-probe ${version} (${[commit, date].filter(Boolean).join(", ")})\n`, planned.exitStatus);
    }
    case "explain": {
      const { explain } = await import("./lib/explain.ts");
      return end(explain(planned.words), 0);
    }
    case "simulate": {
      const { simulate } = await loadSimulator();
      return simulate(planned.words, process.env, end);
    }
    case "selftest": {
      const { selftest } = await import("./lib/selftest.ts");
      const { text, status } = await selftest(checks, await loadSimulator(), planned.words, process.env);
      return end(text, status);
    }
    case "completion": {
      const { completion } = await import("./lib/completion.ts");
      const { simulateOptionNotes } = await loadSimulator();
      return end(completion(planned.words, checks, simulateOptionNotes), 0);
    }
    case "install": {
      const { install } = await import("./lib/install.ts");
      return end(await install(planned.words, binaryPath()), 0);
    }
  }
}

try {
  await act(plan(checks, invocation));
} catch (error) {
  // By its name: the simulator's file has its own copy of the class.
  if (error instanceof Error && error.name === "Fault" && (error as Fault).code === "BadUsage") {
    fail("BadUsage", error.message);
  } else fail("InternalError", describe(error));
}
