// The packages for Debian and for RPM's distributions: the same files but for what each has elsewhere, the same bytes from
// two runs, installed, run and removed by dpkg and rpm themselves.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { binary, execute, folder, needs, root, simulate } from "../support.ts";
import { find, needing, tool } from "./consumers.ts";

const { version, dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const digest = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

const names = { deb: `kubelet-probe_${version}-1_amd64.deb`, rpm: `kubelet-probe-${version}-1.x86_64.rpm` } as const;
type Format = keyof typeof names;
const skips = {
  deb: needing("dpkg-deb", "dpkg"),
  rpm: needing("rpmbuild", "rpm"),
} as const satisfies Record<Format, unknown>;

let home: string;
const path = (format: Format) => join(home, names[format]);

async function pack(format: Format, out: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const words = ["--binary", binary, "--arch", "amd64", "--format", format, "--out", out, "--fast"];
  const packed = await execute(process.execPath, [join(root, "scripts/package.mjs"), ...words], {
    env,
    boundMs: 300_000,
  });
  assert.equal(packed.status, 0, packed.stderr);
  return join(out, names[format]);
}

before(async () => {
  home = mkdtempSync(join(tmpdir(), "kp-packages-"));
  for (const format of ["deb", "rpm"] as const) if (skips[format] === false) await pack(format, home);
});
after(() => rmSync(home, { recursive: true, force: true }));

/** The line that a node without the gate gets. */
const gateLine =
  "SocketMissing: No socket at /var/lib/kubelet/pods-api/pods-api.sock: is the kubelet's feature gate PodsAPI on? See kubelet-probe explain SocketMissing";

test("the page on installation shows it", () => {
  assert.ok(readFileSync(join(root, "docs/install.md"), "utf8").split("\n").includes(gateLine));
});

for (const format of ["deb", "rpm"] as const) {
  test(`${format}: packed twice, by another umask, in another place, it has the same bytes`, {
    skip: skips[format],
  }, async (t) => {
    const mask = process.umask(0o077);
    try {
      // One thread of xz, and what a user may have set up.
      const own = folder(t);
      writeFileSync(join(own, ".rpmmacros"), "%vendor Somebody\n%_binary_payload w1.gzdio\n");
      const env = { TZ: "Asia/Tokyo", HOME: own, DPKG_DEB_THREADS_MAX: "1" };
      assert.equal(digest(await pack(format, join(folder(t), "elsewhere"), env)), digest(path(format)));
    } finally {
      process.umask(mask);
    }
  });
}

test("deb and rpm install the same files, but for these", { skip: skips.deb || skips.rpm }, () => {
  const inDeb = tool("dpkg-deb", ["--contents", path("deb")])
    .printed.split("\n")
    .filter((line) => line !== "" && !line.startsWith("d"))
    .map((line) => line.replace(/ -> .*/, "").replace(/^.* \.\//, "/"));
  const inRpm = tool("rpm", ["-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", path("rpm")])
    .printed.split("\n")
    .filter((line) => line !== "" && !line.startsWith("d"))
    .map((line) => line.split(" ")[1]!);
  assert.ok(inDeb.includes("/usr/bin/kubelet-probe") && inRpm.includes("/usr/bin/kubelet-probe"));
  const units = ["kubelet-probe-failed@.service", "kubelet-probe.service", "kubelet-probe.timer"];
  const plugins = ["check_kubelet_pods_api", "check_kubelet_ready", "check_kubelet_static_pods"];
  assert.deepEqual(inDeb.filter((file) => !inRpm.includes(file)).sort(), [
    ...units.map((name) => `/lib/systemd/system/${name}`),
    "/usr/share/doc/kubelet-probe/changelog.Debian.gz",
    "/usr/share/doc/kubelet-probe/copyright",
    "/usr/share/lintian/overrides/kubelet-probe",
    "/usr/share/zsh/vendor-completions/_kubelet-probe",
  ]);
  assert.deepEqual(inRpm.filter((file) => !inDeb.includes(file)).sort(), [
    ...units.map((name) => `/usr/lib/systemd/system/${name}`),
    ...plugins.map((name) => `/usr/lib64/nagios/plugins/${name}`),
    "/usr/share/licenses/kubelet-probe/LICENSE",
    "/usr/share/zsh/site-functions/_kubelet-probe",
  ]);
});

describe("the Debian package", { skip: skips.deb }, () => {
  test("lintian finds no error in it", { skip: needing("lintian", "lintian") }, () => {
    const { printed } = tool("lintian", ["--fail-on", "none", path("deb")]);
    assert.deepEqual(
      printed.split("\n").filter((line) => line.startsWith("E: ")),
      [],
    );
  });

  const skip =
    needs.root ||
    (existsSync("/usr/bin/kubelet-probe") ? "there is a /usr/bin/kubelet-probe that is not the tests' own" : false);

  test("install, run, remove: nothing is enabled, nothing is left", { skip }, async (t) => {
    const installed = tool("dpkg", ["--install", path("deb")]);
    try {
      assert.equal(installed.status, 0, installed.printed);
      if (!existsSync("/var/lib/kubelet")) assert.ok(installed.printed.split("\n").includes(gateLine));
      const ran = await execute("/usr/bin/kubelet-probe", ["--version"]);
      assert.match(ran.stdout, new RegExp(`^kubelet-probe ${version} `));

      // Under Nagios' name it follows Nagios' rules, whatever else it is told.
      const { socket, expect } = await simulate(t, "failed-pod");
      const link = "/usr/lib/nagios/plugins/check_kubelet_static_pods";
      const words = ["--socket", socket, "--expect", expect.join(",")];
      const ended = await execute(link, words, { env: { KUBELET_PROBE_PROFILE: "npd" } });
      assert.equal(ended.status, 2);
      assert.match(ended.stdout, /^STATIC-PODS CRITICAL - StaticPodFailed: .* \| unhealthy=1/);

      if (find("systemd-analyze") !== undefined) {
        const verified = tool("systemd-analyze", [
          "verify",
          "--man=no",
          "kubelet-probe.service",
          "kubelet-probe.timer",
        ]);
        assert.deepEqual(
          verified.printed.split("\n").filter((line) => line.includes("kubelet-probe")),
          [],
        );
      }
      for (const wanted of ["timers.target.wants", "multi-user.target.wants"]) {
        const at = join("/etc/systemd/system", wanted);
        if (existsSync(at)) assert.ok(!readdirSync(at).some((entry) => entry.includes("kubelet-probe")));
      }
      const listed = tool("dpkg", ["--verify", "kubelet-probe"]);
      // Some installations of Debian leave documentation out.
      assert.deepEqual(
        listed.printed.split("\n").filter((line) => line !== "" && !/\/usr\/share\/(doc|man)\//.test(line)),
        [],
      );
    } finally {
      const removed = tool("dpkg", ["--purge", "kubelet-probe"]);
      assert.equal(removed.status, 0, removed.printed);
    }
    for (const file of ["/usr/bin/kubelet-probe", "/etc/default/kubelet-probe", "/usr/share/doc/kubelet-probe"]) {
      assert.ok(!existsSync(file), file);
    }
  });

  test("its SBOM names every library of the binary and the runtime, with checksums of the lock file", async (t) => {
    const tree = folder(t);
    tool("dpkg-deb", ["--extract", path("deb"), tree]);
    const unpacked = await execute("gzip", [
      "-dc",
      join(tree, "usr/share/doc/kubelet-probe/kubelet-probe.cdx.json.gz"),
    ]);
    const bom = JSON.parse(unpacked.stdout);
    assert.equal(`${bom.bomFormat} ${bom.specVersion}`, "CycloneDX 1.5");
    assert.match(
      bom.serialNumber,
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    const listed: string[] = bom.components.map(({ name }: { name: string }) => name);
    for (const name of [...Object.keys(dependencies), "bun"]) assert.ok(listed.includes(name), name);
    const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
    for (const component of bom.components) {
      const { name, hashes, licenses, purl } = component;
      const entry = lock.packages[`node_modules/${name}`];
      assert.equal(component.version, entry.version);
      assert.equal(Buffer.from(hashes[0].content, "hex").toString("base64"), entry.integrity.replace(/^sha\d+-/, ""));
      assert.ok(licenses.length > 0, name);
      assert.equal(purl, `pkg:npm/${name.replace("@", "%40")}@${entry.version}`);
    }
  });
});

describe("the RPM package", { skip: skips.rpm }, () => {
  test("its digests are right, and rpmlint finds no error but that it has no signature of its own", {
    skip: needing("rpmlint", "rpmlint"),
  }, () => {
    const checked = tool("rpm", ["-K", path("rpm")]);
    assert.equal(`${checked.status} ${checked.printed}`, `0 ${path("rpm")}: digests OK\n`);
    const { printed } = tool("rpmlint", [path("rpm")]);
    assert.match(printed, /1 packages and 0 specfiles checked/);
    assert.deepEqual(
      printed.split("\n").filter((line) => line.includes(": E: ") && !line.includes("no-signature")),
      [],
    );
  });

  test("it needs glibc 2.17, a shell for its scripts, and nothing else", () => {
    const needed = tool("rpm", ["-qp", "--requires", path("rpm")])
      .printed.trim()
      .split("\n");
    const glibc = /^(?:ld-linux-x86-64\.so\.2|lib(?:c\.so\.6|m\.so\.6|dl\.so\.2|pthread\.so\.0))\((?:GLIBC_[\d.]+)?\)/;
    const own = [`config(kubelet-probe) = ${version}-1`, "/bin/sh"];
    assert.deepEqual(
      needed.filter((line) => !glibc.test(line) && !line.startsWith("rpmlib(") && !own.includes(line)),
      [],
    );
    const minors = needed.flatMap((line) => /GLIBC_2\.(\d+)/.exec(line)?.[1] ?? []).map(Number);
    assert.equal(Math.max(...minors), 17);
  });

  test("install, run, upgrade, remove: nothing is enabled, what was set stays, the timer ends", {
    skip: needs.root || needing("unshare", "util-linux"),
  }, async (t) => {
    const system = scratchSystem(t);
    // With /proc and /dev, as on a machine, gone with the command.
    const rpm = (...words: string[]) => {
      const script = `mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec rpm --root "$0" --dbpath /var/lib/rpm "$@"`;
      const { status, printed } = tool("unshare", ["--mount", "sh", "-c", script, system, ...words]);
      // Debian's rpm says first that one ought to use something else.
      const lines = printed.split("\n").filter((line) => line !== "" && !line.startsWith("rpm: "));
      return { status, lines };
    };
    const systemctl = () => readFileSync(join(system, "systemctl.log"), "utf8").trim().split("\n");

    assert.deepEqual(rpm("-i", "--nodeps", path("rpm")), { status: 0, lines: [gateLine] });
    assert.deepEqual(systemctl(), ["daemon-reload"]);
    assert.deepEqual(rpm("-V", "--nodeps", "kubelet-probe"), { status: 0, lines: [] });
    const ran = await execute(join(system, "usr/bin/kubelet-probe"), ["--version"]);
    assert.match(ran.stdout, new RegExp(`^kubelet-probe ${version} `));
    const { socket, expect } = await simulate(t, "failed-pod");
    for (const lib of ["lib64", "lib"]) {
      const link = join(system, `usr/${lib}/nagios/plugins/check_kubelet_static_pods`);
      const ended = await execute(link, ["--socket", socket, "--expect", expect.join(",")], {
        env: { KUBELET_PROBE_PROFILE: "npd" },
      });
      assert.equal(ended.status, 2);
      assert.match(ended.stdout, /^STATIC-PODS CRITICAL - StaticPodFailed: /);
    }

    const configuration = join(system, "etc/default/kubelet-probe");
    appendFileSync(configuration, "KUBELET_PROBE_EXPECT=kube-system/etcd-cp-1\n");
    assert.deepEqual(rpm("-U", "--replacepkgs", "--nodeps", path("rpm")), { status: 0, lines: [gateLine] });
    assert.match(readFileSync(configuration, "utf8"), /etcd-cp-1/);
    assert.deepEqual(new Set(systemctl()), new Set(["daemon-reload"]));

    writeFileSync(join(system, "systemctl.log"), "");
    const saved = "warning: /etc/default/kubelet-probe saved as /etc/default/kubelet-probe.rpmsave";
    assert.deepEqual(rpm("-e", "kubelet-probe"), { status: 0, lines: [saved] });
    assert.deepEqual(systemctl(), ["--no-reload disable --now kubelet-probe.timer", "daemon-reload"]);
    const left = readdirSync(system, { recursive: true, encoding: "utf8" }).filter((file) => file.includes("kubelet"));
    assert.deepEqual(left, ["etc/default/kubelet-probe.rpmsave"]);
  });

  test("into a folder without /proc, as of an image in the making, it is installed without a word", {
    skip: needs.root,
  }, (t) => {
    const system = scratchSystem(t);
    const words = ["--root", system, "--dbpath", "/var/lib/rpm", "-i", "--nodeps", path("rpm")];
    const { status, printed } = tool("rpm", words);
    assert.equal(status, 0, printed);
    assert.deepEqual(
      printed.split("\n").filter((line) => line !== "" && !line.startsWith("rpm: ")),
      [],
    );
  });
});

/** The root folder of a system that has a shell, what the binary needs, and a systemctl that writes down what it is told. */
function scratchSystem(t: Parameters<typeof folder>[0]): string {
  const system = folder(t);
  for (const name of ["proc", "dev", "run/systemd/system"]) mkdirSync(join(system, name), { recursive: true });
  const libraries = [...tool("ldd", ["/bin/sh", binary]).printed.matchAll(/(\/lib\S+)(?= \(0x)/g)].map(([, at]) => at!);
  for (const file of ["/bin/sh", ...new Set(libraries)]) {
    mkdirSync(dirname(join(system, file)), { recursive: true });
    copyFileSync(file, join(system, file));
  }
  writeFileSync(join(system, "bin/systemctl"), '#!/bin/sh\necho "$@" >> /systemctl.log\n');
  chmodSync(join(system, "bin/systemctl"), 0o755);
  return system;
}

const release = join(root, "dist/release");
const arm64 = {
  deb: join(release, `kubelet-probe_${version}-1_arm64.deb`),
  rpm: join(release, `kubelet-probe-${version}-1.aarch64.rpm`),
};
describe("a whole release", {
  skip: existsSync(arm64.deb) && existsSync(arm64.rpm) ? false : "needs npm run build:all and scripts/package.mjs",
}, () => {
  test("SHA256SUMS has all of it, and is right", () => {
    const sums = readFileSync(join(release, "SHA256SUMS"), "utf8").trim().split("\n");
    const files = readdirSync(release).filter((name) => name.startsWith("kubelet-probe"));
    assert.deepEqual(sums.sort(), files.map((name) => `${digest(join(release, name))}  ${name}`).sort());
  });

  test("the packages for arm64 say so, and hold that binary", {
    skip: skips.deb || skips.rpm || needing("cpio", "cpio"),
  }, async () => {
    assert.equal(tool("dpkg-deb", ["--field", arm64.deb, "Architecture"]).printed, "arm64\n");
    assert.equal(tool("rpm", ["-qp", "--qf", "%{ARCH}", arm64.rpm]).printed, "aarch64");
    assert.match(tool("rpm", ["-qp", "--requires", arm64.rpm]).printed, /^ld-linux-aarch64\.so\.1\(/m);
    const built = digest(join(release, `kubelet-probe-${version}-linux-arm64`));
    for (const script of [
      `dpkg-deb --fsys-tarfile "$0" | tar -xO ./usr/bin/kubelet-probe | sha256sum`,
      `rpm2cpio "$0" | cpio --quiet --extract --to-stdout ./usr/bin/kubelet-probe | sha256sum`,
    ]) {
      const { stdout, stderr } = await execute("sh", ["-c", script, script.startsWith("rpm") ? arm64.rpm : arm64.deb]);
      assert.equal(stdout, `${built}  -\n`, stderr);
    }
  });
});
