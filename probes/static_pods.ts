import { type Context, defineCheck, type Finding } from "../lib/check.ts";
import { formatDuration } from "../lib/duration.ts";
import { Fault } from "../lib/fault.ts";
import { matchesGlob } from "../lib/glob.ts";
import { illness } from "../lib/health.ts";
import { inventory } from "../lib/inventory.ts";
import type { ManifestFile, ManifestPod, Manifests } from "../lib/manifests.ts";
import {
  changedMs,
  type FoundManifests,
  isBroken,
  isUnread,
  type ManifestOptionValues,
  manifestOptions,
  nodeManifests,
  otherFolderHint,
  sourceDetails,
  unreadFiles,
} from "../lib/node_manifests.ts";
import { duration, listOf, oneOf, option, optionWithDefault, range } from "../lib/option.ts";
import { isStatic, type Pod } from "../lib/pod.ts";
import { alerts, demand, type Range, shortfall } from "../lib/range.ts";

// Beside the scan period: how long the kubelet may take from reading a manifest to listing its pod.
const takeUpMs = 10_000;

const podName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?\/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;

interface Demand {
  readonly expect: readonly string[] | undefined;
  readonly expectCount: Range | undefined;
  readonly manifests: string | undefined;
}

/** Whether what is expected comes from the manifests: where nothing else is demanded, or they are named. */
function goesByManifests({ expect, expectCount, manifests }: Demand): boolean {
  return manifests !== undefined || (expect === undefined && expectCount === undefined);
}

/** Whether the static pods that must run on this node do. */
export const staticPods = defineCheck({
  name: "static-pods",
  summary: "are the expected static pods there, running and ready (1 token, none with --source watch)",
  okCode: "StaticPodsHealthy",
  readsManifests: goesByManifests,
  metric: {
    name: "unhealthy",
    description: "static pods that are missing, failed or not ready",
    codes: ["StaticPodMissing", "StaticPodFailed", "StaticPodNotReady"],
  },
  options: {
    expect: option(
      ...listOf<string>([
        (text) => (podName.test(text) ? text : undefined),
        "namespace/name with the full pod name, in lower case",
      ]),
      { value: "NS/NAME,...", list: true, description: "the pods to expect, in place of those of the manifests" },
    ),
    expectCount: option(...range, {
      value: "RANGE",
      description: "how many static pods to expect, such as 4:4 or 1:; manifests then are only read if named",
    }),
    ...manifestOptions,
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
    const found = goesByManifests(options) ? await nodeManifests(context, options) : undefined;
    const pods = (await inventory(context, options.source)).filter(isStatic);

    const view = compare(pods, options.expect, found?.manifests);
    const reasons = found ?? (await reasonsFor(view, context, options));
    const findings: Finding[] = [
      ...missing(view, context, found, reasons?.manifests),
      ...refused(view),
      ...health(view, context, options.readyGrace),
      ...(found === undefined ? [] : stale(view, context, found)),
      ...(found === undefined ? [] : unreadFiles(found.manifests)),
      ...broken(view, options.ignore ?? []),
      ...unexpected(view, context, found),
      ...wrongCount(view, options.expectCount, context),
    ];

    const count = (code: Finding["code"]) => findings.filter((finding) => finding.code === code).length;
    // Of a number that is demanded, all that are short of it, and not twice those that are missing by name.
    const short = options.expectCount === undefined ? 0 : shortfall(options.expectCount, view.listed.size);
    const named = view.expected === undefined ? 0 : view.expected.size - view.judged.length;
    const [missingCount, failed, notReady] = [
      Math.max(short, named),
      count("StaticPodFailed"),
      count("StaticPodNotReady"),
    ];
    const expected = view.expected?.size ?? view.listed.size + short;
    const present = view.judged.length;
    const readyCount = present - failed - notReady;
    return {
      summary: summaryOf(expected, readyCount, view.listed.size, found),
      findings,
      metrics: [
        { name: "unhealthy", value: missingCount + failed + notReady, unit: "", min: 0 },
        { name: "expected", value: expected, unit: "", min: 0 },
        { name: "present", value: present, unit: "", min: 0 },
        { name: "ready", value: readyCount, unit: "", min: 0 },
        { name: "missing", value: missingCount, unit: "", min: 0 },
        { name: "failed", value: failed, unit: "", min: 0 },
        { name: "not_ready", value: notReady, unit: "", min: 0 },
        { name: "unexpected", value: count("StaticPodUnexpected"), unit: "", min: 0 },
        { name: "stale", value: count("StaticPodStale"), unit: "", min: 0 },
      ],
      details: found === undefined ? [] : [...sourceDetails(found), ...touched(view, found)],
      data: {
        manifests: found?.source.path ?? null,
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
  /** Pods of the manifests by namespace/name. */
  readonly manifestOf: ReadonlyMap<string, ManifestPod>;
  /** The files that say what is expected; none where that is demanded by name. */
  readonly files: readonly ManifestFile[];
  /** Files with a pod that the kubelet does not run, and that nothing else supplies. */
  readonly refusedFiles: readonly ManifestFile[];
}

/** An age far below zero is that of a clock which was set back since, and excuses nothing for as long as that was. */
function isRecent(ageMs: number, withinMs: number): boolean {
  return Math.abs(ageMs) < withinMs;
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
  const manifestOf = new Map(manifests?.pods.map((pod) => [keyOf(pod), pod]));
  const files = expect === undefined ? (manifests?.files ?? []) : [];
  const refusedFiles = files.filter(
    // A kubelet before 1.37 runs some of what this one refuses: what it lists is not held against it.
    ({ verdict, pod }) => verdict === "refused" && (pod === null || (!manifestOf.has(pod) && !listed.has(pod))),
  );
  let expected: Set<string> | undefined;
  if (expect !== undefined) expected = new Set(expect);
  else if (manifests !== undefined) {
    expected = new Set(manifestOf.keys());
    for (const { verdict, pod } of files) {
      if (verdict === "refused" && pod !== null && listed.has(pod)) expected.add(pod);
    }
    // Which pods the URL asks for is not known, but those that are there because of it are to be well.
    for (const [name, pod] of listed) if (pod.source === "http") expected.add(name);
  }
  const judged =
    expected === undefined ? [...listed.values()] : [...expected].flatMap((name) => listed.get(name) ?? []);
  return { listed, expected, judged, manifestOf, files, refusedFiles };
}

/** Of two pods with one name, the one that is not going away, then the one taken up later. */
function isSuccessor(pod: Pod, other: Pod): boolean {
  if ((pod.deletedMs === null) !== (other.deletedMs === null)) return pod.deletedMs === null;
  return (pod.seenMs ?? 0) > (other.seenMs ?? 0);
}

/** The manifests, to tell why a pod that is expected by name is not there; it is missing, whether they can be read or not. */
async function reasonsFor(view: View, context: Context, options: ManifestOptionValues) {
  if (view.expected === undefined || view.judged.length === view.expected.size) return undefined;
  try {
    return await nodeManifests(context, options);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

function missing(
  view: View,
  context: Context,
  found: FoundManifests | undefined,
  reasons: Manifests | undefined,
): Finding[] {
  const { listed, expected } = view;
  if (expected === undefined) return [];
  const others = otherNames(view, context.nodeName);
  const servedMs = context.nowMs - context.socket().bornMs;
  return [...expected]
    .filter((name) => !listed.has(name))
    .map((name): Finding => {
      const finding = (message: string, status?: "WARNING"): Finding => ({
        code: "StaticPodMissing",
        status,
        subject: name,
        message: `not listed by the kubelet${message}`,
      });
      const pod = reasons?.pods.find((one) => keyOf(one) === name);
      const refusal = reasons?.files.find((file) => file.verdict === "refused" && file.pod === name);
      const twin = pod?.uid && reasons?.pods.find((one) => one !== pod && one.uid === pod.uid);
      const ageMs = found && pod && context.nowMs - changedMs(found.manifests, pod);
      const other = others?.names.get(name);
      if (other !== undefined) {
        return finding(`: the kubelet calls this node ${others?.node}, not ${context.nodeName}; see --node-name`);
      }
      if (twin) {
        const files = `${pod.file} and ${twin.file}`;
        return finding(`: two manifests share the uid ${pod.uid} (${files}), and one of them is lost`);
      }
      if (ageMs !== undefined && isRecent(ageMs, found!.source.scanMs + takeUpMs)) {
        return finding(` yet: its manifest changed ${formatDuration(Math.max(0, ageMs))} ago`, "WARNING");
      }
      if (isRecent(servedMs, takeUpMs)) {
        // Before 1.37 the kubelet answers with what it has read so far.
        return finding(` yet: it has served for ${formatDuration(Math.max(0, servedMs))} only`, "WARNING");
      }
      if (pod === undefined && refusal !== undefined) return finding(`: it refuses ${refusal.file}, ${refusal.reason}`);
      if (found?.source.unset) return finding(`, which is given no folder of manifests and reads none`);
      return finding(pod === undefined ? "" : `, though ${pod.file} asks for it`);
    });
}

/**
 * What is there under another node's name, where the kubelet calls its node otherwise than it is called here: then none
 * of the expected pods is there, and all that are there name that one node.
 * @returns That node, and the names there by the names expected.
 */
function otherNames({ listed, expected }: View, nodeName: string) {
  const [node, ...more] = new Set([...listed.values()].map((pod) => pod.nodeName.toLowerCase()));
  if (expected === undefined || node === undefined || node === "" || node === nodeName || more.length > 0) {
    return undefined;
  }
  const names = new Map<string, string>();
  for (const name of expected) {
    if (listed.has(name)) return undefined;
    const other = name.endsWith(`-${nodeName}`) ? `${name.slice(0, -nodeName.length)}${node}` : "";
    if (listed.has(other)) names.set(name, other);
  }
  return { node, names };
}

function refused({ refusedFiles }: View): Finding[] {
  return refusedFiles.map(({ file, pod, reason }) => ({
    code: "ManifestRefused",
    subject: file,
    message: `the kubelet does not run ${pod ?? "its pod"}: ${reason}`,
  }));
}

/** A broken edit takes a pod away at the next scan, and no name is left that could be missed. */
function broken({ files }: View, ignore: readonly string[]): Finding[] {
  return files
    .filter((file) => isBroken(file) && !ignore.some((pattern) => matchesGlob(file.file, pattern)))
    .map(({ file, reason }) => ({
      code: "ManifestIgnored",
      subject: file,
      message: `${reason}; if it is meant to be a pod, that pod does not run`,
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

/**
 * Pods that run other images than their manifests ask for. Nothing else proves it: the kubelet sees no change in a file
 * that was only touched, or in a comment, and keeps `config.seen` and the UID (measured on 1.37.2).
 */
function stale({ judged, manifestOf }: View, { nowMs }: Context, { source, manifests }: FoundManifests): Finding[] {
  return judged.flatMap((pod) => {
    const manifest = manifestOf.get(keyOf(pod));
    if (manifest === undefined || manifest.images.join(" ") === pod.images.join(" ")) return [];
    if (isRecent(nowMs - changedMs(manifests, manifest), source.scanMs + takeUpMs)) return [];
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

/** Manifests that were written after the kubelet took up the pod of what they hold, which is worth a line, not a finding. */
function touched({ judged, manifestOf }: View, { source }: FoundManifests): string[] {
  return judged.flatMap((pod) => {
    const manifest = manifestOf.get(keyOf(pod));
    if (manifest === undefined || pod.seenMs === null) return [];
    const laterMs = manifest.modifiedMs - pod.seenMs;
    if (laterMs < source.scanMs + takeUpMs) return [];
    return [`${keyOf(pod)}: ${manifest.file} was written ${formatDuration(laterMs)} after the pod was taken up`];
  });
}

function unexpected(view: View, context: Context, found: FoundManifests | undefined): Finding[] {
  const { listed, expected, manifestOf } = view;
  // What a file that could not be read asks for is not known.
  if (expected === undefined || found?.manifests.files.some(isUnread)) return [];
  const renamed = new Set(otherNames(view, context.nodeName)?.names.values());
  const hint = found === undefined ? "" : otherFolderHint(found);
  return (
    [...listed]
      // A pod of a URL is explained by no manifest, and one under another node's name is told of as missing.
      .filter(
        ([name, pod]) => pod.source === "file" && !expected.has(name) && !manifestOf.has(name) && !renamed.has(name),
      )
      .map(([name, { phase }]) => ({
        code: "StaticPodUnexpected",
        subject: name,
        message: `it ${phase === "Running" ? "runs" : "is listed"}, and nothing asks for it${hint}`,
      }))
  );
}

function wrongCount({ listed }: View, wanted: Range | undefined, context: Context): Finding[] {
  if (wanted === undefined || !alerts(wanted, listed.size)) return [];
  const tooFew = shortfall(wanted, listed.size) > 0;
  const servedMs = context.nowMs - context.socket().bornMs;
  // Before 1.37 the kubelet answers with what it has read so far.
  const young = tooFew && isRecent(servedMs, takeUpMs);
  const message = `${listed.size} static pods are listed, demanded are ${demand(wanted)}`;
  return [
    {
      code: tooFew ? "StaticPodMissing" : "StaticPodUnexpected",
      status: young ? "WARNING" : undefined,
      subject: "",
      message: young ? `${message}; it has served for ${formatDuration(Math.max(0, servedMs))} only` : message,
    },
  ];
}

function summaryOf(expected: number, ready: number, listed: number, found: FoundManifests | undefined): string {
  if (found?.manifests.absent && expected === 0) {
    return `no static pods expected: ${found.manifests.path} does not exist${otherFolderHint(found)}`;
  }
  if (expected === 0) return `no static pods expected, and ${listed === 0 ? "none" : listed} there`;
  return `${ready} of ${expected} static pods run and are ready`;
}
