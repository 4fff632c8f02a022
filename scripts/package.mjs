// `node scripts/package.mjs`: what a release has besides the binaries of `npm run build:all`, into dist/release: a .deb and an
// .rpm for each architecture, the SBOM, the files of deploy/ as an archive, and SHA256SUMS of all of it.
//   --binary FILE --arch amd64|arm64 --format deb|rpm --out DIR   one package of one binary
//   --fast   packages a sixth larger, in a quarter of the time
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { packDeb } from "./package/deb.mjs";
import { version } from "./package/installed.mjs";
import { digest, normalize, seconds } from "./package/reproducible.mjs";
import { packRpm } from "./package/rpm.mjs";
import { sbom } from "./package/sbom.mjs";
import { fail, parseArguments, root, run } from "./tools.mjs";

const { values } = parseArguments({
  binary: "FILE",
  arch: "amd64|arm64",
  format: "deb|rpm",
  out: "DIR",
  fast: null,
});
const release = resolve(values.out ?? join(root, "dist", "release"));
const formats = { deb: packDeb, rpm: packRpm };
const targets = { amd64: "linux-x64", arm64: "linux-arm64" };
const { format = "deb", arch = "amd64" } = values;
if (!(format in formats)) fail(`Cannot make a .${format}: accepted are deb and rpm`, 2);
if (!(arch in targets)) fail(`Cannot pack for ${arch}: accepted are amd64 and arm64`, 2);

const work = mkdtempSync(join(tmpdir(), "kubelet-probe-package-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
mkdirSync(release, { recursive: true });

if (values.binary !== undefined) pack(format, resolve(values.binary), arch);
else packRelease();

function packRelease() {
  for (const [arch, target] of Object.entries(targets)) {
    const binary = join(release, `kubelet-probe-${version}-${target}`);
    if (!existsSync(binary)) fail(`Cannot pack ${relative(root, binary)}: it is not there; npm run build:all makes it`);
    for (const format of Object.keys(formats)) pack(format, binary, arch);
  }
  write(`kubelet-probe-${version}.cdx.json`, sbom());
  packDeploy();
  const names = readdirSync(release)
    .filter((name) => name.startsWith("kubelet-probe"))
    .sort();
  write("SHA256SUMS", names.map((name) => `${digest(readFileSync(join(release, name)))}  ${name}\n`).join(""));
}

function pack(format, binary, arch) {
  const made = formats[format](binary, arch, work, values);
  write(basename(made), readFileSync(made));
}

function write(name, content) {
  writeFileSync(join(release, name), content);
  console.log(join(relative(root, release), name));
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
