// The commands beside the checks, as the built binary has them: completion by the shells themselves, selftest, install.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { binary, execute, folder, needs, probe } from "../support.ts";
import { find, needing } from "./consumers.ts";

describe("completion", () => {
  const env = { PATH: `${dirname(binary)}:/usr/bin:/bin` };

  const script = `source <(kubelet-probe completion bash)
complete() { COMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _kubelet_probe; echo "\${COMPREPLY[*]}"; }
`;
  const bash = async (...words: string[]) => {
    const { stdout, stderr, status } = await execute(
      find("bash")!,
      ["-c", `${script}complete "$@"`, "bash", ...words],
      { env },
    );
    assert.equal(`${status} ${stderr}`, "0 ");
    return stdout.trim().split(" ");
  };

  test("bash", { skip: needing("bash", "bash") }, async () => {
    assert.deepEqual(await bash("kubelet-probe", "static"), ["static-pods"]);
    assert.ok((await bash("kubelet-probe", "")).includes("selftest"));
    assert.deepEqual(await bash("kubelet-probe", "ready", "--init"), ["--init-grace"]);
    assert.deepEqual(await bash("kubelet-probe", "ready", "--profile", "n"), ["nagios", "npd"]);
    assert.deepEqual(await bash("kubelet-probe", "ready", "--output", "=", "c"), ["checkmk"]);
    assert.deepEqual(await bash("kubelet-probe", "explain", "SocketM"), ["SocketMissing"]);
    assert.deepEqual(await bash("kubelet-probe", "ready", "--socket", "/dev/nul"), ["/dev/null"]);
    assert.deepEqual(await bash("kubelet-probe", "socket", "--warn"), [""]);
  });

  test("fish", { skip: needing("fish", "fish") }, async (t) => {
    const home = folder(t);
    const fish = async (line: string) => {
      const words = ["--no-config", "-c", `kubelet-probe completion fish | source; complete --do-complete '${line}'`];
      const { stdout, stderr } = await execute(find("fish")!, words, { env: { ...env, HOME: home } });
      assert.equal(stderr, "");
      return stdout
        .trim()
        .split("\n")
        .map((each) => each.split("\t")[0]);
    };
    assert.deepEqual(await fish("kubelet-probe static"), ["static-pods"]);
    assert.deepEqual(await fish("kubelet-probe ready --init"), ["--init-grace"]);
    assert.deepEqual(await fish("kubelet-probe ready --profile n"), ["nagios", "npd"]);
    assert.deepEqual(await fish("kubelet-probe explain SocketM"), ["SocketMissing"]);
  });

  test("zsh", { skip: needing("zsh", "zsh") }, async (t) => {
    const home = folder(t);
    mkdirSync(join(home, "functions"));
    const { stdout } = await probe(["completion", "zsh"]);
    writeFileSync(join(home, "functions", "_kubelet-probe"), stdout);
    // A terminal of zsh's own, in which the key is pressed.
    const driver = `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; fpath=($1/functions \\$fpath); autoload -Uz compinit; compinit -D -u; zstyle ':completion:*' list-separator ''; bindkey '^I' complete-word; echo READY"
zpty -r z line '*READY*READY*'
zpty -w -n z "$2"$'\\t'
sleep 2
zpty -w -n z $'\\x01echo \\x05 :END\\n'
zpty -r z line '*:END*:END*' && print -r -- $line
zpty -d z`;
    for (const [typed, completed] of [
      ["kubelet-probe static", "kubelet-probe static-pods"],
      ["kubelet-probe ready --init", "kubelet-probe ready --init-grace"],
      ["kubelet-probe ready --profile np", "kubelet-probe ready --profile npd"],
      ["kubelet-probe explain SocketM", "kubelet-probe explain SocketMissing"],
    ] as const) {
      const ended = await execute(find("zsh")!, ["-f", "-c", driver, "zsh", home, typed], {
        env: { ...env, HOME: home, TERM: "dumb" },
      });
      assert.ok(ended.stdout.includes(completed), `${typed}: ${ended.stdout}${ended.stderr}`);
    }
  });
});

describe("selftest", () => {
  test("in the binary, every code but those that no simulated node brings about", async (t) => {
    const home = folder(t);
    const { stdout, stderr, status } = await probe(["selftest"], { env: { TMPDIR: home }, boundMs: 120_000 });
    assert.equal(status, 0, stdout);
    assert.equal(stderr, "");
    assert.match(stdout, /all right\n$/);
    assert.deepEqual(readdirSync(home), []);
    for (const line of stdout.split("\n")) assert.ok(line.length <= 100, line);
  });

  test("under the restrictions of a container: no capability, a file system to read only but for its folder", {
    skip: needs.root,
  }, async (t) => {
    const home = folder(t);
    const script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && exec "$@"';
    const words = [
      "setpriv",
      "--bounding-set=-all",
      "--inh-caps=-all",
      "--no-new-privs",
      binary,
      "selftest",
      "--dir",
      home,
    ];
    const ended = await execute("unshare", ["--net", "--mount", "sh", "-c", script, "sh", home, ...words], {
      boundMs: 120_000,
    });
    if (ended.status === 32) return t.skip("this machine lets nobody mount");
    assert.equal(ended.status, 0, `${ended.stdout}${ended.stderr}`);
  });
});

test("install copies the binary, which then runs from there", async (t) => {
  const path = join(folder(t), "kubelet-probe");
  const ended = await probe(["install", path]);
  assert.equal(`${ended.status} ${ended.stdout}`, `0 installed ${path}\n`);
  assert.equal(statSync(path).mode & 0o777, 0o755);
  const copied = await execute(path, ["--version"]);
  assert.match(copied.stdout, /^kubelet-probe \d/);
});
