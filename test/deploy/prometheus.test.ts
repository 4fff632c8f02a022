// The metrics and what watches them, by Prometheus' own tools: promtool judges the format, the rules and the queries of the
// dashboard, and a real node_exporter serves the file.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { parse } from "yaml";
import { parseExposition } from "../reports.ts";
import { age, folder, probe, root, simulate, until } from "../support.ts";
import { daemon, deployed, freePort, needing, tool } from "./consumers.ts";

const skip = needing("promtool", "prometheus");
const skipExporter = needing("prometheus-node-exporter", "prometheus-node-exporter");

async function nodeWith(t: TestContext, scenario: string): Promise<Readonly<Record<string, string>>> {
  const simulator = await simulate(t, scenario);
  try {
    age(simulator.socket, 3600);
  } catch {
    // A node without a socket.
  }
  return {
    KUBELET_PROBE_SOCKET: simulator.socket,
    KUBELET_PROBE_EXPECT: simulator.expect.join(","),
    KUBELET_PROBE_OWNER: String(process.geteuid?.()),
    NODE_NAME: "node-1",
  };
}

/** The names of the metrics a run can have, from runs on a node that is well and on one without a socket. */
async function namesOf(t: TestContext): Promise<Set<string>> {
  const printed = await Promise.all(
    ["healthy", "missing"].map(async (scenario) => {
      const { stdout } = await probe(["all", "--output", "prometheus"], { env: await nodeWith(t, scenario) });
      return parseExposition(stdout).map(({ name }) => name);
    }),
  );
  return new Set([...printed.flat(), "kubelet_probe_findings"]);
}

describe("promtool check metrics", () => {
  for (const scenario of [
    "healthy",
    "missing",
    "initializing",
    "missing-pod",
    "hostile-text",
    "rate-limited",
    "http1",
  ]) {
    test(scenario, { skip }, async (t) => {
      const env = await nodeWith(t, scenario);
      for (const check of ["all", "ready", "static-pods", "rate-limit", "socket"]) {
        const { stdout } = await probe([check, "--output", "prometheus"], { env });
        assert.ok(parseExposition(stdout).length > 8);
        const { status, printed } = tool("promtool", ["check", "metrics"], stdout);
        assert.equal(`${status} ${printed}`, "0 ", stdout);
      }
    });
  }
});

describe("--output-file", () => {
  test("has the metrics, mode 0644, and the standard output the line of the profile", async (t) => {
    const env = await nodeWith(t, "missing-pod");
    const path = join(folder(t), "kubelet_probe.prom");
    const ended = await probe(["all", "--output", "prometheus", "--output-file", path], { env });
    assert.equal(ended.status, 2);
    assert.match(ended.stdout, /^ALL CRITICAL - StaticPodMissing: /);
    assert.equal(ended.stderr, "");
    assert.equal(statSync(path).mode & 0o7777, 0o644);
    assert.ok(parseExposition(readFileSync(path, "utf8")).some(({ labels }) => labels.code === "StaticPodMissing"));
  });

  test("with --quiet the file is written all the same", async (t) => {
    const path = join(folder(t), "kubelet_probe.prom");
    const env = await nodeWith(t, "healthy");
    const ended = await probe(["ready", "-q", "--output", "prometheus", "--output-file", path], { env });
    assert.deepEqual([ended.status, ended.stdout, ended.stderr], [0, "", ""]);
    assert.ok(statSync(path).size > 0);
  });

  test("that cannot be written changes no verdict, in any profile, and is said on the standard error", async (t) => {
    for (const [scenario, statuses] of [
      ["healthy", { nagios: 0, npd: 0, kube: 0 }],
      ["dead", { nagios: 2, npd: 1, kube: 1 }],
      ["http1", { nagios: 3, npd: 2, kube: 1 }],
    ] as const) {
      const env = await nodeWith(t, scenario);
      for (const [profile, status] of Object.entries(statuses)) {
        for (const path of ["/nonexistent/a.prom", "/dev/null", "/proc/a.prom", "/dev/full"]) {
          const words = ["ready", "--profile", profile, "--output", "prometheus", "--output-file", path];
          const ended = await probe(words, { env });
          assert.equal(ended.status, status, `${scenario} ${profile} ${path}`);
          assert.notEqual(ended.stdout, "");
          assert.match(ended.stderr, /^Cannot write \/[^\n]+\n$/);
        }
      }
    }
    assert.ok(statSync("/dev/null").isCharacterDevice());
  });

  test("readers find it whole, however many runs write at once", async (t) => {
    const env = await nodeWith(t, "healthy");
    const home = folder(t);
    const path = join(home, "kubelet_probe.prom");
    const words = ["ready", "--output", "prometheus", "--output-file", path];
    let ended = false;
    const runs = Promise.all(Array.from({ length: 6 }, () => probe(words, { env }))).finally(() => {
      ended = true;
    });
    await until("a file", () => readdirSync(home).includes("kubelet_probe.prom"));
    while (!ended) {
      parseExposition(readFileSync(path, "utf8"));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    for (const { status } of await runs) assert.equal(status, 0);
    assert.deepEqual(readdirSync(home), ["kubelet_probe.prom"]);
  });
});

describe("node_exporter", () => {
  test("serves the file, and its time", { skip: skipExporter }, async (t) => {
    const home = folder(t);
    chmodSync(home, 0o755);
    const textfiles = join(home, "textfiles");
    mkdirSync(textfiles);
    const env = await nodeWith(t, "failed-pod");
    for (const check of ["all", "ready"]) {
      const path = join(textfiles, `kubelet_probe_${check}.prom`);
      await probe([check, "--output", "prometheus", "--output-file", path], { env });
    }
    // What a run that was killed leaves behind is no metric.
    writeFileSync(join(textfiles, ".kubelet_probe_all.prom.4711"), "half of a li");
    const port = await freePort();
    const exporter = daemon(t, "prometheus-node-exporter", [
      `--web.listen-address=127.0.0.1:${port}`,
      "--collector.disable-defaults",
      "--collector.textfile",
      `--collector.textfile.directory=${textfiles}`,
    ]);
    const metrics = await until(`node_exporter\n${exporter.output()}`, () =>
      fetch(`http://127.0.0.1:${port}/metrics`).then(
        (answer) => answer.text(),
        () => undefined,
      ),
    );
    assert.match(metrics, /^node_textfile_scrape_error 0$/m);
    assert.match(metrics, /^node_textfile_mtime_seconds\{file="[^"]*kubelet_probe_all\.prom"\} /m);
    for (const line of [
      /^kubelet_probe_check_status\{check="static-pods",code="StaticPodFailed",run="all",status="CRITICAL"\} 1$/m,
      /^kubelet_probe_check_ok\{check="ready",run="all"\} 1$/m,
      /^kubelet_probe_check_ok\{check="ready",run="ready"\} 1$/m,
      /^kubelet_probe_static_pods_failed\{run="all"\} 1$/m,
      /^kubelet_probe_last_run_timestamp_seconds\{run="ready"\} [\d.e+]+$/m,
    ]) {
      assert.match(metrics, line);
    }
  });
});

describe("rules", () => {
  test("promtool check rules", { skip }, () => {
    for (const name of ["alerts", "recording"]) {
      const { status, printed } = tool("promtool", ["check", "rules", `deploy/prometheus/${name}.yaml`]);
      assert.equal(status, 0, printed);
    }
  });

  test("promtool test rules", { skip }, () => {
    const { status, printed } = tool("promtool", ["test", "rules", "deploy/prometheus/tests.yaml"]);
    assert.equal(status, 0, printed);
    assert.match(printed, /SUCCESS/);
  });

  test("every alert has a test in which it fires", () => {
    const alerts = parse(deployed("prometheus/alerts.yaml")).groups.flatMap(
      ({ rules }: { rules: { alert: string }[] }) => rules.map(({ alert }) => alert),
    );
    const cases: { alertname: string; exp_alerts?: unknown[] }[] = parse(
      deployed("prometheus/tests.yaml"),
    ).tests.flatMap((each: { alert_rule_test: unknown[] }) => each.alert_rule_test);
    const fired = new Set(cases.filter(({ exp_alerts }) => exp_alerts?.length).map(({ alertname }) => alertname));
    assert.deepEqual([...fired].sort(), [...alerts].sort());
  });

  test("ask for metrics that there are", async (t) => {
    const names = await namesOf(t);
    const text = ["alerts", "recording"].map((name) => deployed(`prometheus/${name}.yaml`)).join();
    for (const [name] of text.matchAll(/\bkubelet_probe_(?!nodes|nodes_ok|age|ready_time_seconds:)\w+/g)) {
      if (text.includes(`:${name}:`)) continue;
      assert.ok(names.has(name), name);
    }
  });
});

describe("the dashboard", () => {
  const dashboard = JSON.parse(deployed("grafana/kubelet-probe.json"));
  const expressions: string[] = dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
    targets.map(({ expr }) => expr.replaceAll("$instance", ".*")),
  );

  test("its queries are PromQL", { skip }, (t) => {
    const rules = expressions.map((expr, at) => ({ record: `panel:query:${at}`, expr }));
    const path = join(folder(t), "rules.json");
    // JSON is YAML.
    writeFileSync(path, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
    const { status, printed } = tool("promtool", ["check", "rules", path]);
    assert.equal(status, 0, printed);
    assert.match(printed, new RegExp(`${expressions.length} rules found`));
  });

  test("ask for metrics that there are", async (t) => {
    const names = await namesOf(t);
    for (const expr of expressions) {
      const asked = expr.match(/\bkubelet_probe_\w+/g) ?? [];
      assert.ok(asked.length > 0, expr);
      for (const name of asked) assert.ok(names.has(name), name);
    }
  });

  test("its panels have ids of their own and do not overlap", () => {
    const taken = new Set<string>();
    const ids = new Set<number>();
    for (const { id, gridPos } of dashboard.panels) {
      assert.ok(!ids.has(id));
      ids.add(id);
      assert.ok(gridPos.x + gridPos.w <= 24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x},${y}`), `panel ${id} at ${x},${y}`);
          taken.add(`${x},${y}`);
        }
      }
    }
  });
});

test("docs/prometheus.md describes every metric, and no other", async (t) => {
  const named = [...readFileSync(join(root, "docs/prometheus.md"), "utf8").matchAll(/^\| `(kubelet_probe_\w+)` \|/gm)];
  const documented = named.map(([, name]) => name!).sort();
  const names = [...(await namesOf(t))].filter((name) => !/^kubelet_probe_(watch|socket)_/.test(name));
  assert.deepEqual(documented, [...names].sort());
});
