import { type Context, defineCheck, type Finding } from "../lib/check.ts";
import { formatDuration } from "../lib/duration.ts";
import { Fault } from "../lib/fault.ts";
import { illness } from "../lib/health.ts";
import type { ManifestFile, Manifests } from "../lib/manifests.ts";
import { findManifests, type ManifestSource } from "../lib/node.ts";
import { absolutePath, duration, listOf, oneOf, option, optionWithDefault, range } from "../lib/option.ts";
import { isStatic, type Pod } from "../lib/pod.ts";
import type { Range } from "../lib/range.ts";

// Beside the scan period: how long the kubelet may take from reading a manifest to listing its pod.
const takeUpMs = 10_000;

const podName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?\/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;

/** Whether the static pods that must run on this node do. */
export const staticPods = defineCheck({
  name: "static-pods",
  summary: "are the expected static pods there, running and ready (1 token, none with --source watch)",
  okCode: "StaticPodsHealthy",
  metric: {
    name: "unhealthy",
    description: "static pods that are missing, failed or not ready",
    codes: ["StaticPodMissing", "StaticPodFailed", "StaticPodNotReady"],
  },
  options: {
    expect: option(
      ...listOf<string>([(text) => (podName.test(text) ? text : undefined), "namespace/name with the full pod name"]),
      { value: "NS/NAME,...", list: true, description: "the pods to expect, in place of those of the manifests" },
    ),
    expectCount: option(...range, {
      value: "RANGE",
      description: "how many static pods to expect, such as 4:4 or 1:; manifests then are only read if named",
    }),
    manifests: option(...absolutePath, {
      value: "PATH",
      description: "folder or file of the static pod manifests (default: staticPodPath, or /etc/kubernetes/manifests)",
    }),
    kubeletConfig: option(...absolutePath, {
      value: "FILE",
      description: "the kubelet's configuration (default: config.yaml in its root folder, if it is there)",
    }),
    readyGrace: optionWithDefault(...duration, {
      value: "DURATION",
      fallback: "5m",
      description: "how long a pod may be not ready before that is CRITICAL",
    }),
    source: optionWithDefault(...oneOf("list", "watch"), {
      value: "list|watch",
      fallback: "list",
      description: "where the pods come from: ListPods, or the initial sync of WatchPods, which costs no token",
    }),
  },

  async run(context, options) {
    const demanded = options.expect !== undefined || options.expectCount !== undefined;
    const source =
      options.manifests !== undefined || !demanded
        ? await findManifests({ ...options, kubeletRoot: context.kubeletRoot })
        : undefined;
    const manifests = source && (await loadManifests(source, context));
    const pods = (await inventory(context, options.source)).filter(isStatic);

    const view = compare(pods, options.expect, manifests);
    const findings: Finding[] = [
      ...missing(view, context, source),
      ...refused(view),
      ...health(view, context, options.readyGrace),
      ...stale(view, context, source),
      ...unexpected(view, options.expect !== undefined || manifests !== undefined),
      ...wrongCount(pods, options.expectCount),
    ];

    const count = (code: Finding["code"]) => findings.filter((finding) => finding.code === code).length;
    const [missingCount, failed, notReady] = [
      count("StaticPodMissing"),
      count("StaticPodFailed"),
      count("StaticPodNotReady"),
    ];
    const expected = view.expected?.size ?? pods.length;
    const present = view.judged.length;
    return {
      summary: summaryOf(expected, present, manifests),
      findings,
      metrics: [
        { name: "unhealthy", value: missingCount + failed + notReady, unit: "", min: 0 },
        { name: "expected", value: expected, unit: "", min: 0 },
        { name: "present", value: present, unit: "", min: 0 },
        { name: "ready", value: present - failed - notReady, unit: "", min: 0 },
        { name: "missing", value: missingCount, unit: "", min: 0 },
        { name: "failed", value: failed, unit: "", min: 0 },
        { name: "not_ready", value: notReady, unit: "", min: 0 },
        { name: "unexpected", value: count("StaticPodUnexpected"), unit: "", min: 0 },
        { name: "stale", value: count("StaticPodStale"), unit: "", min: 0 },
      ],
      details: source === undefined ? [] : [`manifests: ${source.path} (${source.from})`, ...touched(view, source)],
      data: {
        manifests: source?.path ?? null,
        pods: pods.map((pod) => ({
          namespace: pod.namespace,
          name: pod.name,
          uid: pod.uid,
          source: pod.source,
          phase: pod.phase,
          ready: pod.ready,
          restarts: pod.containers.reduce((sum, { restarts }) => sum + restarts, 0),
        })),
      },
    };
  },
});

/** The static pods of the node beside those that should be there. */
interface View {
  /** By namespace/name; where the kubelet lists two, the one that stays. */
  readonly listed: ReadonlyMap<string, Pod>;
  /** Names of the pods that should be there; undefined where only their number is demanded. */
  readonly expected: ReadonlySet<string> | undefined;
  /** The pods whose health counts. */
  readonly judged: readonly Pod[];
  /** Files with a pod that the kubelet does not run, and that nothing else supplies. */
  readonly refusedFiles: readonly ManifestFile[];
  readonly manifests: Manifests | undefined;
}

function keyOf(pod: { readonly namespace: string; readonly name: string }): string {
  return `${pod.namespace}/${pod.name}`;
}

function compare(pods: readonly Pod[], expect: readonly string[] | undefined, manifests: Manifests | undefined): View {
  const listed = new Map<string, Pod>();
  for (const pod of pods) {
    const key = keyOf(pod);
    const other = listed.get(key);
    if (other === undefined || isSuccessor(pod, other)) listed.set(key, pod);
  }
  const fromFiles = manifests?.pods.map(keyOf);
  const names = expect ?? fromFiles;
  const supplied = new Set(fromFiles);
  const refusedFiles = (expect === undefined ? (manifests?.files ?? []) : []).filter(
    // A kubelet before 1.37 runs some of what this one refuses: what it lists is not held against it.
    ({ verdict, pod }) => verdict === "refused" && (pod === null || (!supplied.has(pod) && !listed.has(pod))),
  );
  const expected = names && new Set(names);
  if (expected !== undefined && expect === undefined) {
    for (const { verdict, pod } of manifests!.files) {
      if (verdict === "refused" && pod !== null && listed.has(pod)) expected.add(pod);
    }
  }
  const judged =
    expected === undefined ? [...listed.values()] : [...expected].flatMap((name) => listed.get(name) ?? []);
  return { listed, expected, judged, refusedFiles, manifests };
}

/** Of two pods with one name, the one that is not going away, then the one taken up later. */
function isSuccessor(pod: Pod, other: Pod): boolean {
  if ((pod.deletedMs === null) !== (other.deletedMs === null)) return pod.deletedMs === null;
  return (pod.seenMs ?? 0) > (other.seenMs ?? 0);
}

async function loadManifests(source: ManifestSource, context: Context): Promise<Manifests> {
  const { readManifests } = await import("../lib/manifests.ts");
  return readManifests(source.path, context.nodeName, {
    signal: AbortSignal.timeout(Math.ceil(context.remainingMs())),
  });
}

/** Lists the pods; what is in the way of that is the cause of InventoryUnavailable. */
async function inventory(context: Context, source: "list" | "watch"): Promise<readonly Pod[]> {
  try {
    if (source === "list") return (await context.listing()).pods;
    const pods = new Map<string, Pod>();
    for await (const event of context.client.watch({ timeoutMs: context.remainingMs() })) {
      if (event.type === "synced") break;
      if (event.type === "deleted") pods.delete(event.pod.uid);
      else pods.set(event.pod.uid, event.pod);
    }
    return [...pods.values()];
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault("InventoryUnavailable", error.message, { ...error.details, cause: error.code });
  }
}

function missing(
  { listed, expected, manifests }: View,
  context: Context,
  source: ManifestSource | undefined,
): Finding[] {
  if (expected === undefined) return [];
  const findings: Finding[] = [];
  const servedMs = context.nowMs - context.socket().bornMs;
  const nodeHint = otherNodeName(listed, expected, context.nodeName);
  for (const name of expected) {
    if (listed.has(name)) continue;
    const pod = manifests?.pods.find((found) => keyOf(found) === name);
    const ageMs = pod === undefined ? Number.POSITIVE_INFINITY : context.nowMs - pod.modifiedMs;
    const twin = pod?.uid && manifests?.pods.find((found) => found !== pod && found.uid === pod.uid);
    let message = "not listed by the kubelet";
    let status: "WARNING" | undefined;
    if (nodeHint !== undefined) {
      message += nodeHint;
    } else if (twin) {
      message += `: two manifests share the uid ${pod.uid} (${pod.file} and ${twin.file}), and one of them is lost`;
    } else if (source !== undefined && ageMs < source.scanMs + takeUpMs) {
      message += ` yet: its manifest changed ${formatDuration(Math.max(0, ageMs))} ago`;
      status = "WARNING";
    } else if (servedMs < takeUpMs) {
      // Before 1.37 the kubelet answers with what it has read so far.
      message += ` yet: it has served for ${formatDuration(Math.max(0, servedMs))} only`;
      status = "WARNING";
    } else if (pod !== undefined) {
      message += `, though ${pod.file} asks for it`;
    }
    findings.push({ code: "StaticPodMissing", status, subject: name, message });
  }
  return findings;
}

/** The node is called otherwise than it was looked for, if every static pod there is names another node. */
function otherNodeName(
  listed: ReadonlyMap<string, Pod>,
  expected: ReadonlySet<string>,
  nodeName: string,
): string | undefined {
  const names = new Set([...listed.values()].map((pod) => pod.nodeName.toLowerCase()));
  const [only] = names;
  if (names.size !== 1 || only === undefined || only === "" || only === nodeName) return undefined;
  const suffixOnly = [...expected].every(
    (name) => name.endsWith(`-${nodeName}`) && listed.has(`${name.slice(0, -nodeName.length)}${only}`),
  );
  return suffixOnly ? `: the kubelet calls this node ${only}, not ${nodeName}; see --node-name` : undefined;
}

function refused({ refusedFiles }: View): Finding[] {
  return refusedFiles.map(({ file, pod, reason }) => ({
    code: "ManifestRefused",
    subject: file,
    message: `the kubelet does not run ${pod ?? "its pod"}: ${reason}`,
  }));
}

function health({ judged }: View, { nowMs }: Context, graceMs: number): Finding[] {
  return judged.flatMap((pod) => {
    const ill = illness(pod, nowMs);
    if (ill === null) return [];
    const old = ill.sinceMs !== null && nowMs - ill.sinceMs > graceMs;
    return [
      {
        code: ill.kind === "failed" ? "StaticPodFailed" : "StaticPodNotReady",
        status: ill.kind === "notReady" && old ? "CRITICAL" : undefined,
        subject: keyOf(pod),
        message: ill.message,
      } satisfies Finding,
    ];
  });
}

function stale({ judged, manifests }: View, { nowMs }: Context, source: ManifestSource | undefined): Finding[] {
  if (manifests === undefined || source === undefined) return [];
  return judged.flatMap((pod) => {
    const manifest = manifests.pods.find((found) => keyOf(found) === keyOf(pod));
    if (manifest === undefined || nowMs - manifest.modifiedMs < source.scanMs + takeUpMs) return [];
    if (manifest.images.join(" ") === pod.images.join(" ")) return [];
    const other = pod.images.find((image) => !manifest.images.includes(image)) ?? pod.images[0] ?? "no image";
    return [
      {
        code: "StaticPodStale",
        subject: keyOf(pod),
        message: `it runs ${other}, which ${manifest.file} does not ask for`,
      } satisfies Finding,
    ];
  });
}

/**
 * Manifests written after the kubelet took up the pod of what they hold. The kubelet sees no change in a file that was
 * only touched, or in a comment, and keeps `config.seen` (measured on 1.37.2), so this alone does not make a pod stale.
 */
function touched({ judged, manifests }: View, { scanMs }: ManifestSource): string[] {
  return judged.flatMap((pod) => {
    const manifest = manifests?.pods.find((found) => keyOf(found) === keyOf(pod));
    if (manifest === undefined || pod.seenMs === null) return [];
    const laterMs = manifest.modifiedMs - pod.seenMs;
    if (laterMs < scanMs + takeUpMs) return [];
    return [`${keyOf(pod)}: ${manifest.file} was written ${formatDuration(laterMs)} after the pod was taken up`];
  });
}

function unexpected({ listed, expected }: View, explained: boolean): Finding[] {
  if (expected === undefined || !explained) return [];
  return (
    [...listed]
      // A pod of a URL is explained by no manifest.
      .filter(([name, pod]) => pod.source === "file" && !expected.has(name))
      .map(([name]) => ({ code: "StaticPodUnexpected", subject: name, message: "it runs, and nothing asks for it" }))
  );
}

function wrongCount(pods: readonly Pod[], wanted: Range | undefined): Finding[] {
  if (wanted === undefined) return [];
  const inRange = (pods.length >= wanted.start && pods.length <= wanted.end) !== wanted.inside;
  if (inRange) return [];
  return [
    {
      code: pods.length < wanted.start ? "StaticPodMissing" : "StaticPodUnexpected",
      subject: "",
      message: `${pods.length} static pods are listed, demanded are ${wanted.text}`,
    },
  ];
}

function summaryOf(expected: number, present: number, manifests: Manifests | undefined): string {
  if (manifests?.absent) return `no static pods expected: ${manifests.path} does not exist`;
  if (expected === 0) return "no static pods expected, and none there";
  return `${present} of ${expected} static pods run and are ready`;
}
