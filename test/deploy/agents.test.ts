// The configurations for monitoring agents, each run by the agent itself where the machine has it: NRPE behind its own
// client, Icinga 2, Zabbix. Sensu and Checkmk are no packages of Debian: their files are held against the documented form.

import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { parse } from "yaml";
import { parseCheckmk } from "../reports.ts";
import { age, binaryForAll, execute, folder, needs, root, simulate, until } from "../support.ts";
import { daemon, deployed, find, freePort, needing, tool } from "./consumers.ts";

// What each of them has to carry through: exit status and line of every status, and a text at its worst.
const states = [
  ["healthy", 0, /^ALL OK - SocketSecure: /],
  ["missing-pod", 2, /^ALL CRITICAL - StaticPodMissing: kube-system\//],
  ["http1", 3, /^ALL UNKNOWN - NotGrpc: /],
  ["hostile-text", 2, /^ALL CRITICAL - StaticPodFailed: kube-system\//],
] as const;

/** A node, and the words that lead a probe to it: sudo hands no variable on. */
async function nodeWith(t: TestContext, scenario: string) {
  const simulator = await simulate(t, scenario);
  age(simulator.socket, 3600);
  return {
    socket: simulator.socket,
    expect: simulator.expect.join(","),
    words: `--socket ${simulator.socket} --expect ${simulator.expect.join(",")} --node-name node-1`,
  };
}

describe("sudoers", () => {
  for (const path of ["nrpe/kubelet-probe.sudoers", "zabbix/kubelet-probe.sudoers"]) {
    test(`${path} by visudo`, { skip: needing("visudo", "sudo") }, () => {
      const { status, printed } = tool("visudo", ["-cf", join(root, "deploy", path)]);
      assert.equal(status, 0, printed);
    });
  }
});

const skipNrpe =
  needs.root ||
  needing("nrpe", "nagios-nrpe-server") ||
  needing("check_nrpe", "nagios-nrpe-plugin") ||
  needing("sudo", "sudo");

describe("NRPE", () => {
  /** An NRPE on 127.0.0.1 as the user nagios, with the rules for sudo in a view of the file system of its own. */
  async function start(t: TestContext, words: string): Promise<number> {
    const home = folder(t);
    chmodSync(home, 0o755);
    const program = binaryForAll(t);
    const sudoers = join(home, "sudoers.d");
    mkdirSync(sudoers);
    const rules = deployed("nrpe/kubelet-probe.sudoers").replaceAll("/usr/bin/kubelet-probe", program);
    writeFileSync(join(sudoers, "kubelet-probe"), rules, { mode: 0o440 });
    const commands = deployed("nrpe/kubelet-probe.cfg").replaceAll(
      /\/usr\/bin\/kubelet-probe (\S+)/g,
      `${program} $1 ${words}`,
    );
    const port = await freePort();
    const refused = `command[check_refused]=/usr/bin/sudo -n ${program} simulate --socket ${home}/s`;
    writeFileSync(
      join(home, "nrpe.cfg"),
      `server_port=${port}\nserver_address=127.0.0.1\nnrpe_user=nagios\nnrpe_group=nagios\nallowed_hosts=127.0.0.1
dont_blame_nrpe=0\ncommand_timeout=60\npid_file=${home}/nrpe.pid\n${commands}\n${refused}\n`,
    );
    const script = 'mount --bind "$1" /etc/sudoers.d && exec "$2" -c "$3" -f';
    daemon(t, "unshare", ["--mount", "sh", "-c", script, "sh", sudoers, find("nrpe")!, join(home, "nrpe.cfg")]);
    await until("nrpe", async () => (await ask(port, [])).status === 0);
    return port;
  }

  // Not in one go: the node answers from this process.
  async function ask(port: number, args: readonly string[]) {
    const words = ["-H", "127.0.0.1", "-p", String(port), "-t", "60", ...args];
    const { status, stdout, stderr } = await execute(find("check_nrpe")!, words);
    return { status, printed: `${stdout}${stderr}` };
  }

  for (const [scenario, status, line] of states) {
    test(`${scenario}: ${status}`, { skip: skipNrpe }, async (t) => {
      const { words } = await nodeWith(t, scenario);
      const port = await start(t, words);
      const answer = await ask(port, ["-c", "check_kubelet_pods_api"]);
      assert.match(answer.printed, line);
      assert.equal(answer.status, status);
      assert.equal(answer.printed.trimEnd().split("\n").length, 1);
    });
  }

  test("every command answers, and no other command may be run as root", { skip: skipNrpe }, async (t) => {
    const { words, expect } = await nodeWith(t, "healthy");
    const port = await start(t, words.replace(` --expect ${expect}`, ""));
    const names = [...deployed("nrpe/kubelet-probe.cfg").matchAll(/^command\[(\w+)\]/gm)].map(([, name]) => name!);
    assert.ok(names.length >= 3);
    for (const name of names) assert.match((await ask(port, ["-c", name])).printed, /^[A-Z-]+ (OK|WARNING) - /);
    const refused = await ask(port, ["-c", "check_refused"]);
    assert.match(refused.printed, /password is required|not allowed|NRPE: Unable to read output/);
  });
});

describe("Icinga 2", () => {
  const skip = needing("icinga2", "icinga2-bin") || needs.root || needing("sudo", "sudo");
  const skipRun = skip;

  function configuration(t: TestContext, words: { readonly socket: string; readonly expect: string }, writer = "") {
    const home = folder(t);
    for (const name of ["data", "log", "cache", "run", "spool", "perfdata"]) mkdirSync(join(home, name));
    const program = binaryForAll(t);
    const command = deployed("icinga2/kubelet-probe.conf")
      .replaceAll("/usr/bin/kubelet-probe", program)
      .replace("check_interval = 1m", "check_interval = 1s");
    const path = join(home, "icinga2.conf");
    writeFileSync(
      path,
      `const NodeName = "localhost"
const PluginDir = "/usr/lib/nagios/plugins"
include <itl>
object Endpoint NodeName {}
object Zone "main" { endpoints = [ NodeName ] }
object CheckerComponent "checker" {}
${writer}
${command}
object Host "cp-1" {
  check_command = "dummy"
  vars.kubelet = true
  vars.kubelet_probe_socket = "${words.socket}"
  vars.kubelet_probe_expect = "${words.expect}"
  vars.kubelet_probe_node_name = "node-1"
}
object Host "other" { check_command = "dummy" }
`,
    );
    const args = ["DataDir=data", "LogDir=log", "CacheDir=cache", "InitRunDir=run", "SpoolDir=spool"].flatMap(
      (each) => {
        const [name, path] = each.split("=");
        return ["-D", `Configuration.${name}=${home}/${path}`];
      },
    );
    const user = ["-D", "Configuration.RunAsUser=root", "-D", "Configuration.RunAsGroup=root"];
    return { home, args: ["daemon", "-c", path, ...args, ...user] };
  }

  test("icinga2 daemon -C takes the configuration: one service, on the host that has a kubelet", { skip }, (t) => {
    const { args } = configuration(t, { socket: "/s", expect: "a/b" });
    const { status, printed } = tool("icinga2", [...args, "-C"]);
    assert.equal(status, 0, printed);
    assert.match(printed, /Instantiated 1 Service\b/);
    assert.match(printed, /Instantiated 2 Hosts/);
    assert.doesNotMatch(printed, /warning/i);
  });

  for (const [scenario, status, line] of states) {
    test(`a check that it runs: ${scenario}`, { skip: skipRun }, async (t) => {
      const node = await nodeWith(t, scenario);
      const writer = (home: string) => `object PerfdataWriter "perfdata" {
  service_perfdata_path = "${home}/perfdata/service"
  service_temp_path = "${home}/perfdata/.service"
  host_perfdata_path = "${home}/perfdata/host"
  host_temp_path = "${home}/perfdata/.host"
  service_format_template = "STATE=$service.state_id$ OUTPUT=$service.output$ PERFDATA=$service.perfdata$"
  rotation_interval = 1s
}`;
      const { home, args } = configuration(t, node, writer("HOME"));
      const path = join(home, "icinga2.conf");
      writeFileSync(path, readFileSync(path, "utf8").replaceAll("HOME/", `${home}/`));
      const icinga = daemon(t, "icinga2", args);
      const seen = await until(`a check result of Icinga 2\n${icinga.output()}`, () => {
        const files = readdirSync(join(home, "perfdata")).map((name) =>
          readFileSync(join(home, "perfdata", name), "utf8"),
        );
        return /STATE=\d OUTPUT=.*/.exec(files.join("\n"))?.[0];
      });
      const [, state, output, perfdata] = /^STATE=(\d) OUTPUT=(.*) PERFDATA=(.*)$/.exec(seen)!;
      assert.equal(Number(state), status);
      assert.match(output!, line);
      if (status === 0) assert.match(perfdata!, /\bready_pods=10\b/);
    });
  }
});

describe("Zabbix", () => {
  const skip = needing("zabbix_agentd", "zabbix-agent") || needs.root || needing("sudo", "sudo");

  for (const [scenario, exitStatus] of states) {
    test(`zabbix_agentd -t: ${scenario}`, { skip }, async (t) => {
      const { words } = await nodeWith(t, scenario);
      const home = folder(t);
      const program = binaryForAll(t);
      const parameters = deployed("zabbix/kubelet-probe.conf").replaceAll(
        /\/usr\/bin\/kubelet-probe (\S+)/g,
        `${program} $1 ${words}`,
      );
      writeFileSync(join(home, "agent.conf"), `Server=127.0.0.1\nHostname=cp-1\nLogFile=${home}/log\n${parameters}`);
      const { stdout: printed } = await execute(find("zabbix_agentd")!, [
        "-c",
        join(home, "agent.conf"),
        "-t",
        "kubelet.pods_api",
      ]);
      const text = /^kubelet\.pods_api\s+\[t\|([\s\S]*)\]\s*$/.exec(printed)?.[1];
      assert.ok(text, printed);
      assert.equal(JSON.parse(text).exitStatus, exitStatus);
    });
  }

  test("what sudo lets it run is what it runs", () => {
    const commands = [...deployed("zabbix/kubelet-probe.conf").matchAll(/^UserParameter=[^,]+,sudo -n (\S+) (.*)$/gm)];
    const [, program, pattern] = /= (\S+) (\^.*\$)$/m.exec(deployed("zabbix/kubelet-probe.sudoers"))!;
    assert.equal(commands.length, 2);
    for (const [, path, args] of commands) {
      assert.equal(path, program);
      assert.match(args!, new RegExp(pattern!));
    }
    for (const args of ["simulate --socket /s", "all --output json --timeout 2500ms --output-file /etc/passwd"]) {
      assert.doesNotMatch(args, new RegExp(pattern!));
    }
  });
});

test("NRPE's rule for sudo lets no command through that writes or serves", () => {
  const [, pattern] = /kubelet-probe (\^.*\$)$/m.exec(deployed("nrpe/kubelet-probe.sudoers"))!;
  const rule = new RegExp(pattern!);
  assert.match("all", rule);
  assert.match("all --socket /s --expect a/b,c/d --severity SocketDead=OK --warning 1:3", rule);
  for (const args of [
    "all --output-file /etc/passwd",
    "simulate",
    "simulate --socket /s",
    "install /bin/sh",
    "all\nsimulate",
    "allx",
  ]) {
    assert.doesNotMatch(args, rule);
  }
});

describe("Checkmk", () => {
  test("the local check is a script that the agent runs", () => {
    const path = join(root, "deploy/checkmk/kubelet_pods_api");
    assert.equal(statSync(path).mode & 0o111, 0o111);
    assert.match(deployed("checkmk/kubelet_pods_api"), /^#!\/bin\/sh\n/);
  });

  for (const [scenario, state] of states) {
    test(`one line of the documented form: ${scenario}`, async (t) => {
      const { socket, expect } = await nodeWith(t, scenario);
      const script = join(folder(t), "local");
      writeFileSync(script, deployed("checkmk/kubelet_pods_api").replace("/usr/bin/kubelet-probe", binaryForAll(t)));
      chmodSync(script, 0o755);
      chownSync(script, process.getuid!(), process.getgid!());
      const env = { KUBELET_PROBE_SOCKET: socket, KUBELET_PROBE_EXPECT: expect, KUBELET_PROBE_NODE_NAME: "node-1" };
      const { stdout } = await execute(script, [], { env });
      const line = parseCheckmk(stdout);
      assert.equal(line.state, state);
      assert.equal(line.service, "Kubelet Pods API");
    });
  }
});

describe("Sensu", () => {
  const { spec: check, ...head } = parse(deployed("sensu/kubelet-probe.yaml"));

  test("a CheckConfig of core/v2, whose timeout is over the probe's and under its interval", () => {
    assert.equal(`${head.api_version} ${head.type}`, "core/v2 CheckConfig");
    assert.match(head.metadata.name, /^[\w.-]+$/);
    assert.ok(check.timeout > 10 && check.timeout < check.interval);
    assert.equal(check.output_metric_format, "nagios_perfdata");
    assert.ok(check.publish && check.subscriptions.length > 0);
  });

  for (const [scenario, status, line] of states) {
    test(`its command: ${scenario}`, async (t) => {
      const { words } = await nodeWith(t, scenario);
      const command = check.command.replace("sudo -n /usr/bin/kubelet-probe", binaryForAll(t));
      assert.notEqual(command, check.command);
      const ended = await execute("sh", ["-c", `${command} ${words}`]);
      assert.equal(ended.status, status);
      assert.match(ended.stdout, line);
    });
  }
});
