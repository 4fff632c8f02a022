// Holds a watch for a while: what the check `watch` does.

import { createBackoff, pause } from "./backoff.ts";
import type { Context, Finding, Outcome } from "./check.ts";
import { Fault } from "./fault.ts";
import type { Pod } from "./pod.ts";
import type { WatchEvent } from "./watch_event.ts";

/** The options of the check. */
export interface HoldOptions {
  /** In ms. */
  readonly hold: number | undefined;
  /** Whether to let a second watch fall behind. */
  readonly slow: boolean;
}

/** What became of a watch that was not read. */
interface Slow {
  /** Whether the kubelet ended it, as it is to do with who does not keep up. */
  readonly dropped: boolean;
  /** Events it got, once it was read again. */
  readonly events: number;
}

const defaultHoldMs = 5000;

// A kubelet that restarts serves again after a quarter of a second; what is tried before that tells of nothing else.
const reconnectMs = 500;

// How long the end of a watch may take to come, once what was held back before it is read.
const dropGraceMs = 500;

const fields = ["namespace", "name", "uid"] as const;
type Named = Pick<Pod, (typeof fields)[number]>;
type Pods = ReadonlyMap<string, Named>;

/** A watch that has reached its first state and is read on. */
interface Held {
  readonly syncMs: number;
  /** The pods of its first state, by UID. */
  readonly first: Pods;
  /** UIDs that an event after it was about. */
  readonly changed: ReadonlySet<string>;
  /** Events after its first state. */
  readonly events: number;
  /** Settles once the watch has ended, with why. */
  readonly end: Promise<unknown>;
  close(): void;
}

/** The outcome of the check. */
export async function hold(context: Context, options: HoldOptions): Promise<Outcome> {
  const { remainingMs } = context;
  const details: string[] = [];
  let reconnects = 0;

  /** Goes on after the end of a watch, once in a run; undefined where that is not worth a try. */
  async function reopen(end: unknown): Promise<Held | undefined> {
    const pauseMs = createBackoff({ firstMs: reconnectMs }).next();
    const isPassing = end instanceof Fault && (end.code === "WatchDropped" || end.code === "ConnectionLost");
    if (!isPassing || reconnects > 0 || pauseMs >= remainingMs() / 2) return undefined;
    reconnects++;
    details.push(`opened again ${Math.round(pauseMs)} ms after the first watch: ${end.code}: ${end.message}`);
    await pause(pauseMs);
    return open(context);
  }

  let held = await open(context).catch(async (error) => {
    const again = await reopen(error);
    if (again === undefined) throw error;
    return again;
  });
  const opened = [held];
  let behind: Behind | undefined;
  try {
    const listed = await list(context, details);
    if (options.slow) behind = await fallBehind(context);
    let end: unknown;
    let heldMs = 0;
    for (;;) {
      const startMs = performance.now();
      // What remains is for a reconnect, a second look and the output.
      const holdMs = Math.min(options.hold ?? defaultHoldMs, remainingMs() * (options.hold === undefined ? 0.5 : 0.9));
      end = await endWithin(held, holdMs);
      heldMs = performance.now() - startMs;
      const again = end === undefined ? undefined : await reopen(end);
      if (again === undefined) break;
      held = again;
      opened.push(again);
    }
    if (end !== undefined && !(end instanceof Fault)) throw end;
    const slow = behind === undefined ? null : await behind.catchUp();
    if (slow !== null) details.push(slowDetail(slow));
    const findings: Finding[] =
      end !== undefined
        ? [{ code: end.code, subject: "", message: end.message }]
        : listed === undefined
          ? []
          : await divergence(context, held, opened, listed);
    const events = opened.reduce((sum, { events }) => sum + events, 0);
    const slowly = slow === null ? "" : `; one that was not read was ${slow.dropped ? "" : "not "}dropped`;
    return {
      summary: `a watch of ${held.first.size} pods synced and held for ${Math.round(heldMs / 100) / 10} s${slowly}`,
      findings,
      metrics: [
        { name: "sync", value: held.syncMs / 1000, unit: "s", min: 0 },
        { name: "pods", value: held.first.size, unit: "", min: 0 },
        { name: "events", value: events, unit: "", min: 0 },
      ],
      details,
      data: {
        pods: held.first.size,
        listed: listed?.size ?? null,
        events,
        heldMs: Math.round(heldMs),
        reconnects,
        slow,
      },
    };
  } finally {
    for (const each of opened) each.close();
    behind?.close();
  }
}

/** Opens a watch, waits for its first state and reads it on. */
async function open({ client, remainingMs }: Context): Promise<Held> {
  const stop = new AbortController();
  const startMs = performance.now();
  const events = client.watch({ fields, timeoutMs: remainingMs(), signal: stop.signal });
  const first = await firstState(events);
  const syncMs = performance.now() - startMs;
  const changed = new Set<string>();
  let count = 0;
  const end = (async (): Promise<unknown> => {
    try {
      for (;;) {
        const { value: event } = await events.next();
        count++;
        if (event !== undefined && event.type !== "synced") changed.add(event.pod.uid);
      }
    } catch (error) {
      return error;
    }
  })();
  return {
    syncMs,
    first,
    changed,
    get events() {
      return count;
    },
    end,
    close: () => stop.abort(),
  };
}

async function firstState(events: AsyncGenerator<WatchEvent<Named>, never, void>): Promise<Pods> {
  const pods = new Map<string, Named>();
  for (;;) {
    const { value: event } = await events.next();
    if (event.type === "synced") return pods;
    if (event.type === "deleted") pods.delete(event.pod.uid);
    else pods.set(event.pod.uid, event.pod);
  }
}

/** Why the watch ended within the time, or undefined where it held. */
async function endWithin({ end }: Held, ms: number): Promise<unknown> {
  const over = new AbortController();
  const held = pause(ms, over.signal);
  held.catch(() => {});
  const why = await Promise.race([end, held]);
  over.abort();
  return why;
}

/** The listing to compare with, or undefined where the rate limit allows none: that is for another check to report. */
async function list({ client, remainingMs }: Context, details: string[]): Promise<Pods | undefined> {
  const backoff = createBackoff();
  for (let tries = 1; ; tries++) {
    try {
      const { pods } = await client.list({ fields, timeoutMs: remainingMs() });
      return new Map(pods.map((pod) => [pod.uid, pod]));
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "RateLimited") throw error;
      if (tries === 4 || remainingMs() < 500) {
        details.push("not compared with a listing: the rate limit refuses it");
        return undefined;
      }
    }
    await pause(backoff.next());
  }
}

/**
 * What a watch and a listing must not differ in. Both are the kubelet's pods at their moment, so they may well differ: a
 * pod came, went, or has ended. What was there before and after a moment was there at it, though.
 */
async function divergence(context: Context, held: Held, opened: readonly Held[], listed: Pods): Promise<Finding[]> {
  const isChanged = (uid: string) => opened.some(({ changed }) => changed.has(uid));
  const before = opened[0]!.first;
  const unlisted = [...before.values()].filter(({ uid }) => !listed.has(uid) && !isChanged(uid));
  const unwatched = [...listed.values()].filter(({ uid }) => !held.first.has(uid) && !isChanged(uid));
  if (unlisted.length + unwatched.length === 0) return [];
  const again = await open(context);
  again.close();
  const stillUnwatched = unwatched.filter(({ uid }) => !again.first.has(uid));
  const later = stillUnwatched.length === 0 ? undefined : await list(context, []);
  const finding = ({ namespace, name }: Named, message: string): Finding => ({
    code: "WatchDiverged",
    subject: `${namespace}/${name}`,
    message,
  });
  return [
    ...unlisted
      .filter(({ uid }) => again.first.has(uid))
      .map((pod) => finding(pod, "in two watches, and not in the listing between them")),
    ...stillUnwatched
      .filter(({ uid }) => later?.has(uid))
      .map((pod) => finding(pod, "in two listings, and not in the watch between them")),
  ];
}

/** A watch that is not read after its first state. */
interface Behind {
  /** Reads on, to its end if there is one. */
  catchUp(): Promise<Slow>;
  close(): void;
}

async function fallBehind({ client, remainingMs }: Context): Promise<Behind> {
  const stop = new AbortController();
  // With one event waiting the server may send no more than the window it has: the rest is held up where it comes from.
  const events = client.watch({ fields, buffer: 1, timeoutMs: remainingMs(), signal: stop.signal });
  await firstState(events);
  return {
    async catchUp() {
      let count = 0;
      let timer: NodeJS.Timeout | undefined;
      try {
        for (;;) {
          clearTimeout(timer);
          timer = setTimeout(() => stop.abort(), Math.min(dropGraceMs, remainingMs() / 2));
          await events.next();
          count++;
        }
      } catch (error) {
        if (stop.signal.aborted) return { dropped: false, events: count };
        if (error instanceof Fault && error.code === "WatchDropped") return { dropped: true, events: count };
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => stop.abort(),
  };
}

function slowDetail({ dropped, events }: Slow): string {
  return dropped
    ? `the watch that was not read was dropped by the kubelet, which shows after the ${events} events it got before`
    : `the watch that was not read got its ${events} events late and was not dropped: the kubelet holds about 200 for it`;
}
