// `node scripts/package.mjs`: what a release has besides the binaries of `npm run build:all`, into dist/release: a .deb for
// each of Debian's architectures, the SBOM, the files of deploy/ as an archive, and SHA256SUMS of all of it.
//   --binary FILE --arch amd64|arm64 --out DIR   one .deb of one binary; --fast compresses less
// One commit gives the same bytes wherever it is packed: times are the commit's, owners root, orders sorted.
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { fail, parseArguments, root, run } from "./tools.mjs";

const { values } = parseArguments({ binary: "FILE", arch: "amd64|arm64", out: "DIR", fast: null });
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const { version } = manifest;
const release = resolve(values.out ?? join(root, "dist", "release"));
const seconds = commitSeconds();
const maintainer = "kubelet-probe maintainers <maintainers@kubelet-probe.invalid>";

const work = mkdtempSync(join(tmpdir(), "kubelet-probe-package-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
mkdirSync(release, { recursive: true });

if (values.binary !== undefined) buildDeb(resolve(values.binary), values.arch ?? "amd64");
else packRelease();

function packRelease() {
  const targets = { amd64: "linux-x64", arm64: "linux-arm64" };
  for (const [arch, target] of Object.entries(targets)) {
    const binary = join(release, `kubelet-probe-${version}-${target}`);
    if (!existsSync(binary)) fail(`Cannot pack ${relative(root, binary)}: it is not there; npm run build:all makes it`);
    buildDeb(binary, arch);
  }
  write(`kubelet-probe-${version}.cdx.json`, `${JSON.stringify(sbom(), null, 2)}\n`);
  packDeploy();
  const names = readdirSync(release)
    .filter((name) => name.startsWith("kubelet-probe"))
    .sort();
  write("SHA256SUMS", names.map((name) => `${digest(readFileSync(join(release, name)))}  ${name}\n`).join(""));
}

function write(name, content) {
  writeFileSync(join(release, name), content);
  console.log(join(relative(root, release), name));
}

function digest(bytes, algorithm = "sha256") {
  return createHash(algorithm).update(bytes).digest("hex");
}

/** The commit's time, or that of SOURCE_DATE_EPOCH, as reproducible-builds.org has it. */
function commitSeconds() {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  const head = run("git", ["show", "--no-patch", "--format=%ct", "HEAD"]);
  // 2026-01-01, for an archive without a history.
  return head.failed === undefined ? Number(head.stdout.trim()) : 1_767_225_600;
}

/** Lays out the package and has dpkg-deb pack it. */
function buildDeb(binary, arch) {
  const tree = join(work, arch);
  rmSync(tree, { recursive: true, force: true });
  const put = (path, content, mode = 0o644) => {
    const at = join(tree, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, content, { mode });
  };
  const compressed = (text) => gzipSync(text, { level: 9 });
  const doc = "usr/share/doc/kubelet-probe";

  mkdirSync(join(tree, "usr/bin"), { recursive: true });
  copyFileSync(binary, join(tree, "usr/bin/kubelet-probe"));
  chmodSync(join(tree, "usr/bin/kubelet-probe"), 0o755);
  // By these names it follows Nagios' rules, whatever the environment says.
  mkdirSync(join(tree, "usr/lib/nagios/plugins"), { recursive: true });
  for (const name of ["pods_api", "ready", "static_pods"]) {
    symlinkSync("../../../bin/kubelet-probe", join(tree, `usr/lib/nagios/plugins/check_kubelet_${name}`));
  }
  for (const name of ["kubelet-probe.service", "kubelet-probe.timer", "kubelet-probe-failed@.service"]) {
    put(`lib/systemd/system/${name}`, readFileSync(join(root, "deploy/systemd", name)));
  }
  put(
    "etc/default/kubelet-probe",
    "# Options of the systemd unit, such as:\n# KUBELET_PROBE_EXPECT=kube-system/etcd-cp-1\n",
  );
  put("usr/share/man/man1/kubelet-probe.1.gz", compressed(readFileSync(join(root, "docs/kubelet-probe.1"))));
  for (const [shell, path] of [
    ["bash", "usr/share/bash-completion/completions/kubelet-probe"],
    ["zsh", "usr/share/zsh/vendor-completions/_kubelet-probe"],
    ["fish", "usr/share/fish/vendor_completions.d/kubelet-probe.fish"],
  ]) {
    put(path, completion(shell));
  }
  for (const name of readdirSync(join(root, "docs")).filter((name) => /\.(md|json)$/.test(name))) {
    put(`${doc}/${name}`, readFileSync(join(root, "docs", name)));
  }
  cpSync(join(root, "deploy"), join(tree, doc, "examples"), { recursive: true });
  put(`${doc}/kubelet-probe.cdx.json.gz`, compressed(`${JSON.stringify(sbom(), null, 2)}\n`));
  put(`${doc}/copyright`, copyright());
  put(`${doc}/changelog.Debian.gz`, compressed(changelog()));
  put(`${doc}/changelog.gz`, compressed(readFileSync(join(root, "CHANGELOG.md"))));
  // The runtime is as its makers build it, and carries the program behind its symbols, where strip would cut it off.
  put(
    "usr/share/lintian/overrides/kubelet-probe",
    "kubelet-probe: unstripped-binary-or-object [usr/bin/kubelet-probe]\nkubelet-probe: hardening-no-pie [usr/bin/kubelet-probe]\nkubelet-probe: hardening-no-relro [usr/bin/kubelet-probe]\nkubelet-probe: embedded-library libjpeg [usr/bin/kubelet-probe]\n",
  );
  normalize(tree);
  const sizes = filesBelow(tree).reduce((sum, path) => sum + Math.ceil(statSync(path).size / 1024), 0);

  const control = `Package: kubelet-probe
Version: ${version}-1
Architecture: ${arch}
Maintainer: ${maintainer}
Installed-Size: ${sizes}
Depends: libc6 (>= 2.17)
Suggests: prometheus-node-exporter, nagios-nrpe-server
Section: admin
Priority: optional
Description: one-shot probes of the kubelet's Pods API
 Asks a Kubernetes node's own kubelet, over a local socket that answers with the
 API server down, whether it serves its inventory, whether the static pods of
 the node run, who else can use the socket, and how much of its rate limit is
 left. Ends with an exit status for Nagios, node-problem-detector, cron or
 exec probes. Nothing is enabled at installation.
`;
  put("DEBIAN/control", control);
  put("DEBIAN/conffiles", "/etc/default/kubelet-probe\n");
  const reload = "if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n";
  put("DEBIAN/postinst", `#!/bin/sh\nset -e\n${reload}`, 0o755);
  put(
    "DEBIAN/prerm",
    `#!/bin/sh\nset -e\nif [ "$1" = remove ] && [ -d /run/systemd/system ]; then\n  deb-systemd-invoke stop kubelet-probe.timer || true\nfi\n`,
    0o755,
  );
  put("DEBIAN/postrm", `#!/bin/sh\nset -e\n${reload}`, 0o755);
  const sums = filesBelow(tree).filter((path) => !path.startsWith(join(tree, "DEBIAN")));
  put("DEBIAN/md5sums", sums.map((path) => `${digest(readFileSync(path), "md5")}  ${relative(tree, path)}\n`).join(""));
  normalize(tree);

  const name = `kubelet-probe_${version}-1_${arch}.deb`;
  const compression = values.fast ? ["-Zgzip", "-z1"] : ["-Zxz"];
  const made = join(work, name);
  // One thread: how xz cuts a file into blocks must not depend on the machine.
  const packed = run("dpkg-deb", ["--root-owner-group", "--threads-max=1", ...compression, "--build", tree, made], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) },
  });
  if (packed.failed !== undefined) fail(`Cannot pack ${name}: ${packed.failed}\n${packed.stderr}`);
  write(name, readFileSync(made));
}

/** The completion as the program itself prints it, from its sources: a binary for arm64 does not run here. */
function completion(shell) {
  const printed = run(join(root, "node_modules/.bin/node"), [join(root, "main.ts"), "completion", shell], {
    env: { PATH: process.env.PATH, NODE_NO_WARNINGS: "1" },
  });
  if (printed.failed !== undefined) fail(`Cannot make the completion for ${shell}: ${printed.stdout}${printed.stderr}`);
  return printed.stdout;
}

/** Every file, links to files too, in one order. */
function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? filesBelow(path) : entry.isSymbolicLink() ? [] : [path];
    });
}

/** Modes and times as a package has them, whatever the umask and the checkout gave. */
function normalize(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) lutimesSync(path, seconds, seconds);
    else {
      if (entry.isDirectory()) normalize(path);
      chmodSync(path, entry.isDirectory() || (statSync(path).mode & 0o111) !== 0 ? 0o755 : 0o644);
      utimesSync(path, seconds, seconds);
    }
  }
  chmodSync(folder, 0o755);
  utimesSync(folder, seconds, seconds);
}

function copyright() {
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kubelet-probe

Files: *
Copyright: 2026 the kubelet-probe authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.

Files: usr/bin/kubelet-probe
Copyright: 2026 the kubelet-probe authors and those of what it contains
License: Apache-2.0 and others
 The binary contains the runtime Bun (MIT) and the libraries that
 kubelet-probe.cdx.json.gz lists with their licenses.
`;
}

function changelog() {
  const date = new Date(seconds * 1000).toUTCString().replace("GMT", "+0000");
  return `kubelet-probe (${version}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of this version.\n\n -- ${maintainer}  ${date}\n`;
}

/** CycloneDX 1.5: what goes into the binary, as the lock file has it, and the runtime around it. */
function sbom() {
  const packages = Object.entries(lock.packages)
    .filter(([path, entry]) => path !== "" && entry.dev !== true && entry.optional !== true)
    .map(([path, entry]) => ({ name: path.replace(/^.*node_modules\//, ""), ...entry }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const runtime = { name: "bun", ...lock.packages["node_modules/bun"] };
  const components = [...packages, runtime].map(component);
  const self = `pkg:npm/kubelet-probe@${version}`;
  const content = {
    metadata: {
      timestamp: new Date(seconds * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": self,
        name: "kubelet-probe",
        version,
        purl: self,
        licenses: [{ license: { id: manifest.license } }],
      },
    },
    components,
    dependencies: [{ ref: self, dependsOn: components.map((each) => each["bom-ref"]) }],
  };
  // A number of its own for each content, and the same for the same.
  const hash = digest(JSON.stringify(content));
  const uuid = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-5${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  return { bomFormat: "CycloneDX", specVersion: "1.5", serialNumber: `urn:uuid:${uuid}`, version: 1, ...content };
}

function component({ name, version: number, license, integrity }) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${number}`;
  const [algorithm, base64] = integrity.split("-");
  return {
    type: name === "bun" ? "platform" : "library",
    "bom-ref": purl,
    name,
    version: number,
    purl,
    hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(base64, "base64").toString("hex") }],
    // The text of a field in npm may be an expression: Apache-2.0 AND BSD-3-Clause.
    licenses:
      license === undefined ? [] : / |\(/.test(license) ? [{ expression: license }] : [{ license: { id: license } }],
  };
}

function packDeploy() {
  const tree = join(work, `kubelet-probe-${version}-deploy`);
  cpSync(join(root, "deploy"), tree, { recursive: true });
  normalize(tree);
  const name = `kubelet-probe-${version}-deploy.tar.gz`;
  const args = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", `--mtime=@${seconds}`, "--format=ustar"];
  const packed = run("tar", [...args, "-C", work, "-cf", join(work, "deploy.tar"), relative(work, tree)]);
  if (packed.failed !== undefined) fail(`Cannot pack ${name}: ${packed.stderr}`);
  write(name, gzipSync(readFileSync(join(work, "deploy.tar")), { level: 9 }));
}
