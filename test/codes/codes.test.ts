// Every code that the checks can meet, with the exit status it ends in: the table of docs and design, typed here once
// more by hand and held against the built binary.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { type Code, codes } from "../../lib/codes.ts";
import { profiles } from "../../lib/exit.ts";
import { type Simulator, scenarios } from "../../lib/simulator.ts";
import {
  age,
  asOtherUser,
  baseEnvironment,
  binary,
  binaryForAll,
  execute,
  folder,
  isRoot,
  needs,
  type ProbeJson,
  probe,
  probeJson,
  simulate,
  until,
} from "../support.ts";

type Exits = readonly [nagios: number, npd: number, kube: number];
type Passes = readonly [startup: number, readiness: number, liveness: number];

const ok: Exits = [0, 0, 0];
const warning: Exits = [1, 0, 0];
const critical: Exits = [2, 1, 1];
const unknown: Exits = [3, 2, 1];

// `ready` with --for: a startup probe passes on Ready alone, a readiness probe on RateLimited too, and a liveness probe
// fails only where a restart of the container can help.
const passes = { all: [0, 0, 0], notStarted: [1, 1, 0], limited: [1, 0, 0], none: [1, 1, 1] } as const;

interface Row {
  readonly scenario: string;
  readonly check: string;
  readonly code: Code;
  readonly exits: Exits;
  /** Of `ready` with the profile kube and --for. */
  readonly passes?: Passes;
  readonly args?: readonly string[];
  /** For InventoryUnavailable. */
  readonly cause?: Code;
  /** Changes what the scenario made, and gives further arguments. */
  readonly prepare?: (simulator: Simulator) => readonly string[] | undefined;
  /** What sets it apart from another row of the scenario. */
  readonly note?: string;
}

const hangs = ["--timeout", "300ms"];
const short = ["--hold", "100ms"];
// On a machine that is busy with other tests: nothing but what hangs is to meet its deadline.
const patient = ["--timeout", "20s"];
const expectAll = ({ expect }: Simulator) => ["--expect", expect.join(",")];

/** The manifests of the simulator in a folder, last changed so many seconds ago. */
function withManifests(seconds: number, further: Readonly<Record<string, string>> = {}) {
  return ({ socket, manifests }: Simulator) => {
    const path = join(dirname(dirname(socket)), "manifests");
    mkdirSync(path);
    const changed = Date.now() / 1000 - seconds;
    for (const [file, text] of Object.entries({ ...manifests, ...further })) {
      writeFileSync(join(path, file), text);
      utimesSync(join(path, file), changed, changed);
    }
    return ["--manifests", path, "--node-name", "node-1"];
  };
}

/** A kubelet that has served for long enough to know its pods. */
function settled(simulator: Simulator): readonly string[] {
  age(simulator.socket, 3600);
  return expectAll(simulator);
}

function openFolders({ socket }: Simulator): undefined {
  chmodSync(dirname(socket), 0o755);
  chmodSync(dirname(dirname(socket)), 0o755);
}

const secretPod = JSON.stringify({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "refused", namespace: "kube-system" },
  spec: {
    containers: [{ name: "main", image: "registry.example/refused:1" }],
    volumes: [{ name: "key", secret: { secretName: "key" } }],
  },
});

/** What `ready` says of a broken server, and what the checks that need the listing make of it. */
function broken(scenario: string, code: Code, exits: Exits, pass: Passes, args: readonly string[] = []): Row[] {
  const unavailable = { code: "InventoryUnavailable", cause: code, exits: unknown } as const;
  return [
    { scenario, check: "ready", code, exits, passes: pass, args },
    { scenario, check: "static-pods", ...unavailable, args, prepare: expectAll },
  ];
}

const rows: readonly Row[] = [
  // The socket
  { scenario: "healthy", check: "socket", code: "SocketSecure", exits: ok },
  { scenario: "private", check: "socket", code: "SocketSecure", exits: ok },
  { scenario: "missing", check: "socket", code: "SocketMissing", exits: critical },
  { scenario: "not-a-socket", check: "socket", code: "SocketNotASocket", exits: critical },
  { scenario: "dead", check: "socket", code: "SocketDead", exits: critical },
  { scenario: "insecure", check: "socket", code: "SocketInsecure", exits: warning, note: "behind closed folders" },
  { scenario: "insecure", check: "socket", code: "SocketInsecure", exits: critical, prepare: openFolders },
  { scenario: "hang", check: "socket", code: "Timeout", exits: critical, args: hangs },
  { scenario: "http1", check: "socket", code: "NotGrpc", exits: unknown },
  { scenario: "initializing", check: "socket", code: "SocketSecure", exits: ok },

  // Reading the inventory
  { scenario: "healthy", check: "ready", code: "Ready", exits: ok, passes: passes.all },
  { scenario: "large", check: "ready", code: "Ready", exits: ok, passes: passes.all },
  { scenario: "slow", check: "ready", code: "Ready", exits: ok, passes: passes.all },
  { scenario: "strict-authority", check: "ready", code: "Ready", exits: ok, passes: passes.all },
  {
    scenario: "late",
    check: "ready",
    code: "Ready",
    exits: ok,
    passes: passes.all,
    args: ["--wait", "--timeout", "9s"],
  },
  { scenario: "lost-once", check: "ready", code: "Ready", exits: ok },
  { scenario: "goaway", check: "ready", code: "Ready", exits: ok },
  ...broken("missing", "SocketMissing", critical, passes.none),
  ...broken("not-a-socket", "SocketNotASocket", critical, passes.none),
  ...broken("dead", "SocketDead", critical, passes.none),
  ...broken("hang", "Timeout", critical, passes.none, hangs),
  { scenario: "hang-call", check: "ready", code: "Timeout", exits: critical, passes: passes.none, args: hangs },
  { scenario: "hang-body", check: "ready", code: "Timeout", exits: critical, passes: passes.none, args: hangs },
  { scenario: "dribble", check: "ready", code: "Timeout", exits: critical, passes: passes.none, args: hangs },
  { scenario: "no-window", check: "ready", code: "Timeout", exits: critical, passes: passes.none, args: hangs },
  { scenario: "settings-storm", check: "ready", code: "Timeout", exits: critical, passes: passes.none, args: hangs },
  ...broken("grpc-4", "Timeout", critical, passes.none),
  ...broken("http1", "NotGrpc", unknown, passes.notStarted),
  ...broken("garbage", "NotGrpc", unknown, passes.notStarted),
  ...broken("tls", "NotGrpc", unknown, passes.notStarted),
  ...broken("wrong-content-type", "NotGrpc", unknown, passes.notStarted),
  ...broken("http-status", "NotGrpc", unknown, passes.notStarted),
  ...broken("http-status-415", "NotGrpc", unknown, passes.notStarted),
  ...broken("no-status", "NotGrpc", unknown, passes.notStarted),
  ...broken("wrong-service", "WrongService", unknown, passes.notStarted),
  ...broken("initializing", "Initializing", warning, passes.notStarted),
  ...broken("initializing-old", "Initializing", critical, passes.notStarted),
  ...broken("rate-limited", "RateLimited", warning, passes.limited),
  ...broken("too-large", "AnswerTooLarge", unknown, passes.notStarted),
  ...broken("large", "AnswerTooLarge", unknown, passes.notStarted, ["--max-bytes", "1000000"]),
  ...broken("close", "ConnectionLost", critical, passes.notStarted),
  ...broken("lost", "ConnectionLost", critical, passes.notStarted),
  ...broken("goaway-always", "ConnectionLost", critical, passes.notStarted),
  ...broken("reset", "ConnectionLost", critical, passes.notStarted),
  ...broken("undecodable", "Undecodable", unknown, passes.notStarted),
  ...broken("undecodable-pod", "Undecodable", unknown, passes.notStarted),
  ...broken("truncated", "Undecodable", unknown, passes.notStarted),
  ...broken("compressed", "Undecodable", unknown, passes.notStarted),
  ...broken("short-prefix", "Undecodable", unknown, passes.notStarted),
  ...broken("no-message", "Undecodable", unknown, passes.notStarted),
  ...broken("two-messages", "Undecodable", unknown, passes.notStarted),
  ...broken("server-error", "ServerError", critical, passes.notStarted),
  ...broken("long-message", "ServerError", critical, passes.notStarted),
  ...broken("unknown-status", "ServerError", critical, passes.notStarted),
  {
    scenario: "initializing",
    check: "ready",
    code: "Initializing",
    exits: critical,
    args: ["--init-grace", "1ms"],
    note: "after --init-grace",
  },
  {
    scenario: "healthy",
    check: "ready",
    code: "ThresholdExceeded",
    exits: warning,
    passes: passes.all,
    args: ["-w", "@0:"],
  },
  {
    scenario: "healthy",
    check: "ready",
    code: "ThresholdExceeded",
    exits: critical,
    passes: [1, 1, 0],
    args: ["-c", "@0:"],
  },

  // Static pods
  { scenario: "healthy", check: "static-pods", code: "StaticPodsHealthy", exits: ok, prepare: expectAll },
  { scenario: "large", check: "static-pods", code: "StaticPodsHealthy", exits: ok, prepare: expectAll },
  {
    scenario: "healthy",
    check: "static-pods",
    code: "StaticPodsHealthy",
    exits: ok,
    args: ["--expect-count", "4:4"],
    note: "by number",
  },
  {
    scenario: "healthy",
    check: "static-pods",
    code: "StaticPodsHealthy",
    exits: ok,
    prepare: withManifests(3600),
    note: "by manifests",
  },
  {
    scenario: "healthy",
    check: "static-pods",
    code: "StaticPodsHealthy",
    exits: ok,
    args: ["--source", "watch"],
    prepare: expectAll,
    note: "by a watch",
  },
  { scenario: "missing-pod", check: "static-pods", code: "StaticPodMissing", exits: critical, prepare: settled },
  { scenario: "empty-1.36", check: "static-pods", code: "StaticPodMissing", exits: critical, prepare: settled },
  {
    scenario: "missing-pod",
    check: "static-pods",
    code: "StaticPodMissing",
    exits: critical,
    args: ["--expect-count", "4:"],
    prepare: ({ socket }) => void age(socket, 3600),
    note: "by number",
  },
  { scenario: "not-ready", check: "static-pods", code: "StaticPodNotReady", exits: warning, prepare: expectAll },
  { scenario: "pending", check: "static-pods", code: "StaticPodNotReady", exits: warning, prepare: expectAll },
  { scenario: "invalid-utf8", check: "static-pods", code: "StaticPodNotReady", exits: warning, prepare: expectAll },
  { scenario: "not-ready-old", check: "static-pods", code: "StaticPodNotReady", exits: critical, prepare: expectAll },
  {
    scenario: "not-ready",
    check: "static-pods",
    code: "StaticPodNotReady",
    exits: critical,
    args: ["--ready-grace", "10s"],
    prepare: expectAll,
    note: "after --ready-grace",
  },
  { scenario: "failed-pod", check: "static-pods", code: "StaticPodFailed", exits: critical, prepare: expectAll },
  { scenario: "hostile-text", check: "static-pods", code: "StaticPodFailed", exits: critical, prepare: expectAll },
  { scenario: "unexpected-pod", check: "static-pods", code: "StaticPodUnexpected", exits: warning, prepare: expectAll },
  {
    scenario: "healthy",
    check: "static-pods",
    code: "StaticPodUnexpected",
    exits: warning,
    args: ["--expect-count", "3"],
    note: "by number",
  },
  {
    // Only touched: the kubelet sees no change in it, and goes on with the pod it has.
    scenario: "touched-manifest",
    check: "static-pods",
    code: "StaticPodsHealthy",
    exits: ok,
    prepare: withManifests(3600),
  },
  {
    scenario: "stale-image",
    check: "static-pods",
    code: "StaticPodStale",
    exits: warning,
    // The shorter the kubelet's scan period, the sooner a pod that differs from its manifest is stale.
    prepare: (simulator) => {
      const config = join(dirname(dirname(simulator.socket)), "config.yaml");
      writeFileSync(config, "kind: KubeletConfiguration\nfileCheckFrequency: 1s\n");
      return [...withManifests(3600)(simulator), "--kubelet-config", config];
    },
  },
  {
    scenario: "healthy",
    check: "static-pods",
    code: "ManifestRefused",
    exits: critical,
    prepare: withManifests(3600, { "refused.yaml": secretPod }),
  },
  {
    scenario: "healthy",
    check: "static-pods",
    code: "ManifestsUnreadable",
    exits: unknown,
    args: ["--manifests", "/etc/passwd/manifests"],
  },
  {
    scenario: "missing-pod",
    check: "static-pods",
    code: "StaticPodMissing",
    exits: warning,
    args: ["-w", "0", "-c", "1"],
    prepare: settled,
    note: "within the range of -c",
  },
  {
    scenario: "watch-dropped-early",
    check: "static-pods",
    code: "InventoryUnavailable",
    cause: "WatchDropped",
    exits: unknown,
    args: ["--source", "watch"],
    prepare: expectAll,
  },
  {
    scenario: "initializing-inventory",
    check: "static-pods",
    code: "InventoryUnavailable",
    cause: "Initializing",
    exits: unknown,
    prepare: expectAll,
  },

  // Manifests, offline
  { scenario: "healthy", check: "manifests", code: "ManifestsClean", exits: ok, prepare: withManifests(3600) },
  {
    scenario: "healthy",
    check: "manifests",
    code: "ManifestRefused",
    exits: critical,
    prepare: withManifests(3600, { "refused.yaml": secretPod }),
  },
  {
    scenario: "healthy",
    check: "manifests",
    code: "ManifestIgnored",
    exits: warning,
    prepare: withManifests(3600, { README: "how to edit these files: ask ops\n" }),
  },
  {
    scenario: "healthy",
    check: "manifests",
    code: "ManifestShadowed",
    exits: warning,
    prepare: (simulator) => withManifests(3600, { "etcd.yaml.bak": simulator.manifests["etcd.yaml"]! })(simulator),
  },
  {
    scenario: "healthy",
    check: "manifests",
    code: "ManifestsUnreadable",
    exits: unknown,
    args: ["--manifests", "/etc/passwd/manifests"],
  },

  // A watch
  { scenario: "healthy", check: "watch", code: "WatchHealthy", exits: ok, args: short },
  { scenario: "watch-churn", check: "watch", code: "WatchHealthy", exits: ok, args: short },
  { scenario: "watch-dropped-once", check: "watch", code: "WatchHealthy", exits: ok, args: short },
  { scenario: "watch-dropped", check: "watch", code: "WatchDropped", exits: warning, args: short },
  { scenario: "watch-dropped-early", check: "watch", code: "WatchDropped", exits: warning, args: short },
  { scenario: "watch-diverged", check: "watch", code: "WatchDiverged", exits: critical, args: short },
  { scenario: "watch-silent", check: "watch", code: "Timeout", exits: critical, args: hangs },
  { scenario: "missing", check: "watch", code: "SocketMissing", exits: critical },
  { scenario: "initializing", check: "watch", code: "Initializing", exits: warning },

  // The rate limit
  { scenario: "healthy", check: "rate-limit", code: "RateLimitHeadroom", exits: ok },
  { scenario: "rate-shared", check: "rate-limit", code: "RateLimitHeadroom", exits: ok },
  { scenario: "rate-limited", check: "rate-limit", code: "RateLimited", exits: critical },
  { scenario: "rate-limited-some", check: "rate-limit", code: "RateLimited", exits: warning },
  {
    scenario: "rate-limited-some",
    check: "rate-limit",
    code: "RateLimited",
    exits: critical,
    args: ["-c", "3:"],
    note: "under -c",
  },
  // Admitted is whatever the limiter let through.
  { scenario: "initializing", check: "rate-limit", code: "RateLimitHeadroom", exits: ok },
  { scenario: "missing", check: "rate-limit", code: "SocketMissing", exits: critical },
  { scenario: "dead", check: "rate-limit", code: "SocketDead", exits: critical },
  { scenario: "hang", check: "rate-limit", code: "Timeout", exits: critical, args: hangs },
  { scenario: "lost", check: "rate-limit", code: "ConnectionLost", exits: critical },
  { scenario: "wrong-service", check: "rate-limit", code: "WrongService", exits: unknown },

  // All of them: one cause, one code
  { scenario: "healthy", check: "all", code: "SocketSecure", exits: ok, prepare: expectAll },
  { scenario: "missing", check: "all", code: "SocketMissing", exits: critical, prepare: expectAll },
  { scenario: "dead", check: "all", code: "SocketDead", exits: critical, prepare: expectAll },
  { scenario: "hang", check: "all", code: "Timeout", exits: critical, args: hangs, prepare: expectAll },
  { scenario: "http1", check: "all", code: "NotGrpc", exits: unknown, prepare: expectAll },
  { scenario: "wrong-service", check: "all", code: "WrongService", exits: unknown, prepare: expectAll },
  { scenario: "initializing", check: "all", code: "Initializing", exits: warning, prepare: expectAll },
  { scenario: "initializing-old", check: "all", code: "Initializing", exits: critical, prepare: expectAll },
  { scenario: "rate-limited", check: "all", code: "RateLimited", exits: critical, prepare: expectAll },
  { scenario: "failed-pod", check: "all", code: "StaticPodFailed", exits: critical, prepare: expectAll },
  { scenario: "unexpected-pod", check: "all", code: "StaticPodUnexpected", exits: warning, prepare: expectAll },
  { scenario: "undecodable", check: "all", code: "Undecodable", exits: unknown, prepare: expectAll },
  { scenario: "lost", check: "all", code: "ConnectionLost", exits: critical, prepare: expectAll },
];

const reached = new Set<Code>();

const offline = new Set(["manifests"]);

function noteReached(run: ProbeJson): void {
  for (const { code, findings } of run.checks) {
    reached.add(code as Code);
    for (const finding of findings) reached.add(finding.code as Code);
  }
}

async function inEachProfile(given: readonly string[], row: Row): Promise<void> {
  const args = given.includes("--timeout") ? given : [...given, ...patient];
  for (const [at, profile] of profiles.entries()) {
    const run = await probeJson([row.check, ...args, "--profile", profile]);
    noteReached(run);
    assert.deepEqual([run.code, run.ended.status], [row.code, row.exits[at]], `${profile}: ${run.ended.stdout}`);
    assert.equal(run.exitStatus, run.ended.status);
    assert.equal(run.ended.stderr, "");
    if (row.cause !== undefined) assert.equal(run.checks[0]!.findings[0]!.cause, row.cause);
  }
  for (const [at, purpose] of (["startup", "readiness", "liveness"] as const).entries()) {
    if (row.passes === undefined) break;
    const ended = await probe([row.check, ...args, "--profile", "kube", "--for", purpose]);
    assert.equal(ended.status, row.passes[at], `--for ${purpose}: ${ended.stdout}`);
    assert.match(ended.stdout, new RegExp(`^${row.code}: [^\n]+\n$`));
  }
}

describe("a scenario, a check, a code, an exit status in each profile", { concurrency: 2 }, () => {
  for (const row of rows) {
    const name = [row.scenario, row.check, ...(row.args ?? []), row.code, row.exits.join("/"), row.note];
    test(name.filter(Boolean).join(" "), async (t) => {
      const simulator = await simulate(t, row.scenario);
      const further = row.prepare?.(simulator) ?? [];
      const socket = offline.has(row.check) ? [] : ["--socket", simulator.socket];
      const args = [...socket, ...further, ...(row.args ?? [])];
      if (row.code === "StaticPodStale") {
        await until("a manifest that is old enough", async () => {
          await new Promise((resolve) => setTimeout(resolve, 500));
          return (await probeJson([row.check, ...args])).code === row.code;
        });
      }
      await inEachProfile(args, row);
    });
  }

  for (const grpc of [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]) {
    for (const suffix of ["", "-bare"]) {
      const scenario = scenarios.find(({ name }) => name === `grpc-${grpc}${suffix}`)!;
      const exits = { Initializing: warning, RateLimited: warning, WrongService: unknown }[scenario.code as string];
      test(`${scenario.name} ready ${scenario.code}`, async (t) => {
        const simulator = await simulate(t, scenario.name);
        const row = { scenario: scenario.name, check: "ready", code: scenario.code, exits: exits ?? critical };
        await inEachProfile(["--socket", simulator.socket], row);
      });
    }
  }

  for (let code = 0; code <= 13; code++) {
    test(`reset-${code} ready ConnectionLost`, async (t) => {
      const simulator = await simulate(t, `reset-${code}`);
      const row = { scenario: `reset-${code}`, check: "ready", code: "ConnectionLost", exits: critical } as const;
      await inEachProfile(["--socket", simulator.socket], row);
    });
  }
});

describe("codes that no scenario gives", () => {
  test("PathTooLong", async (t) => {
    const socket = join(folder(t), "x".repeat(200));
    await inEachProfile(["--socket", socket], {
      scenario: "",
      check: "ready",
      code: "PathTooLong",
      exits: unknown,
      passes: passes.notStarted,
    });
  });

  test("PermissionDenied", { skip: isRoot ? needs.otherUser : false }, async (t) => {
    const simulator = await simulate(t, "permission");
    openFolders(simulator);
    const [command, ...words] = isRoot ? [...asOtherUser, binaryForAll(t)] : [binary];
    for (const check of ["socket", "ready", "rate-limit"]) {
      for (const [at, profile] of profiles.entries()) {
        const args = [check, "--socket", simulator.socket, "--profile", profile];
        const ended = await execute(command!, [...words, ...args]);
        assert.equal(ended.status, unknown[at], ended.stdout);
        assert.match(ended.stdout, /\bPermissionDenied: /);
      }
    }
    reached.add("PermissionDenied");
  });

  test("BadUsage", async () => {
    for (const [at, profile] of profiles.entries()) {
      for (const args of [["nonsense"], ["ready", "--nonsense"], ["ready", "--timeout", "5"], []]) {
        const ended = await probe([...args, "--profile", profile]);
        assert.equal(ended.status, unknown[at], ended.stdout);
        assert.match(ended.stdout, /^(KUBELET-PROBE UNKNOWN - )?BadUsage: [^\n]+\n$/);
        // Also where a container asks: the command line decides before its purpose does.
        const asked = await probe([...args, "--profile", profile, "--for", "liveness"]);
        assert.equal(asked.status, unknown[at], asked.stdout);
      }
    }
    reached.add("BadUsage");
  });

  test("InternalError, of a run that is told to end", async (t) => {
    for (const [at, profile] of profiles.entries()) {
      for (const signal of ["TERM", "INT", "HUP"]) {
        const simulator = await simulate(t, "hang");
        // From outside, once the probe is at its call.
        const script = `"$0" "$@" & pid=$!; read -r go; kill -${signal} $pid; wait $pid`;
        const args = [
          "-c",
          script,
          binary,
          "ready",
          "--socket",
          simulator.socket,
          "--profile",
          profile,
          "--timeout=50s",
        ];
        const child = spawn("sh", args, { env: baseEnvironment, stdio: ["pipe", "pipe", "inherit"] });
        let stdout = "";
        child.stdout.setEncoding("utf8").on("data", (text) => {
          stdout += text;
        });
        const end = new Promise<number | null>((resolve) => child.once("close", resolve));
        await until("a connection", () => simulator.connections > 0);
        child.stdin.end("go\n");
        assert.equal(await end, unknown[at]);
        assert.match(stdout, new RegExp(`InternalError: ended by SIG${signal} [^\n]*\n$`));
      }
    }
    reached.add("InternalError");
  });
});

describe("severities", () => {
  test("--npd-warning problem: WARNING is a problem", async (t) => {
    const simulator = await simulate(t, "initializing");
    const args = ["ready", "--socket", simulator.socket, "--profile", "npd", "--npd-warning", "problem"];
    assert.equal((await probe(args)).status, 1);
  });

  test("--strict: WARNING fails", async (t) => {
    const simulator = await simulate(t, "initializing");
    const args = ["ready", "--socket", simulator.socket, "--profile", "kube", "--strict"];
    assert.equal((await probe(args)).status, 1);
  });

  for (const [status, exits] of [
    ["OK", ok],
    ["WARNING", warning],
    ["CRITICAL", critical],
    ["UNKNOWN", unknown],
  ] as const) {
    test(`--severity SocketMissing=${status}`, async (t) => {
      const simulator = await simulate(t, "missing");
      for (const [at, profile] of profiles.entries()) {
        const severity = ["--severity", `SocketMissing=${status}`];
        const run = await probeJson(["ready", "--socket", simulator.socket, "--profile", profile, ...severity]);
        assert.deepEqual([run.status, run.ended.status], [status, exits[at]]);
      }
    });
  }
});

describe("the exit status of help and version", () => {
  for (const [args, status] of [
    [["--help"], 0],
    [["--version"], 0],
    [["--help", "--profile", "nagios"], 3],
    [["--version", "--profile", "nagios"], 3],
    [["ready", "--help", "--profile", "npd"], 0],
    [["ready", "--help", "--profile", "kube"], 0],
  ] as const) {
    test(`${args.join(" ")}: ${status}`, async () => {
      assert.equal((await probe(args)).status, status);
    });
  }
});

after(() => {
  const skipped: Code[] = isRoot && needs.otherUser !== false ? ["PermissionDenied"] : [];
  const expected = Object.keys(codes).filter((code) => !skipped.includes(code as Code));
  const missed = expected.filter((code) => !reached.has(code as Code));
  assert.deepEqual(missed, [], "every code is reached");
});
