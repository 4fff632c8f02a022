import { type Context, defineCheck, type Finding } from "../lib/check.ts";
import { matchesGlob } from "../lib/glob.ts";
import type { ManifestFile, Manifests } from "../lib/manifests.ts";
import {
  isUnread,
  manifestOptions,
  nodeManifests,
  otherFolderHint,
  sourceDetails,
  unreadFiles,
} from "../lib/node_manifests.ts";
import { option, range } from "../lib/option.ts";
import { isStatic } from "../lib/pod.ts";
import { alerts, demand, type Range, shortfall } from "../lib/range.ts";

/** What the kubelet makes of the static pod manifests, file by file. */
export const manifests = defineCheck({
  name: "manifests",
  summary: "what does the kubelet make of each static pod manifest (offline: no socket, no token)",
  okCode: "ManifestsClean",
  offline: true,
  readsManifests: () => true,
  metric: {
    name: "problems",
    description: "files that are refused, passed over or shadowed, or have more than one document",
    codes: ["ManifestRefused", "ManifestIgnored", "ManifestShadowed"],
  },
  options: {
    ...manifestOptions,
    pods: option(...range, {
      value: "RANGE",
      alone: true,
      description: "how many pods the manifests must give, such as 4:4 or 1:",
    }),
  },
  async run(context, options) {
    const found = await nodeManifests(context, options);
    const read = found.manifests;
    const problems = judge(read, options.ignore ?? [], context);
    const count = (verdict: ManifestFile["verdict"]) => read.files.filter((file) => file.verdict === verdict).length;
    return {
      summary: summaryOf(read, otherFolderHint(found)),
      findings: [...problems, ...unreadFiles(read), ...wrongCount(read, options.pods)],
      metrics: [
        { name: "problems", value: problems.length, unit: "", min: 0 },
        { name: "files", value: read.files.length, unit: "", min: 0 },
        { name: "pods", value: read.pods.length, unit: "", min: 0 },
        { name: "refused", value: count("refused"), unit: "", min: 0 },
        { name: "ignored", value: count("ignored"), unit: "", min: 0 },
        { name: "shadowed", value: count("shadowed"), unit: "", min: 0 },
      ],
      details: [...sourceDetails(found), ...read.files.map(describe)],
      data: {
        nodeName: context.nodeName,
        pods: read.pods.map(({ namespace, name, uid, images, file }) => ({ namespace, name, uid, images, file })),
        files: read.files.map(({ file, verdict, pod, reason }) => ({ file, verdict, pod, reason })),
      },
    };
  },
});

function describe({ file, verdict, pod, reason }: ManifestFile): string {
  return `${file}: ${[verdict, pod].filter(Boolean).join(" ")}${reason === "" ? "" : `, ${reason}`}`;
}

function judge(read: Manifests, ignore: readonly string[], context: Context): Finding[] {
  const supplied = new Set(read.pods.map((pod) => `${pod.namespace}/${pod.name}`));
  const listed = new Set(
    context
      .listed()
      ?.pods.filter(isStatic)
      .map((pod) => `${pod.namespace}/${pod.name}`),
  );
  const twins = twinsOf(read);
  return read.files.flatMap((found): Finding[] => {
    const { file, verdict, pod, reason } = found;
    if (isUnread(found)) return [];
    // A patch of a pod says that it is a Pod too.
    const spare = verdict === "refused" && pod !== null && supplied.has(pod);
    if (verdict === "ignored" || spare || (verdict === "pod" && found.furtherDocuments)) {
      if (ignore.some((pattern) => matchesGlob(file, pattern))) return [];
      const more =
        found.furtherDocuments && verdict !== "pod" ? "; the documents behind the first one are not read" : "";
      const what = spare ? `${pod} comes from another file, this one is refused: ${reason}` : reason;
      return [{ code: "ManifestIgnored", subject: file, message: `${what}${more}` }];
    }
    if (verdict === "refused") {
      if (pod !== null && listed.has(pod)) {
        const still = `${pod} runs, and a kubelet of 1.37 that reads this file would not run it: ${reason}`;
        return [{ code: "ManifestRefused", status: "WARNING", subject: file, message: still }];
      }
      const message = `the kubelet does not run ${pod ?? "its pod"}: ${reason}`;
      return [{ code: "ManifestRefused", subject: file, message }];
    }
    if (verdict === "shadowed") return [{ code: "ManifestShadowed", subject: file, message: `${pod}: ${reason}` }];
    const twin = twins.get(file);
    if (twin === undefined) return [];
    const message = `${pod}: its uid is that of ${twin}, and the kubelet keeps one of the two, no matter which`;
    return [{ code: "ManifestShadowed", subject: file, message }];
  });
}

/** Files whose pod has the uid of a pod before it: the kubelet keeps its pods by uid. */
function twinsOf({ pods }: Manifests): Map<string, string> {
  const first = new Map<string, string>();
  const twins = new Map<string, string>();
  for (const { uid, file } of pods) {
    if (uid === null) continue;
    const other = first.get(uid);
    if (other === undefined) first.set(uid, file);
    else twins.set(file, other);
  }
  return twins;
}

function wrongCount({ pods, files, absent, path }: Manifests, wanted: Range | undefined): Finding[] {
  if (wanted === undefined || !alerts(wanted, pods.length)) return [];
  const short = shortfall(wanted, pods.length);
  // They may be in files that could not be read, which is told: no failure is reported as pods that are not there.
  if (short > 0 && short <= files.filter(isUnread).length) return [];
  const demanded = `demanded are ${demand(wanted)}`;
  if (absent) {
    const message = `${path} does not exist, so there are no pods: ${demanded}`;
    return [{ code: "ManifestsUnreadable", status: "CRITICAL", subject: "", message }];
  }
  const code = short > 0 ? "StaticPodMissing" : "StaticPodUnexpected";
  return [{ code, subject: "", message: `the manifests give ${pods.length} pods, ${demanded}` }];
}

function summaryOf({ path, absent, pods, files }: Manifests, hint: string): string {
  if (absent) return `${path} does not exist, which is as good as an empty folder to the kubelet${hint}`;
  const many = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;
  if (pods.length === files.length) return `the kubelet makes ${many(pods.length, "pod")} of as many files`;
  return `the kubelet makes ${many(pods.length, "pod")} of ${many(files.length, "file")}`;
}
