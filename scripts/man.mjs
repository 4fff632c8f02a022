// The manual page, made from the checks, their option schemas and the tables: what `--help` and `explain` say, in roff.
import { optionName, variableName } from "../lib/arguments.ts";
import { commandSummaries, optionsOf, optionsOfAll } from "../lib/cli.ts";
import { codes } from "../lib/codes.ts";
import { commonOptions, thresholdOptions } from "../lib/common_options.ts";
import { exitStatus, profiles, usageExit } from "../lib/exit.ts";
import { notes } from "../lib/option.ts";
import { version } from "../lib/version.ts";
import { checks } from "../probes/list.ts";

/** Text in which nothing is an escape or a request: a backslash, a hyphen that must stay one, a dot or quote that begins a line. */
function text(value) {
  return value
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^(?=[.'])/gm, "\\&");
}

const bold = (value) => `\\fB${text(value)}\\fR`;
const italic = (value) => `\\fI${text(value)}\\fR`;
const sentence = (value) => `${value.charAt(0).toUpperCase()}${value.slice(1)}.`;

function optionEntries(entries) {
  return Object.entries(entries).flatMap(([key, schema]) => {
    const { value, short, fallback, description } = notes(schema);
    const operand = value === undefined ? "" : ` ${italic(value)}`;
    const forms = [...(short === undefined ? [] : [bold(`-${short}`)]), bold(optionName(key)) + operand];
    const standard = fallback === undefined || fallback === "" ? "" : ` Default: ${fallback}.`;
    return [".TP", forms.join(", "), `${text(sentence(description) + standard)} [${text(variableName(key))}]`];
  });
}

/** The page as a whole. */
export function manualPage() {
  const common = new Set(Object.keys({ ...commonOptions, ...thresholdOptions }));
  const own = (entries) => Object.fromEntries(Object.entries(entries).filter(([key]) => !common.has(key)));
  const lines = [
    '.\\" Made by npm run docs.',
    `.TH KUBELET\\-PROBE 1 "" "kubelet\\-probe ${version}" "User Commands"`,
    ".SH NAME",
    "kubelet\\-probe \\- one\\-shot probes of the kubelet's Pods API on this node",
    ".SH SYNOPSIS",
    `${bold("kubelet-probe")} ${italic("CHECK")} [${italic("OPTION")}...]`,
    ".br",
    `${bold("kubelet-probe all")} [${bold("--checks")} ${italic("CHECK,...")}] [${italic("OPTION")}...]`,
    ".br",
    `${bold("kubelet-probe explain")} [${italic("CODE")}...]`,
    ".SH DESCRIPTION",
    text(
      "Asks the kubelet's Pods API, a local socket that answers with the API server down, one question, and answers with an " +
        "exit status that Nagios, Icinga, node-problem-detector, cron and Kubernetes' exec probes understand. A failure has " +
        'one stable code, and is never reported as "there are no pods". A run ends before its deadline, starts no process, ' +
        "opens no network socket, and writes nothing but the file that an option names.",
    ),
    ".SH CHECKS",
    ...checks.flatMap((check) => [
      ".TP",
      bold(check.name),
      text(sentence(check.summary)),
      ...(check.metric === undefined ? [] : [text(`Main metric: ${check.metric.description}.`)]),
      ".RS",
      ...optionEntries(own(optionsOf(check))),
      ".RE",
    ]),
    ".TP",
    bold("all"),
    text(sentence(commandSummaries.all)),
    ".RS",
    ...optionEntries({ checks: optionsOfAll(checks).checks }),
    ".RE",
    ".SH COMMANDS",
    ...Object.entries(commandSummaries)
      .filter(([name]) => name !== "all")
      .flatMap(([name, summary]) => [".TP", bold(name), text(sentence(summary))]),
    ".SH OPTIONS",
    "Of every check:",
    ...optionEntries(commonOptions),
    ".PP",
    "Of checks with a main metric, as ranges of the Monitoring Plugins guidelines:",
    ...optionEntries(thresholdOptions),
    ".SH EXIT STATUS",
    ".TS",
    "l r r r r r.",
    ["profile", "OK", "WARNING", "CRITICAL", "UNKNOWN", "wrong usage"].join("\t"),
    ...profiles.map((profile) =>
      [
        profile,
        ...["OK", "WARNING", "CRITICAL", "UNKNOWN"].map((status) =>
          exitStatus({ status, code: "ServerError" }, { profile }),
        ),
        usageExit(profile),
      ].join("\t"),
    ),
    ".TE",
    ".PP",
    text("The exit status stays that of the verdict when the output cannot be written."),
    ".SH CODES",
    text("See kubelet-probe explain CODE for causes and what to do."),
    ...Object.entries(codes).flatMap(([code, { status, brief }]) => [
      ".TP",
      `${bold(code)} (${status})`,
      text(sentence(brief)),
    ]),
    ".SH ENVIRONMENT",
    text(
      "Every option has a variable, named in brackets behind it; the option wins. An empty variable counts as none.",
    ),
    ".TP",
    bold("NODE_NAME"),
    text("The node's name, where --node-name is not given."),
    ".SH FILES",
    ".TP",
    italic("/var/lib/kubelet/pods-api/pods-api.sock"),
    "The socket.",
    ".TP",
    italic("/etc/default/kubelet-probe"),
    "Variables for the systemd unit.",
    ".SH EXAMPLES",
    ".EX",
    text("kubelet-probe all"),
    text("kubelet-probe static-pods --expect kube-system/etcd-cp-1 --profile npd"),
    text("kubelet-probe all -q --output prometheus --output-file /var/lib/prometheus/node-exporter/kubelet_probe.prom"),
    text("kubelet-probe ready --profile kube --for readiness"),
    ".EE",
    ".SH SEE ALSO",
    text("Documentation in /usr/share/doc/kubelet-probe."),
  ];
  // tbl makes the table of the exit statuses.
  return `'\\" t\n${lines.join("\n")}\n`;
}
