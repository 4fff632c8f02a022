// What README and the quick start show is run: each example behind a `<!-- test: NAME -->` comment, as its reader would use it.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { codes } from "../../lib/codes.ts";
import { exitStatus, type Profile, profiles } from "../../lib/exit.ts";
import { checks } from "../../probes/list.ts";
import { age, binary, execute, folder, probe, root, simulate } from "../support.ts";

const readme = ["README.md", "docs/quick-start.md"].map((page) => readFileSync(join(root, page), "utf8")).join("\n");

/** The fenced block behind a comment. */
function example(name: string): string {
  const found = new RegExp(`<!-- test: ${name} -->\n\`\`\`\\w+\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1];
  assert.ok(found, `README has an example ${name}`);
  return found;
}

/** The example's lines, its changing parts in brackets standing for anything without a space. */
function pattern(text: string): RegExp {
  const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\\\[\w+\\\]/g, "[^\\s;]+");
  return new RegExp(`^${escaped}$`);
}

test("the commands shown print what is shown", async (t) => {
  const { socket } = await simulate(t, "healthy");
  age(socket, 3600);
  const blocks = example("simulate healthy").trim().split(/^\$ /m).filter(Boolean);
  assert.ok(blocks.length >= 2);
  for (const block of blocks) {
    const [command = "", ...output] = block.trimEnd().split("\n");
    const words = command.replace(/^kubelet-probe /, "").split(" ");
    const { stdout } = await probe(words, { env: { KUBELET_PROBE_SOCKET: socket } });
    assert.match(stdout, pattern(`${output.join("\n")}\n`));
  }
});

test("the table of checks names every check, and no other", () => {
  const named = [...readme.matchAll(/^\| `([a-z-]+)` \| /gm)].map(([, name]) => name);
  assert.deepEqual(named, [...checks.map(({ name }) => name), "all"]);
});

test("the table of codes gives every code the exit statuses of the exit table", () => {
  const rows = [...readme.matchAll(/^\| ([A-Z]\w+(?:, \w+)*) \| ([^|]*) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)];
  const seen = new Map<string, string[]>();
  for (const [, names = "", , ...statuses] of rows) {
    for (const name of names.split(", ")) seen.set(name, statuses);
  }
  for (const [code, { status }] of Object.entries(codes)) {
    const cells = seen.get(code);
    assert.ok(cells, `README has ${code}`);
    profiles.forEach((profile: Profile, column) => {
      const first = Number(cells[column]!.split(",")[0]);
      assert.equal(first, exitStatus({ status, code: code as keyof typeof codes }, { profile }), `${code} ${profile}`);
    });
  }
});

test("node-problem-detector: the rule's arguments give its three statuses, and the message of each state", async (t) => {
  const config = JSON.parse(example("npd"));
  const [rule] = config.rules;
  assert.equal(rule.condition, config.conditions[0].type);
  assert.equal(config.conditions[0].message, codes.StaticPodsHealthy.brief);
  // The monitor refuses a rule whose timeout is over its own.
  assert.ok(Number.parseFloat(rule.timeout) <= Number.parseFloat(config.pluginConfig.timeout));
  for (const [scenario, status, message] of [
    ["healthy", 0, "StaticPodsHealthy"],
    ["missing-pod", 1, /^StaticPodMissing: kube-system\/\S+$/],
    ["initializing", 2, /^InventoryUnavailable: .* \(Initializing\)$/],
  ] as const) {
    const simulator = await simulate(t, scenario);
    age(simulator.socket, 3600);
    const env = { KUBELET_PROBE_SOCKET: simulator.socket, KUBELET_PROBE_EXPECT: simulator.expect.join(",") };
    const ended = await probe(rule.args, { env });
    assert.equal(ended.status, status, ended.stdout);
    assert.match(ended.stdout.trim(), typeof message === "string" ? pattern(message) : message);
    assert.ok(Buffer.byteLength(ended.stdout.trim()) <= config.pluginConfig.max_output_length);
  }
});

test("cron: nothing is printed when all is well, and the verdict when not", async (t) => {
  const fields = /^(?:\S+ ){5}root \/usr\/local\/bin\/kubelet-probe (.*)\n$/.exec(example("cron"));
  assert.ok(fields, "a system crontab's line: five times, a user, a command");
  for (const [scenario, printed] of [
    ["healthy", /^$/],
    ["missing-pod", /^ALL CRITICAL - StaticPodMissing: /],
  ] as const) {
    const simulator = await simulate(t, scenario);
    age(simulator.socket, 3600);
    const env = { KUBELET_PROBE_SOCKET: simulator.socket, KUBELET_PROBE_EXPECT: simulator.expect.join(",") };
    // As cron does it.
    const { stdout } = await execute("sh", ["-c", `${binary} ${fields[1]}`], { env });
    assert.match(stdout, printed);
  }
});

test("pre-commit: manifests in git are judged without a kubelet", async (t) => {
  const manifest = (text: string) => `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: ${text}\n`;
  const good = manifest("{containers: [{name: web, image: registry.test/web:1}]}");
  for (const [files, status] of [
    [{ "web.yaml": good, README: "how to" }, 0],
    [{ "web.yaml": good, "web.yaml.orig": good }, 1],
    [{ "web.yaml": manifest("{containers: [{name: web}]}") }, 2],
    [{ README: "how to" }, 2],
  ] as const) {
    const repository = folder(t);
    mkdirSync(join(repository, "manifests"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(repository, "manifests", name), text);
    const command = example("pre-commit").replace("kubelet-probe", binary);
    const ended = await execute("sh", ["-c", command], { cwd: repository });
    assert.equal(ended.status, status, ended.stdout);
  }
});

test("exec probes: a kubelet that is coming up is not ready, and no reason for a restart", async (t) => {
  const manifest = parse(example("exec-probe"));
  for (const [scenario, startup, readiness, liveness] of [
    ["healthy", 0, 0, 0],
    ["initializing", 1, 1, 0],
    ["grpc-8", 1, 0, 0],
    ["dead", 1, 1, 1],
  ] as const) {
    const { socket } = await simulate(t, scenario);
    for (const [name, status] of Object.entries({ startup, readiness, liveness })) {
      const [program, ...args] = manifest[`${name}Probe`].exec.command;
      assert.equal(program, "/kubelet-probe");
      const ended = await probe(args, { env: { KUBELET_PROBE_SOCKET: socket } });
      assert.equal(ended.status, status, `${scenario} ${name}: ${ended.stdout}`);
    }
  }
});

test("the library's example lists pods, and tells a failure from an empty list", async (t) => {
  for (const [scenario, stdout, stderr] of [
    ["healthy", /^kube-system\/etcd-node-1 Running$/m, /^$/],
    ["initializing", /^$/, /^Initializing: /],
  ] as const) {
    const { socket } = await simulate(t, scenario);
    const file = join(folder(t), "example.ts");
    const text = example("library")
      .replace("./mod.ts", join(root, "mod.ts"))
      .replace("/var/lib/kubelet/pods-api/pods-api.sock", socket);
    writeFileSync(file, text);
    const ended = await execute(process.execPath, [file]);
    assert.equal(ended.status, 0, ended.stderr);
    assert.match(ended.stdout, stdout);
    assert.match(ended.stderr.replace(/^\(node:.*\n.*--trace-warnings.*\n/gm, ""), stderr);
  }
});
