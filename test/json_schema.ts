// The schema of `--output json` as docs/json.md has it, strict: a field it does not name is an error. Held by the tests
// alone, so that it cannot drift along with the program.

import * as v from "valibot";
import { isCode } from "../lib/codes.ts";

const status = v.picklist(["OK", "WARNING", "CRITICAL", "UNKNOWN"]);
const code = v.pipe(v.string(), v.check(isCode, "a code"));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const time = v.pipe(v.string(), v.isoTimestamp());
// Six digits behind the point, whatever is before it.
const decimal = v.pipe(
  v.number(),
  v.check((value) => Math.abs(value - Number(value.toFixed(6))) <= Math.abs(value) * Number.EPSILON, "six digits"),
);
const range = v.pipe(v.string(), v.regex(/^@?((~|-?[\d.]+)?:)?(-?[\d.]+)?$/));
// docs/json.md, "Text".
const line = v.pipe(
  v.string(),
  v.maxLength(1000),
  v.check((text) => !/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/.test(text), "one plain line"),
);

const finding = v.strictObject({ code, status, subject: line, message: line, cause: v.optional(code) });

const metric = v.strictObject({
  name: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]*$/)),
  value: decimal,
  unit: v.picklist(["", "s", "B"]),
  warning: v.optional(range),
  critical: v.optional(range),
  min: v.optional(decimal),
  max: v.optional(decimal),
});

const octal = v.pipe(v.string(), v.regex(/^[0-7]{4}$/));

const share = v.strictObject({ value: v.number(), low: v.number(), high: v.number() });
const headroom = v.strictObject({
  intervalMs: v.number(),
  refused: share,
  short: share,
  binding: v.nullable(v.picklist(["rate", "burst"])),
  rates: v.nullable(
    v.strictObject({
      seconds: v.number(),
      listsPerSecond: v.nullable(v.number()),
      getsPerSecond: v.nullable(v.number()),
      drops: v.nullable(v.number()),
    }),
  ),
});

/** `data` of each check, where it has run. */
export const dataSchemas = {
  socket: v.strictObject({
    mode: octal,
    uid: count,
    gid: count,
    bornAt: time,
    changedAt: time,
    pathBytes: count,
    mounted: v.boolean(),
    others: v.array(v.string()),
    folders: v.array(v.strictObject({ path: v.string(), mode: octal, uid: count, gid: count })),
    links: v.array(v.strictObject({ path: v.string(), target: v.string() })),
  }),
  ready: v.strictObject({ pods: count, staticPods: count, bytes: count, tries: count }),
  manifests: v.strictObject({
    nodeName: v.string(),
    pods: v.array(
      v.strictObject({
        namespace: v.string(),
        name: v.string(),
        uid: v.nullable(v.string()),
        images: v.array(v.string()),
        file: v.string(),
      }),
    ),
    files: v.array(
      v.strictObject({
        file: v.string(),
        verdict: v.picklist(["pod", "shadowed", "refused", "ignored"]),
        pod: v.nullable(v.string()),
        reason: v.string(),
      }),
    ),
  }),
  "static-pods": v.strictObject({
    manifests: v.nullable(v.string()),
    pods: v.array(
      v.strictObject({
        namespace: v.string(),
        name: v.string(),
        uid: v.string(),
        source: v.picklist(["file", "http"]),
        phase: v.string(),
        ready: v.boolean(),
        restarts: count,
      }),
    ),
  }),
  watch: v.strictObject({
    pods: count,
    listed: v.nullable(count),
    events: count,
    heldMs: count,
    reconnects: v.picklist([0, 1]),
    slow: v.nullable(v.strictObject({ dropped: v.boolean(), events: count })),
  }),
  "rate-limit": v.strictObject({
    burst: count,
    admitted: count,
    rejected: count,
    rounds: count,
    headroom: v.optional(headroom),
  }),
} as const;

const check = v.strictObject({
  check: v.string(),
  status,
  code,
  summary: line,
  skipped: v.optional(v.strictObject({ cause: code })),
  findings: v.array(finding),
  metrics: v.array(metric),
  data: v.record(v.string(), v.unknown()),
});

/** The whole output. */
export const reportSchema = v.strictObject({
  schema: v.literal("kubelet-probe/v1"),
  version: v.string(),
  profile: v.picklist(["nagios", "npd", "kube"]),
  status,
  code,
  summary: line,
  exitStatus: v.picklist([0, 1, 2, 3]),
  socket: v.string(),
  node: v.string(),
  startedAt: time,
  durationMs: count,
  tokensSpent: count,
  checks: v.pipe(v.array(check), v.minLength(1)),
});
