// The manifests, by Kubernetes' own code where dist/kubernetes-check is built (kustomize, strict decoding, the API server's
// validation), and by what they make the kubelet run.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { parseExposition } from "../reports.ts";
import { age, baseEnvironment, binary, cleanUp, execute, folder, probe, root, simulate, until } from "../support.ts";
import { deployed } from "./consumers.ts";

const program = join(root, "dist/kubernetes-check");
const skip = existsSync(program) ? false : "needs Kubernetes' own code: npm run build:kubelet";

interface Judged {
  readonly from: string;
  readonly kind: string;
  readonly name: string;
  readonly errors: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: a manifest
  readonly object: any;
}

function judge(...paths: string[]): Judged[] {
  const { stdout, stderr } = spawnSync(program, paths, { cwd: root, encoding: "utf8" });
  assert.notEqual(stdout, "", stderr);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const onlyReads = { readOnly: true, mountPath: "/var/lib/kubelet/pods-api" };

describe("the Kustomize base", () => {
  test("is built, and taken by the API server's validation", { skip }, () => {
    const judged = judge("deploy/kustomize/base");
    assert.deepEqual(
      judged.map(({ kind, name, errors }) => [kind, name, errors]),
      [
        ["Namespace", "kubelet-probe", []],
        ["DaemonSet", "kubelet-probe", []],
      ],
    );
    const [, { object }] = judged as [Judged, Judged];
    assert.equal(object.metadata.namespace, "kubelet-probe");
    assert.deepEqual(object.spec.selector.matchLabels, object.spec.template.metadata.labels);
  });

  test("what is wrong in a manifest would be noticed", { skip }, (t) => {
    const home = folder(t);
    for (const [name, from, to, error] of [
      ["unknown", "readOnlyRootFilesystem", "readOnlyRootFS", /unknown field/],
      ["invalid", "cpu: 500m", "cpu: 5m", /must be less than or equal to cpu limit/],
      ["mount", "name: textfile\n          hostPath", "name: other\n          hostPath", /Not found: "textfile"/],
    ] as const) {
      const copy = join(home, name);
      cpSync(join(root, "deploy/kustomize/base"), copy, { recursive: true });
      const path = join(copy, "daemonset.yaml");
      const text = readFileSync(path, "utf8");
      assert.ok(text.includes(from), from);
      writeFileSync(path, text.replace(from, to));
      const { errors } = judge(copy).find(({ kind }) => kind === "DaemonSet")!;
      assert.match(errors.join("\n"), error);
    }
  });

  const daemonSet = parse(deployed("kustomize/base/daemonset.yaml"));
  const pod = daemonSet.spec.template.spec;
  const [container] = pod.containers;

  test("mounts the folder of the socket, to be read only; nothing but the textfiles can be written", () => {
    assert.ok(
      container.volumeMounts.some(
        (mount: object) =>
          JSON.stringify(mount) ===
          JSON.stringify({ name: "pods-api", mountPath: onlyReads.mountPath, readOnly: true }),
      ),
    );
    const writable = container.volumeMounts.filter(({ readOnly }: { readOnly?: boolean }) => !readOnly);
    assert.deepEqual(
      writable.map(({ name }: { name: string }) => name),
      ["textfile"],
    );
    assert.ok(pod.volumes.every(({ hostPath }: { hostPath?: { path: string } }) => !hostPath?.path.endsWith(".sock")));
    assert.equal(pod.automountServiceAccountToken, false);
    assert.deepEqual(container.securityContext.capabilities, { drop: ["ALL"] });
  });

  test("its loop writes the metrics again and again, while the kubelet is there and when it is not, and ends when told to", async (t) => {
    const { home, socket, expect, stop } = await fakeNode(t);
    const file = join(home, "textfile", "kubelet_probe.prom");
    const env: Record<string, string> = { ...baseEnvironment, NODE_NAME: "node-1", INTERVAL_SECONDS: "0.1" };
    for (const { name, value } of container.env)
      if (value !== undefined && name !== "INTERVAL_SECONDS") env[name] = value;
    Object.assign(env, {
      KUBELET_PROBE_OUTPUT_FILE: file,
      KUBELET_PROBE_MANIFESTS: join(home, "manifests"),
      KUBELET_PROBE_EXPECT: expect,
      KUBELET_PROBE_SOCKET: socket,
      KUBELET_PROBE_OWNER: String(process.geteuid?.()),
    });
    assert.ok(container.env.some(({ name }: { name: string }) => name === "KUBELET_PROBE_OUTPUT_FILE"));
    const [shell, ...args] = container.command;
    const child = spawn(
      shell,
      args.map((arg: string) => arg.replaceAll("/kubelet-probe", binary)),
      { env, detached: true, stdio: "ignore" },
    );
    const ended = new Promise((resolve) => child.once("close", (status, signal) => resolve(signal ?? status)));
    cleanUp(t, () => {
      try {
        process.kill(-child.pid!, "SIGKILL");
      } catch {
        // Ended meanwhile.
      }
    });
    const codeNow = () => {
      if (!existsSync(file)) return undefined;
      const series = parseExposition(readFileSync(file, "utf8"));
      return series.find(({ name }) => name === "kubelet_probe_status")?.labels.code;
    };
    await until("metrics of a node that is well", () => codeNow() === "SocketSecure");
    // A kubelet that stops leaves its socket file behind.
    await stop();
    await until("metrics of a node without a kubelet", () => codeNow() === "SocketDead");
    child.kill("SIGTERM");
    assert.equal(await ended, 0);
  });

  async function fakeNode(t: TestContext) {
    const home = folder(t);
    for (const name of ["textfile", "manifests"]) mkdirSync(join(home, name));
    const simulator = await simulate(t, "healthy");
    age(simulator.socket, 3600);
    return { home, socket: simulator.socket, expect: simulator.expect.join(","), stop: () => simulator.close() };
  }
});

describe("exec probes of an agent", () => {
  const agent = parse(deployed("exec-probes/agent.yaml"));
  const pod = agent.spec.template.spec;
  const [container] = pod.containers;

  test("the DaemonSet is taken by the API server's validation", { skip }, () => {
    const [judged] = judge("deploy/exec-probes/agent.yaml");
    assert.deepEqual(judged?.errors, []);
  });

  test("the probe's deadline is inside the kubelet's for a probe, which is 1 s where nothing is said", () => {
    for (const name of ["startupProbe", "readinessProbe", "livenessProbe"]) {
      assert.equal(container[name].timeoutSeconds, undefined);
      assert.ok(container[name].exec.command.includes("kube"));
      assert.ok(!container[name].exec.command.includes("--timeout"));
    }
  });

  for (const [scenario, startup, readiness, liveness] of [
    ["healthy", 0, 0, 0],
    // Liveness passes: a new container would find the same kubelet.
    ["initializing", 1, 1, 0],
    ["initializing-old", 1, 1, 0],
    ["rate-limited", 1, 0, 0],
    ["dead", 1, 1, 1],
    ["missing", 1, 1, 1],
    ["hang", 1, 1, 1],
    ["wrong-service", 1, 1, 0],
    ["server-error", 1, 1, 0],
  ] as const) {
    test(`${scenario}: startup ${startup}, readiness ${readiness}, liveness ${liveness}`, async (t) => {
      const { socket } = await simulate(t, scenario);
      for (const [name, status] of Object.entries({ startup, readiness, liveness })) {
        const [path, ...args] = container[`${name}Probe`].exec.command;
        assert.equal(path, `${container.volumeMounts[0].mountPath}/kubelet-probe`);
        const ended = await probe(args, { env: { KUBELET_PROBE_SOCKET: socket } });
        assert.equal(ended.status, status, `${name}: ${ended.stdout}`);
        assert.match(ended.stdout, /^[^\n]+\n$/);
      }
    });
  }

  test("the init container copies the binary to where the probes look for it", async (t) => {
    const [init] = pod.initContainers;
    assert.equal(init.volumeMounts[0].name, container.volumeMounts[0].name);
    const home = folder(t);
    const [, ...args] = init.command.map((word: string) => word.replace(init.volumeMounts[0].mountPath, home));
    const ended = await probe(args);
    assert.equal(ended.status, 0, ended.stdout);
    const copied = await execute(join(home, "kubelet-probe"), ["--version"]);
    assert.equal(copied.stdout, (await probe(["--version"])).stdout);
  });
});

describe("node-problem-detector's DaemonSet", () => {
  // As its project deploys it, in what the patch touches.
  const upstream = {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "node-problem-detector", namespace: "kube-system", labels: { app: "node-problem-detector" } },
    spec: {
      selector: { matchLabels: { app: "node-problem-detector" } },
      template: {
        metadata: { labels: { app: "node-problem-detector" } },
        spec: {
          containers: [
            {
              name: "node-problem-detector",
              image: "registry.k8s.io/node-problem-detector/node-problem-detector:v1",
              command: [
                "/node-problem-detector",
                "--logtostderr",
                "--config.system-log-monitor=/config/kernel-monitor.json",
              ],
              securityContext: { privileged: true },
              resources: { limits: { cpu: "10m", memory: "80Mi" }, requests: { cpu: "10m", memory: "80Mi" } },
              env: [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
              volumeMounts: [{ name: "config", mountPath: "/config", readOnly: true }],
            },
          ],
          volumes: [{ name: "config", configMap: { name: "node-problem-detector-config" } }],
        },
      },
    },
  };

  test("with the component: the folder read-only, the configuration, the flag, room to run", { skip }, (t) => {
    const home = folder(t);
    cpSync(join(root, "deploy/npd"), join(home, "npd"), { recursive: true });
    writeFileSync(join(home, "npd.json"), JSON.stringify(upstream));
    const kustomization = {
      apiVersion: "kustomize.config.k8s.io/v1beta1",
      kind: "Kustomization",
      resources: ["npd.json"],
      components: ["npd"],
      images: [
        {
          name: "registry.k8s.io/node-problem-detector/node-problem-detector",
          newName: "registry.example/npd",
          newTag: "1",
        },
      ],
    };
    writeFileSync(join(home, "kustomization.yaml"), JSON.stringify(kustomization));
    const judged = judge(home);
    assert.deepEqual(judged.map(({ kind, errors }) => [kind, errors]).sort(), [
      ["ConfigMap", []],
      ["DaemonSet", []],
    ]);
    const configMap = judged.find(({ kind }) => kind === "ConfigMap")!;
    const { spec } = judged.find(({ kind }) => kind === "DaemonSet")!.object.spec.template;
    const [container] = spec.containers;
    assert.equal(container.image, "registry.example/npd:1");
    assert.deepEqual(
      JSON.parse(configMap.object.data["kubelet-probe.json"]),
      JSON.parse(deployed("npd/kubelet-probe.json")),
    );
    const config = container.volumeMounts.find(({ name }: { name: string }) => name === "kubelet-probe");
    assert.equal(container.command.at(-1), `--config.custom-plugin-monitor=${config.mountPath}/kubelet-probe.json`);
    assert.equal(container.command.length, 4);
    assert.equal(
      spec.volumes.find(({ name }: { name: string }) => name === "kubelet-probe").configMap.name,
      configMap.name,
    );
    const socket = container.volumeMounts.find(
      ({ mountPath }: { mountPath: string }) => mountPath === onlyReads.mountPath,
    );
    assert.equal(socket.readOnly, true);
    assert.deepEqual(container.resources.limits, { cpu: "200m", memory: "200Mi" });
    // What was there stays.
    assert.ok(container.volumeMounts.some(({ name }: { name: string }) => name === "config"));
  });
});

describe("the NodeReadinessRule", () => {
  const [document, ...more] = parseAllDocuments(deployed("node-readiness/rule.yaml"));
  const rule = document!.toJS();

  test("is of the form readiness.node.x-k8s.io/v1alpha1 has", () => {
    assert.equal(more.length, 0);
    assert.equal(`${rule.apiVersion} ${rule.kind}`, "readiness.node.x-k8s.io/v1alpha1 NodeReadinessRule");
    const { conditions, enforcementMode, taint, nodeSelector, dryRun, ...others } = rule.spec;
    assert.deepEqual(others, {});
    assert.ok(["bootstrap-only", "continuous"].includes(enforcementMode));
    assert.ok(conditions.length >= 1 && conditions.length <= 32);
    for (const { type, requiredStatus } of conditions) {
      assert.match(type, /^.{1,316}$/);
      // A string: without quotes False would be a boolean, which the API refuses.
      assert.ok(["True", "False", "Unknown"].includes(requiredStatus), `${typeof requiredStatus} ${requiredStatus}`);
    }
    assert.match(taint.key, /^readiness\.k8s\.io\/[a-z0-9.-]{1,63}$/);
    assert.ok(["NoSchedule", "PreferNoSchedule", "NoExecute"].includes(taint.effect));
    assert.ok(Object.keys(nodeSelector.matchLabels).length > 0);
    assert.equal(typeof dryRun, "boolean");
  });

  test("waits for the conditions that node-problem-detector sets", () => {
    const config = JSON.parse(deployed("node-readiness/npd.json"));
    assert.deepEqual(
      rule.spec.conditions.map(({ type }: { type: string }) => type),
      config.conditions.map(({ type }: { type: string }) => type),
    );
    for (const { requiredStatus } of rule.spec.conditions) assert.equal(requiredStatus, "False");
  });
});

describe("images", () => {
  for (const path of ["npd/Containerfile", "image/Containerfile"]) {
    test(`${path}: no command goes through a shell, the entry point least of all`, () => {
      const lines = deployed(path)
        .split("\n")
        .filter((line) => /^(RUN|ENTRYPOINT|CMD) /.test(line));
      assert.ok(lines.length > 0);
      for (const line of lines) assert.doesNotThrow(() => JSON.parse(line.replace(/^\w+ /, "")), line);
    });
  }

  test("image/Containerfile takes the names that the build gives", () => {
    const build = readFileSync(join(root, "scripts/build.mjs"), "utf8");
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const text = deployed("image/Containerfile");
    assert.equal([...text.matchAll(/^ARG VERSION=(.*)$/gm)].filter(([, each]) => each === version).length, 2);
    for (const [, target] of text.matchAll(/kubelet-probe-\$\{VERSION\}-(\S+)/g))
      assert.ok(build.includes(`name: "${target}"`));
  });
});
