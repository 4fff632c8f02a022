// The Debian package, by dpkg-deb.
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fail, run } from "../tools.mjs";
import {
  compressed,
  configuration,
  description,
  doc,
  layOut,
  lookAtSocket,
  maintainer,
  packageVersion,
  reload,
  summary,
  version,
} from "./installed.mjs";
import { digest, filesBelow, normalize, seconds } from "./reproducible.mjs";

/** Packs `binary` for `arch`, amd64 or arm64, below the folder `work`. Gives the path of the package. */
export function packDeb(binary, arch, work, { fast }) {
  const tree = join(work, `deb-${arch}`);
  rmSync(tree, { recursive: true, force: true });
  layOut(tree, "deb", binary, {
    [`${doc}/copyright`]: copyright(),
    [`${doc}/changelog.Debian.gz`]: compressed(changelog()),
    "usr/share/lintian/overrides/kubelet-probe": overrides(),
  });
  const files = filesBelow(tree);
  const size = files.reduce((sum, path) => sum + Math.ceil(statSync(path).size / 1024), 0);

  mkdirSync(join(tree, "DEBIAN"));
  const put = (name, content, mode = 0o644) => writeFileSync(join(tree, "DEBIAN", name), content, { mode });
  put("control", control(arch, size));
  put("conffiles", `/${configuration}\n`);
  put("postinst", `#!/bin/sh\nset -e\n${reload}[ "$1" = configure ] || exit 0\n${lookAtSocket}`, 0o755);
  put(
    "prerm",
    `#!/bin/sh\nset -e\nif [ "$1" = remove ] && [ -d /run/systemd/system ]; then\n  deb-systemd-invoke stop kubelet-probe.timer || true\nfi\n`,
    0o755,
  );
  put("postrm", `#!/bin/sh\nset -e\n${reload}`, 0o755);
  put("md5sums", files.map((path) => `${digest(readFileSync(path), "md5")}  ${relative(tree, path)}\n`).join(""));
  normalize(tree);

  const made = join(work, `kubelet-probe_${version}-1_${arch}.deb`);
  // As many threads as there are cores: xz cuts a file into the same blocks for any number of them.
  const words = ["--root-owner-group", "-Zxz", fast ? "-z0" : "-z6", "--build", tree, made];
  const packed = run("dpkg-deb", words, { env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) } });
  if (packed.failed !== undefined) fail(`Cannot pack the .deb for ${arch}: ${packed.failed}\n${packed.stderr}`);
  return made;
}

function control(arch, size) {
  return `Package: kubelet-probe
Version: ${packageVersion}-1
Architecture: ${arch}
Maintainer: ${maintainer}
Installed-Size: ${size}
Depends: libc6 (>= 2.17)
Suggests: prometheus-node-exporter, nagios-nrpe-server
Section: admin
Priority: optional
Description: ${summary}
${description.map((line) => ` ${line}\n`).join("")}`;
}

// The runtime is as its makers build it, and carries the program behind its symbols, where strip would cut it off.
function overrides() {
  return ["unstripped-binary-or-object", "hardening-no-pie", "hardening-no-relro", "embedded-library libjpeg"]
    .map((tag) => `kubelet-probe: ${tag} [usr/bin/kubelet-probe]\n`)
    .join("");
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
  return `kubelet-probe (${packageVersion}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of this version.\n\n -- ${maintainer}  ${date}\n`;
}
