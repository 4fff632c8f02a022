// docs/faults.md, made of the table by `npm run docs`.

import { profiles } from "../../lib/exit.ts";
import { exits, faults, timeoutMs } from "./table.ts";

const runtimeCount = 4;

/** @returns The document. */
export function faultsDocument(): string {
  const rows = faults.map(({ name, does, check, args, code, status }) => {
    const words = [check, ...args].join(" ");
    return [`\`${name}\``, does, `\`${words}\``, code, status, ...profiles.map((profile) => exits[profile][status])];
  });
  const line = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  const head = ["fault", "the server", "check", "code", "status", ...profiles];
  return `# Faults

What a server can do wrong, and what the probe makes of it. \`test/faults\` runs every row on the compiled binary, and
on Bun, Deno and Node from its sources, in each profile: ${faults.length} faults x ${runtimeCount} runtimes x ${profiles.length} profiles = ${faults.length * runtimeCount * profiles.length} cells. In
each of them the run ends by itself, with the code and the exit status below, one line of the profile, and nothing on its
standard error. Those that end in their deadline have one of ${timeoutMs.late} ms; the suite prints how far beyond it the latest was.

This file is made by \`npm run docs\`.

## What no program can end from inside

A process that does not run cannot keep its own deadline: one that is stopped, that waits for a file system which has gone
away (a network file system below the kubelet's root), or whose runtime has crashed. What starts the probe should have a
limit of its own above the probe's: NRPE, Icinga, node-problem-detector, the kubelet and systemd do. Elsewhere \`timeout\` of
coreutils is one, and what is none of the profile's exit statuses becomes UNKNOWN:

\`\`\`sh
timeout --kill-after=2s 15s kubelet-probe all; status=$?; [ $status -le 3 ] || status=3; exit $status
\`\`\`

A signal that ends a run gives UNKNOWN and a line that names it (SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM, SIGXCPU, SIGUSR1,
SIGUSR2). Before the program has begun, in the first 10 ms or so, the process ends by the signal. The runtime ends with
SIGABRT, 134 to a shell, where \`/proc\` is not mounted or a limit of its address space (\`ulimit -v\`, \`ulimit -d\`) is too low.

## Memory

Of the 40 MiB that a run takes, 6 are its own; the others are pages of the binary, which all runs share and the kernel drops
where memory is scarce. With a kubelet's answer of 64 MiB 40 MiB are its own, while a server floods it up to 60; with as many
invented pods as a listing or a watch may have, up to 85 and 185. So a limit of memory (\`MemoryMax=\`, \`limits.memory\`) of
64 MiB is enough for any kubelet, one of 128 MiB for any listing, one of 256 MiB for anything.

## The table

${[line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n")}
`;
}
