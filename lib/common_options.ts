// The options that every check takes.

import { apiVersions } from "./client.ts";
import { type Code, codes, isCode } from "./codes.ts";
import { profiles } from "./exit.ts";
import { outputs } from "./format_text.ts";
import {
  absolutePath,
  anyText,
  flag,
  listOf,
  oneOf,
  option,
  optionWithDefault,
  positiveDuration,
  range,
  wholeNumber,
} from "./option.ts";
import { isStatus, type Status, statuses } from "./status.ts";

function parseSeverity(text: string): readonly [Code, Status] | undefined {
  const [code = "", status = "", ...rest] = text.split("=");
  if (rest.length > 0 || !isCode(code) || !isStatus(status)) return undefined;
  // What is well has no severity, and a command line that cannot be used has the profile's own exit status.
  return codes[code].status === "OK" || code === "BadUsage" ? undefined : [code, status];
}

/** Taken by every check and by `all`. */
export const commonOptions = {
  socket: option((text) => (/^(unix:(\/\/)?)?\//.test(text) ? text : undefined), "an absolute path", {
    value: "PATH",
    description: "the Pods API socket (default: pods-api/pods-api.sock in the kubelet's root folder)",
  }),
  kubeletRoot: option(...absolutePath, {
    value: "DIR",
    description: "the kubelet's root folder (default: /var/lib/kubelet)",
  }),
  nodeName: option(anyText, "a name", {
    value: "NAME",
    description: "the node's name (default: NODE_NAME from the environment, then the host name)",
  }),
  timeout: option(...positiveDuration, {
    value: "DURATION",
    short: "t",
    description: "how long the whole run may take (default: 10s, 4s with npd, 900ms with kube)",
  }),
  profile: option(...oneOf(...profiles), {
    value: profiles.join("|"),
    description: "whose rules the exit status and the line follow (default: nagios)",
  }),
  output: optionWithDefault(...oneOf(...outputs), {
    value: outputs.join("|"),
    fallback: "text",
    description: "what to print",
  }),
  outputFile: option(...absolutePath, {
    value: "PATH",
    description: "puts --output into this file, whole or not at all, and prints the text of the profile",
  }),
  severity: option(
    ...listOf<readonly [Code, Status]>([
      parseSeverity,
      `CODE=STATUS with a code of 'explain' and ${statuses.join(", ")}`,
    ]),
    { value: "CODE=STATUS,...", list: true, description: "give a code another status" },
  ),
  apiVersion: optionWithDefault(...oneOf("auto", ...apiVersions), {
    value: `auto|${apiVersions.join("|")}`,
    fallback: "auto",
    description: "the version of the Pods API; auto takes the first of these that the server has",
  }),
  maxBytes: optionWithDefault(...wholeNumber(1, 2 ** 31 - 1), {
    value: "BYTES",
    fallback: String(64 << 20),
    description: "the longest answer to take",
  }),
  npdWarning: optionWithDefault(...oneOf("ok", "problem"), {
    value: "ok|problem",
    fallback: "ok",
    description: "with npd: what WARNING counts as",
  }),
  strict: flag("with kube: WARNING fails too"),
  verbose: flag("say more: every finding, and where each value came from", "v"),
  quiet: flag("print nothing when all is well", "q"),
} as const;

/** Taken by checks with a main metric. */
export const thresholdOptions = {
  warning: option(...range, {
    value: "RANGE",
    short: "w",
    description: "WARNING where the main metric is outside of it",
  }),
  critical: option(...range, {
    value: "RANGE",
    short: "c",
    description: "CRITICAL where the main metric is outside of it",
  }),
} as const;
