// The binary: the only place that exits, handles signals and writes to the standard output.

import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { failureLine, findProfile, type Invocation, type Plan, plan } from "./lib/cli.ts";
import { type ExitRules, exitStatus, usageExit } from "./lib/exit.ts";
import { Fault } from "./lib/fault.ts";
import { format } from "./lib/format.ts";
import { run } from "./lib/probe.ts";
import { checks } from "./probes/list.ts";

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
  // A reader that does not read must not hold up the verdict.
  setTimeout(exit, Math.max(graceMs, outputDeadlineMs - performance.now()));
  const target = openOutput();
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
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  process.on(signal, () => fail("InternalError", `ended by ${signal} before there was a verdict`));
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

async function runPlan(planned: Extract<Plan, { kind: "run" }>): Promise<void> {
  rules = planned.rules;
  const { timeoutMs } = planned.run;
  outputDeadlineMs = performance.now() + timeoutMs + graceMs * 2;
  const guard = setTimeout(() => fail("Timeout", `no verdict within ${timeoutMs} ms`), timeoutMs + graceMs);
  const report = await run(planned.run);
  clearTimeout(guard);
  const status = exitStatus(report, rules);
  const silent = planned.quiet && report.status === "OK";
  end(silent ? "" : format(report, planned.output, { ...planned, profile, exitStatus: status }), status);
}

async function act(planned: Plan): Promise<void> {
  switch (planned.kind) {
    case "run":
      return runPlan(planned);
    case "help": {
      if (planned.about === "simulate") {
        const { simulateHelp } = await import("./lib/simulate.ts");
        return end(simulateHelp(), planned.exitStatus);
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
      const { simulate } = await import("./lib/simulate.ts");
      return simulate(planned.words, process.env, end);
    }
  }
}

try {
  await act(plan(checks, invocation));
} catch (error) {
  if (error instanceof Fault && error.code === "BadUsage") fail("BadUsage", error.message);
  else fail("InternalError", describe(error));
}
