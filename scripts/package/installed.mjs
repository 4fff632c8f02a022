// What a package installs, for .deb and .rpm alike: the files, where each kind of distribution wants them, and what is done
// at installation and removal.
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { fail, root, run } from "../tools.mjs";
import { normalize } from "./reproducible.mjs";
import { sbom } from "./sbom.mjs";

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

export const { version } = manifest;
/** As both formats sort it: 1.0.0~rc.1 comes before 1.0.0. */
export const packageVersion = version.replace("-", "~");
export const maintainer = "kubelet-probe maintainers <maintainers@kubelet-probe.invalid>";
export const summary = "one-shot probes of the kubelet's Pods API";
export const description = [
  "Asks a Kubernetes node's own kubelet, over a local socket that answers with the",
  "API server down, whether it serves its inventory, whether the static pods of",
  "the node run, who else can use the socket, and how much of its rate limit is",
  "left. Ends with an exit status for Nagios, node-problem-detector, cron or",
  "exec probes. Nothing is enabled at installation.",
];
/** The one file that an administrator changes and an upgrade keeps. */
export const configuration = "etc/default/kubelet-probe";
export const doc = "usr/share/doc/kubelet-probe";

/** Everything else is in the same place in both. */
const places = {
  deb: {
    units: "lib/systemd/system",
    plugins: ["usr/lib/nagios/plugins"],
    zsh: "usr/share/zsh/vendor-completions",
  },
  rpm: {
    units: "usr/lib/systemd/system",
    // Those of Fedora and its kin; those of SUSE.
    plugins: ["usr/lib64/nagios/plugins", "usr/lib/nagios/plugins"],
    zsh: "usr/share/zsh/site-functions",
  },
};

/** Lines of a script of the package, for `sh`. A machine without systemd, an image say, needs no reload. */
export const reload = "if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n";
/**
 * Prints nothing where the socket is in order, and else one line with what to do: a node without the gate, say. The runtime
 * does not start without /proc, as in some folders that are to become an image.
 */
export const lookAtSocket =
  "if [ -e /proc/self/exe ]; then kubelet-probe socket --profile kube --quiet 2>/dev/null || true; fi\n";

/** Lays the files of a package out below `tree`; `own` has those of its format: content by path. */
export function layOut(tree, format, binary, own) {
  const { units, plugins, zsh } = places[format];
  const put = (path, content, mode = 0o644) => {
    const at = join(tree, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, content, { mode });
  };

  mkdirSync(join(tree, "usr/bin"), { recursive: true });
  copyFileSync(binary, join(tree, "usr/bin/kubelet-probe"));
  chmodSync(join(tree, "usr/bin/kubelet-probe"), 0o755);
  // By these names it follows Nagios' rules, whatever the environment says.
  for (const folder of plugins) {
    mkdirSync(join(tree, folder), { recursive: true });
    for (const name of ["pods_api", "ready", "static_pods"]) {
      symlinkSync("../../../bin/kubelet-probe", join(tree, folder, `check_kubelet_${name}`));
    }
  }
  for (const name of ["kubelet-probe.service", "kubelet-probe.timer", "kubelet-probe-failed@.service"]) {
    put(`${units}/${name}`, readFileSync(join(root, "deploy/systemd", name)));
  }
  put(configuration, "# Options of the systemd unit, such as:\n# KUBELET_PROBE_EXPECT=kube-system/etcd-cp-1\n");
  put("usr/share/man/man1/kubelet-probe.1.gz", compressed(readFileSync(join(root, "docs/kubelet-probe.1"))));
  put("usr/share/bash-completion/completions/kubelet-probe", completion("bash"));
  put(`${zsh}/_kubelet-probe`, completion("zsh"));
  put("usr/share/fish/vendor_completions.d/kubelet-probe.fish", completion("fish"));
  for (const name of readdirSync(join(root, "docs")).filter((name) => /\.(md|json)$/.test(name))) {
    put(`${doc}/${name}`, readFileSync(join(root, "docs", name)));
  }
  cpSync(join(root, "deploy"), join(tree, doc, "examples"), { recursive: true });
  put(`${doc}/kubelet-probe.cdx.json.gz`, compressed(sbom()));
  put(`${doc}/changelog.gz`, compressed(readFileSync(join(root, "CHANGELOG.md"))));
  for (const [path, content] of Object.entries(own)) put(path, content);
  normalize(tree);
}

export function compressed(text) {
  return gzipSync(text, { level: 9 });
}

/** The completion as the program itself prints it, from its sources: a binary for arm64 does not run here. */
function completion(shell) {
  const printed = run(join(root, "node_modules/.bin/node"), [join(root, "main.ts"), "completion", shell], {
    env: { PATH: process.env.PATH, NODE_NO_WARNINGS: "1" },
  });
  if (printed.failed !== undefined) fail(`Cannot make the completion for ${shell}: ${printed.stdout}${printed.stderr}`);
  return printed.stdout;
}
