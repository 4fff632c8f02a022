// The RPM package, by rpmbuild, on any distribution that has it.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fail, root, run } from "../tools.mjs";
import {
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
import { entriesBelow, seconds } from "./reproducible.mjs";
import { licenses } from "./sbom.mjs";

const architectures = { amd64: "x86_64", arm64: "aarch64" };
// Folders of the package alone, which go with it; the others belong to the distribution.
const own = [doc, "usr/share/licenses/kubelet-probe"];

/** Packs `binary` for `arch`, amd64 or arm64, below the folder `work`. Gives the path of the package. */
export function packRpm(binary, arch, work, { fast }) {
  const home = join(work, `rpm-${arch}`);
  const tree = join(home, "tree");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  layOut(tree, "rpm", binary, {
    "usr/share/licenses/kubelet-probe/LICENSE": readFileSync(join(root, "LICENSE")),
  });
  const spec = join(home, "kubelet-probe.spec");
  writeFileSync(spec, specification(tree));

  const name = `kubelet-probe-${version}-1.${architectures[arch]}.rpm`;
  const macros = {
    _topdir: home,
    _rpmdir: home,
    _dbpath: join(home, "db"),
    _build_name_fmt: name,
    _buildhost: "localhost",
    use_source_date_epoch_as_buildtime: 1,
    clamp_mtime_to_source_date_epoch: 1,
    source_date_epoch_from_changelog: 0,
    // The binary is taken as it is: strip would cut the program off the runtime.
    __os_install_post: "%{nil}",
    debug_package: "%{nil}",
    _build_id_links: "none",
    // Examples are read, not run: what they would need, the package does not.
    __requires_exclude_from: `^/${doc}/`,
    // xz, since RHEL 7 reads no zstd. A fixed number of threads: one thread alone cuts a file otherwise than several.
    _binary_payload: fast ? "w0T2.xzdio" : "w6T2.xzdio",
  };
  const defines = Object.entries(macros).flatMap(([macro, value]) => ["--define", `${macro} ${value}`]);
  const packed = run("rpmbuild", ["-bb", "--target", `${architectures[arch]}-linux`, ...defines, spec], {
    // Whoever packs may have macros of their own in their home.
    env: { PATH: process.env.PATH, HOME: home, LC_ALL: "C.UTF-8", SOURCE_DATE_EPOCH: String(seconds) },
  });
  if (packed.failed !== undefined) fail(`Cannot pack the .rpm for ${arch}: ${packed.failed}\n${packed.stderr}`);
  return join(home, name);
}

function specification(tree) {
  return `Name: kubelet-probe
Version: ${packageVersion}
Release: 1
Summary: ${summary[0].toUpperCase()}${summary.slice(1)}
License: ${licenses()}
Packager: ${maintainer}
# Of no use to rpm since long, but asked for by some repositories.
Group: Applications/System

%description
${description.join("\n")}

%install
cp --archive "${tree}/." "%{buildroot}"

%post
${reload}${lookAtSocket}
%preun
if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now kubelet-probe.timer || true
fi

%postun
${reload}
%files
%defattr(-,root,root,-)
${files(tree).join("\n")}

%changelog
* ${changelogDate()} ${maintainer} - ${packageVersion}-1
- See CHANGELOG.md of this version.
`;
}

/** As in `Thu Jan 01 2026`. */
function changelogDate() {
  const [day, date, month, year] = new Date(seconds * 1000).toUTCString().split(/,? /);
  return `${day} ${month} ${date} ${year}`;
}

function files(tree) {
  return entriesBelow(tree).flatMap(({ path, entry }) => {
    const at = relative(tree, path);
    const name = `"/${at}"`;
    if (entry.isDirectory()) return own.some((folder) => `${at}/`.startsWith(`${folder}/`)) ? [`%dir ${name}`] : [];
    if (at === configuration) return [`%config(noreplace) ${name}`];
    if (at.startsWith("usr/share/licenses/")) return [`%license ${name}`];
    return [at.startsWith(`${doc}/`) || at.startsWith("usr/share/man/") ? `%doc ${name}` : name];
  });
}
