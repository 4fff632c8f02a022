// The same with everything in between: a real socket, the client, a check, and every output.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { plan } from "../../lib/cli.ts";
import { profiles } from "../../lib/exit.ts";
import { format, outputs } from "../../lib/format.ts";
import { run } from "../../lib/probe.ts";
import { checks } from "../../probes/list.ts";
import type { Result } from "./feed.ts";
import type { Input } from "./mutate.ts";
import type { Method } from "./recordings.ts";

const words: Readonly<Record<Method, readonly string[]>> = {
  list: ["static-pods", "--expect-count", "0:9"],
  watch: ["static-pods", "--source", "watch", "--expect-count", "0:9"],
  get: ["rate-limit", "--burst", "1"],
};

// The server hangs up after its answer: nothing is to wait this long.
const timeoutMs = 20_000;
const hangMs = 10_000;

const raw = /[\p{Cc}\p{Zl}\p{Zp}\p{Cf}\p{Surrogate}]/u;

/** Runs a check against one input after the other. */
export interface ProbeFeed {
  run(input: Input): Promise<Result>;
  close(): void;
}

/** Opens the socket. */
export async function openProbeFeed(): Promise<ProbeFeed> {
  const folder = mkdtempSync(join(tmpdir(), "kp-"));
  const path = join(folder, "s");
  const open = new Set<Socket>();
  let chunks: readonly Buffer[] = [];
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => {});
    socket.resume();
    socket.once("data", () => {
      for (const chunk of chunks) socket.write(chunk);
      socket.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));

  return {
    async run(input) {
      chunks = input.chunks;
      const planned = plan(checks, {
        name: "kubelet-probe",
        words: [...words[input.method], "--socket", path, "--node-name", "node-1", "--timeout", `${timeoutMs}ms`],
        environment: {},
      });
      if (planned.kind !== "run") throw new Error("not a run");
      const report = await run(planned.run);
      if (report.durationMs > hangMs) return { wrong: "hang", why: `${report.code} after ${report.durationMs} ms` };
      const codes = report.checks.flatMap(({ code, findings }) => [
        code,
        ...findings.flatMap((one) => [one.code, one.cause]),
      ]);
      if (codes.includes("InternalError")) return { wrong: "crash", why: report.summary };
      for (const output of outputs) {
        for (const profile of output === "text" ? profiles : (["nagios"] as const)) {
          const text = format(report, output, { ...planned, profile, verbose: true, exitStatus: 0 });
          if (raw.test(text.replaceAll("\n", "")))
            return { wrong: "crash", why: `raw in ${output}: ${JSON.stringify(text)}` };
          if (output === "json") JSON.parse(text);
        }
      }
      const { code, findings } = report.checks[0]!;
      return { outcome: code === "InventoryUnavailable" ? `${findings[0]?.cause}` : code };
    },
    close() {
      server.close();
      for (const socket of open) socket.destroy();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
