import { type Context, defineCheck } from "../lib/check.ts";
import { formatDuration } from "../lib/duration.ts";
import { Fault } from "../lib/fault.ts";
import { defaultRoot, fromKubelet, socketBelow } from "../lib/node.ts";
import { listOf, optionWithDefault, wholeNumber } from "../lib/option.ts";
import { isMountPoint } from "../lib/refusal.ts";
import { maxPathBytes } from "../lib/socket.ts";

/** Whether the socket is there, whose it is, who else could use or replace it, and whether somebody answers. */
export const socket = defineCheck({
  name: "socket",
  summary: "is the socket there, who else could use or replace it, does somebody answer (no token)",
  okCode: "SocketSecure",
  options: {
    owner: optionWithDefault(...listOf(wholeNumber(0, 4294967294)), {
      value: "UID,...",
      fallback: "0",
      list: true,
      description: "user IDs that may own the socket and the folders on the way to it, besides root",
    }),
  },
  async run(context, { owner }) {
    const { stats, bornMs } = context.socket();
    // What `ready` does without is not loaded for it.
    const { readAccounts } = await import("../lib/accounts.ts");
    const { findExposure, octal } = await import("../lib/exposure.ts");
    const { walk } = await import("../lib/reach.ts");
    const { confinement } = await import("../lib/confinement.ts");
    const steps = walk(context.socketPath);
    const { findings, others } = findExposure(steps, readAccounts(), new Set([0, ...owner]));
    await connect(context);

    const links = steps.map(({ entry }) => entry).filter(({ target }) => target !== undefined);
    const folders = steps
      .at(-1)!
      .folders.map(({ path, stats: of }) => ({ path, mode: octal(of), uid: of.uid, gid: of.gid }));
    const pathBytes = Buffer.byteLength(context.socketPath);
    const mounted = isMountPoint(context.socketPath);
    const changed = stats.ctimeMs - bornMs > changeMs ? `, changed ${ago(context, stats.ctimeMs)} ago` : "";
    // Where --severity has what was found count as OK.
    const access =
      findings.length === 0
        ? "only its owner can use or replace the socket"
        : "who else can use or replace the socket counts as OK";
    return {
      // It works, and nobody is let in by it: no finding. But it will be dead, and then nobody remembers the mount.
      summary: `a server answers, and ${access}${mounted ? `; ${mountAdvice}` : ""}`,
      findings,
      metrics: [],
      details: [
        `mode ${octal(stats)}, owner ${stats.uid}:${stats.gid}, served for ${ago(context, bornMs)}${changed}`,
        `besides its owner and root can connect: ${others.length === 0 ? "nobody" : others.join(", ")}`,
        `on the way: ${folders.map(({ path, mode, uid, gid }) => `${path} ${mode} ${uid}:${gid}`).join(", ")}`,
        ...links.map(({ path, target }) => `link: ${path} leads to ${target}`),
        `path: ${pathBytes} of at most ${maxPathBytes} bytes`,
        ...(mounted ? [mountAdvice] : []),
        ...confinement(),
      ],
      data: {
        mode: octal(stats),
        uid: stats.uid,
        gid: stats.gid,
        bornAt: new Date(bornMs).toISOString(),
        changedAt: new Date(stats.ctimeMs).toISOString(),
        pathBytes,
        mounted,
        others,
        folders,
        links: links.map(({ path, target }) => ({ path, target })),
      },
    };
  },
});

const mountAdvice = "the file itself is mounted here and goes dead when the kubelet restarts: mount its folder";

// The kubelet makes the file under another name and renames it at once; a later change is somebody else's.
const changeMs = 1000;

function ago({ nowMs }: Context, timeMs: number): string {
  return formatDuration(Math.max(0, nowMs - timeMs));
}

/** @throws Fault; of a dead socket one that says where the kubelet that runs has its own. */
async function connect(context: Context): Promise<void> {
  try {
    await context.client.connect({ timeoutMs: context.remainingMs() });
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "SocketDead" || context.kubelet !== undefined) throw error;
    const { findKubelet } = await import("../lib/kubelet_process.ts");
    const { kubelet } = await findKubelet();
    const other = kubelet && socketBelow(kubelet.rootDir ?? defaultRoot);
    if (other === undefined || other === context.socketPath) throw error;
    const from = kubelet?.rootDir === undefined ? `process ${kubelet?.pid}` : fromKubelet("--root-dir", kubelet);
    throw new Fault(error.code, `${error.message}; the kubelet that runs serves ${other} (${from})`, error.details);
  }
}
