// What the built binary never does, whatever it finds: reach beyond the socket, write, start anything, or show what is
// in a pod's environment or what its text would do to a terminal.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { profiles } from "../../lib/exit.ts";
import { outputs } from "../../lib/format.ts";
import { canary } from "../../lib/simulator.ts";
import { makeAuthority, needsOpenssl } from "../certificates.ts";
import { age, binary, cleanUp, execute, folder, needs, probe, simulate } from "../support.ts";

describe("strace of all", { skip: needs.strace }, () => {
  for (const scenario of ["healthy", "failed-pod", "initializing", "rate-limited", "lost-once", "dead", "http1"]) {
    test(scenario, async (t) => {
      const simulator = await simulate(t, scenario);
      await assertTraceIsClean(t, simulator.socket, ["--expect", simulator.expect.join(",")]);
    });
  }

  test("with manifests, -v and JSON", async (t) => {
    const simulator = await simulate(t, "healthy");
    const manifests = join(folder(t), "manifests");
    mkdirSync(manifests);
    for (const [file, text] of Object.entries(simulator.manifests)) writeFileSync(join(manifests, file), text);
    const args = ["--manifests", manifests, "--node-name", "node-1", "-v", "--output", "json"];
    await assertTraceIsClean(t, simulator.socket, args);
  });

  test("with --metrics URL: that address, and no other", { skip: needsOpenssl }, async (t) => {
    const simulator = await simulate(t, "healthy");
    const { port, words } = await serveMetrics(t, (_, response) => answerMetrics(response));
    const args = ["--expect", simulator.expect.join(","), "--node-name", "node-1", "--samples", "2", "-v", ...words];
    const printed = await assertTraceIsClean(t, simulator.socket, args, port);
    assert.match(printed, /over [\d.]+ s of metrics: this kubelet does not count calls, 0 watchers dropped/);
  });
});

/** Serves metrics over TLS; the words are the options with which they can be had. */
async function serveMetrics(
  t: TestContext,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ port: number; words: readonly string[] }> {
  const home = folder(t);
  const authority = makeAuthority(home, "ca");
  const shown = authority.issue("node", "DNS:node-1");
  const tokenFile = join(home, "token");
  writeFileSync(tokenFile, canary);
  const server = createServer({ cert: readFileSync(shown.certFile), key: readFileSync(shown.keyFile) }, handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(t, () => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const url = `https://127.0.0.1:${port}/metrics`;
  return { port, words: ["--metrics", url, "--ca-file", authority.certFile, "--token-file", tokenFile] };
}

function answerMetrics(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/plain" }).end("kubelet_pod_watch_events_dropped_total 0\n");
}

/** @returns What was printed. */
async function assertTraceIsClean(
  t: TestContext,
  socket: string,
  args: readonly string[],
  port?: number,
): Promise<string> {
  const home = folder(t);
  const log = join(home, "strace.log");
  const words = ["-f", "-qq", "-s", "200", "-e", "signal=none", "-e", "trace=%network,%file,%process", "-o", log];
  const cwd = join(home, "cwd");
  mkdirSync(cwd);
  const { stdout } = await execute("strace", [...words, binary, "all", "--socket", socket, ...args], { cwd });

  const calls = readFileSync(log, "utf8")
    .split("\n")
    .map((line) => /^\d+\s+(?:<\.\.\. )?(\w+)(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, name, rest]) => ({ name: name!, rest: rest! }));
  const named = (...names: string[]) => calls.filter(({ name }) => names.includes(name));
  const show = (list: typeof calls) => list.map(({ name, rest }) => name + rest);

  assert.equal(named("execve", "execveat").length, 1, "started nothing");
  assert.deepEqual(show(named("fork", "vfork")), []);
  const processes = named("clone", "clone3").filter(({ rest }) => rest.startsWith("(") && !/CLONE_THREAD/.test(rest));
  assert.deepEqual(show(processes), []);

  const sockets = named("socket", "socketpair").filter(({ rest }) => rest.startsWith("("));
  const isNetwork = ({ rest }: { readonly rest: string }) =>
    port !== undefined && rest.startsWith("(AF_INET, SOCK_STREAM");
  assert.ok(
    sockets.every((call) => call.rest.startsWith("(AF_UNIX, SOCK_STREAM") || isNetwork(call)),
    show(sockets).join("\n"),
  );
  // One for each scrape.
  assert.equal(sockets.filter(isNetwork).length, port === undefined ? 0 : 2, show(sockets).join("\n"));
  const reached = named("connect", "bind", "listen", "accept4", "sendmsg").filter(({ rest }) => rest.startsWith("("));
  assert.ok(reached.length > 0);
  const own = [`sa_family=AF_UNIX, sun_path="${socket}"`];
  if (port !== undefined) own.push(`sa_family=AF_INET, sin_port=htons(${port}), sin_addr=inet_addr("127.0.0.1")`);
  assert.ok(
    reached.every(({ name, rest }) => name === "connect" && own.some((address) => rest.includes(address))),
    show(reached).join("\n"),
  );

  const writing = named("open", "openat", "openat2", "creat").filter(
    ({ name, rest }) => name === "creat" || /O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND/.test(rest),
  );
  // Its own standard output, which the runtime opens once more so as not to block on it.
  const foreign = writing.filter(({ rest }) => !/"\/(proc\/self|dev)\/fd\/1"|"\/dev\/null"/.test(rest));
  assert.deepEqual(show(foreign), []);
  const changing = named(
    ...["mkdir", "mkdirat", "mknod", "mknodat", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2"],
    ...[
      "link",
      "linkat",
      "symlink",
      "symlinkat",
      "chmod",
      "fchmod",
      "fchmodat",
      "chown",
      "fchown",
      "fchownat",
      "lchown",
    ],
    ...["truncate", "ftruncate", "utimensat", "setxattr", "lsetxattr", "mount", "umount2", "chroot", "pivot_root"],
  );
  assert.deepEqual(show(changing), []);
  assert.deepEqual(readdirSync(cwd), []);
  return stdout;
}

const scenariosWithPods = [
  "healthy",
  "missing-pod",
  "not-ready-old",
  "failed-pod",
  "unexpected-pod",
  "hostile-text",
  "invalid-utf8",
  "undecodable-pod",
  "truncated",
  "short-prefix",
  "initializing",
];

/** Every output of every check in every profile, quiet and verbose. */
async function everyOutput(
  t: TestContext,
  scenario: string,
  see: (
    text: string,
    about: { readonly args: readonly string[]; readonly output: string; readonly profile: string },
  ) => void,
): Promise<void> {
  const simulator = await simulate(t, scenario);
  age(simulator.socket, 3600);
  const manifests = join(folder(t), "manifests");
  mkdirSync(manifests);
  for (const [file, text] of Object.entries({ ...simulator.manifests, ...secretManifests })) {
    writeFileSync(join(manifests, file), text);
  }
  const byName = ["--expect", simulator.expect.join(",")];
  const checks = [
    ["socket"],
    ["ready"],
    ["static-pods", ...byName],
    ["static-pods", "--manifests", manifests, "--node-name", "node-1"],
    ["static-pods", "--source", "watch", ...byName],
    ["rate-limit"],
    ["all", ...byName],
  ];
  const env = { SECRET: canary, KUBECONFIG: `/${canary}`, HTTP_PROXY: `http://${canary}.invalid:1` };
  const runs = checks.flatMap((check) =>
    outputs.flatMap((output) =>
      // JSON says the same in every profile.
      (output === "text" ? profiles : (["nagios"] as const)).map((profile) => ({
        args: [...check, "--socket", simulator.socket, "--output", output, "--profile", profile, "-v"],
        output,
        profile,
      })),
    ),
  );
  // Two at a time: more would meet the rate limit and not the pods.
  const next = runs.values();
  await Promise.all(
    [1, 2].map(async () => {
      for (const run of next) {
        const { stdout, stderr } = await probe(run.args, { env });
        assert.equal(stderr, "");
        assert.notEqual(stdout, "");
        see(stdout, run);
      }
    }),
  );
}

const secretContainer = {
  name: "main",
  image: "registry.example/app:1",
  args: [`--password=${canary}`],
  env: [{ name: "API_TOKEN", value: canary }],
};
const secretManifests: Readonly<Record<string, string>> = {
  "secret.yaml": JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "secret", namespace: "kube-system", annotations: { note: canary } },
    spec: { containers: [secretContainer] },
  }),
  // Refused, with a reason; the reason must not quote it.
  "refused.yaml": JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "refused", namespace: "kube-system" },
    spec: { containers: [{ ...secretContainer, envFrom: [{ secretRef: { name: "x" } }] }] },
  }),
  "malformed.yaml": `apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - env:\n    - {name: A, value: ${canary}\n`,
  "env-not-a-list.yaml": `apiVersion: v1\nkind: Pod\nmetadata: {name: z}\nspec:\n  containers:\n  - {name: a, image: b, env: "${canary}"}\n`,
};

describe("the environment, arguments and annotations of pods are in no output", () => {
  for (const scenario of scenariosWithPods) {
    test(scenario, async (t) => {
      await everyOutput(t, scenario, (text, { args }) => {
        assert.ok(!text.includes(canary), `${args.join(" ")}: ${text}`);
        // An argument, a variable's name and an annotation that every pod of the simulator has.
        for (const word of ["/etc/app/config", "API_TOKEN", "config.hash"]) {
          assert.ok(!text.includes(word), `${args.join(" ")}: ${text}`);
        }
      });
    });
  }
});

describe("a token for metrics is in no output, whatever the server does with it", { skip: needsOpenssl }, () => {
  for (const [what, handle] of [
    ["takes it", (_, response) => answerMetrics(response)],
    ["sends it back", (_, response) => response.writeHead(500, canary, { [canary]: canary }).end(canary)],
    ["sends it back as metrics", (_, response) => response.writeHead(200, { "content-type": canary }).end(canary)],
    ["sends it elsewhere", (_, response) => response.writeHead(307, { location: `http://${canary}/` }).end()],
    ["breaks off", (_, response) => response.destroy()],
  ] as readonly (readonly [string, Parameters<typeof serveMetrics>[1]])[]) {
    test(what, async (t) => {
      const { socket } = await simulate(t, "healthy");
      const sent: (string | undefined)[] = [];
      const { words } = await serveMetrics(t, (request, response) => {
        sent.push(request.headers.authorization);
        handle(request, response);
      });
      const common = ["rate-limit", "--socket", socket, "--node-name", "node-1", ...words, "-v"];
      for (const args of [
        ...outputs.map((output) => [...common, "--output", output]),
        ...profiles.map((profile) => [...common, "--profile", profile]),
        // Wrong usage too.
        [...common, "--key-file", "/key"],
      ]) {
        const { stdout, stderr } = await probe(args, { env: { KUBELET_PROBE_TIMEOUT: "20s" } });
        assert.notEqual(stdout, "");
        assert.ok(!`${stdout}${stderr}`.includes(canary), `${args.join(" ")}: ${stdout}${stderr}`);
      }
      assert.ok(sent.length >= outputs.length + profiles.length);
      assert.deepEqual(new Set(sent), new Set([`Bearer ${canary}`]));
    });
  }
});

test("no variable makes a certificate be taken that --ca-file does not vouch for", {
  skip: needsOpenssl,
}, async (t) => {
  const { socket } = await simulate(t, "healthy");
  const { words } = await serveMetrics(t, (_, response) => answerMetrics(response));
  const trusted = words[words.indexOf("--ca-file") + 1]!;
  const { certFile: other } = makeAuthority(folder(t), "other");
  const env = {
    NODE_TLS_REJECT_UNAUTHORIZED: "0",
    NODE_EXTRA_CA_CERTS: trusted,
    SSL_CERT_FILE: trusted,
    NODE_USE_SYSTEM_CA: "1",
  };
  const common = ["rate-limit", "--socket", socket, "--node-name", "node-1", "-v", "--timeout", "20s"];
  const told = await probe([...common, ...words, "--ca-file", other], { env });
  assert.match(told.stdout, /: the server's certificate is not signed by one of --ca-file \([A-Z_]+\)$/m);
  assert.match((await probe([...common, ...words])).stdout, /^ {2}over [\d.]+ s of metrics: /m);
});

// Controls but the line's end, separators of lines, marks of direction, and what is not drawn.
const raw = /[\p{Cc}\p{Zl}\p{Zp}\p{Cf}\p{Surrogate}]/u;

describe("text of the node never steers an output", () => {
  for (const scenario of ["hostile-text", "long-message", "server-error", "invalid-utf8"]) {
    test(scenario, async (t) => {
      await everyOutput(t, scenario, (text, { args, output, profile }) => {
        const about = `${args.join(" ")}: ${JSON.stringify(text.slice(0, 2000))}`;
        assert.ok(text.endsWith("\n"), about);
        assert.doesNotMatch(text.replaceAll("\n", ""), raw, about);
        if (output === "json") {
          JSON.parse(text);
          // A message of a megabyte is cut before it gets here.
          assert.ok(text.length < 100_000, `${text.length} characters: ${about}`);
          return;
        }
        if (output !== "text") return;
        const lines = text.slice(0, -1).split("\n");
        if (profile !== "nagios") assert.equal(lines.length, 1, about);
        if (profile === "npd") assert.match(lines[0]!, /^[ -~]{1,80}$/, about);
        for (const [at, line] of lines.entries()) {
          const [shown, ...data] = line.split("|");
          assert.ok(profile !== "nagios" || data.length <= (at === 0 ? 1 : 0), about);
          assert.ok(shown!.length <= 410, about);
        }
      });
    });
  }

  test("no color and no escapes, on a terminal's terms too", async (t) => {
    const { socket, expect } = await simulate(t, "failed-pod");
    const plain = await probe(["static-pods", "--socket", socket, "--expect", expect.join(",")]);
    for (const env of [
      { NO_COLOR: "1" },
      { FORCE_COLOR: "3", CLICOLOR_FORCE: "1", COLORTERM: "truecolor", TERM: "xterm-256color" },
      { TERM: "dumb" },
    ] as Record<string, string>[]) {
      const ended = await probe(["static-pods", "--socket", socket, "--expect", expect.join(",")], { env });
      assert.deepEqual(ended, plain);
    }
    assert.doesNotMatch(plain.stdout, /\x1b/);
  });
});

describe("no exit status beside the profile's table", () => {
  const statuses = { nagios: [0, 1, 2, 3], npd: [0, 1, 2], kube: [0, 1] } as const;

  for (const limits of [
    "ulimit -v 60000000",
    "ulimit -n 12",
    "ulimit -s 512",
    "ulimit -f 0",
    "ulimit -t 5",
    "umask 777",
  ]) {
    test(limits, async (t) => {
      const { socket, expect } = await simulate(t, "healthy");
      for (const profile of profiles) {
        const script = `${limits}; exec "$0" all --socket "$1" --expect "$2" --profile ${profile}`;
        const ended = await execute("sh", ["-c", script, binary, socket, expect.join(",")]);
        assert.ok((statuses[profile] as readonly number[]).includes(ended.status!), `${ended.status} ${ended.signal}`);
        assert.equal(ended.status, 0, ended.stdout + ended.stderr);
      }
    });
  }
});
