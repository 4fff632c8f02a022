// Follows the pods of a node over whatever becomes of the connection and of the kubelet.
//
// A listing is the truth (docs/pods-api.md): a watch says that a pod has ended while it is still listed, and of one that is
// taken away after that it says nothing more; it has no resourceVersion, so what was missed cannot be asked for. Hence a
// watch tells when to look, and what has changed in a pod that is there; what is there, a listing says.

import { type BackoffOptions, createBackoff, pause } from "./backoff.ts";
import type { PodsClient } from "./client.ts";
import { Fault } from "./fault.ts";
import type { Pod, PodField } from "./pod.ts";
import { passingCodes } from "./wait.ts";
import type { WatchEvent } from "./watch_event.ts";

/** How to follow the pods. */
export interface InventoryOptions<F extends PodField = PodField> {
  /** The fields that are decoded, all by default; `uid` always is. A change in any other field is none. */
  readonly fields?: readonly F[] | undefined;
  /**
   * How long at the most between two listings, in ms; about so, for the clients of a node are not to list in step. It
   * bounds how long a pod stays that had ended before it was taken away, and how long one is missed of which the kubelet
   * has sent no event yet. Default 60 000.
   */
  readonly relistMs?: number | undefined;
  /**
   * How long after an event that only a listing explains, such as that of a pod that has ended, there is one, in ms; several
   * such events are explained by one. Default 1000.
   */
  readonly settleMs?: number | undefined;
  /** How long one listing, or the start of a watch, may take, in ms; the client's own limit by default. */
  readonly timeoutMs?: number | undefined;
  /** The pauses after what interrupts it. Default from 50 ms to 5 s. */
  readonly backoff?: BackoffOptions | undefined;
  /**
   * Told of each fault that passes, and after how many ms the next try is made: until the next change, pods may be stale.
   * That change comes in any case, with nothing in it where nothing has changed.
   */
  readonly onFault?: ((fault: Fault, nextMs: number) => void) | undefined;
}

/** What has become of the inventory. */
export interface InventoryChange<P = Pod> {
  /** Every pod there is, by UID. The same map each time, kept up to date; empty only where the kubelet has listed none. */
  readonly pods: ReadonlyMap<string, P>;
  readonly added: readonly P[];
  /** As they are now. */
  readonly changed: readonly P[];
  /** As they were last. */
  readonly removed: readonly P[];
  /** It comes from the first listing after a start or an interruption: what went on in between is not known. */
  readonly resynced: boolean;
}

// Who was interrupted after less than this is interrupted again, and is to come back more slowly.
const steadyMs = 10_000;

/** `PodsClient.inventory`. */
export async function* follow<F extends PodField>(
  client: Pick<PodsClient, "list" | "watch">,
  signal: AbortSignal | undefined,
  options: InventoryOptions<F>,
): AsyncGenerator<InventoryChange<Pick<Pod, F | "uid">>, void, void> {
  type P = Pick<Pod, F | "uid">;
  const { onFault, timeoutMs } = options;
  const relistMs = options.relistMs ?? 60_000;
  const settleMs = options.settleMs ?? 1000;
  const fields = options.fields && [...new Set<F | "uid">([...options.fields, "uid"])];
  const pods = new Map<string, P>();
  const backoff = createBackoff(options.backoff);

  /** One watch from its start to its end, and the listings beside it. */
  async function* life(ending: AbortSignal): AsyncGenerator<InventoryChange<P>, never, void> {
    const events = client.watch<F | "uid">({ fields, timeoutMs, signal: ending });
    const listBackoff = createBackoff(options.backoff);
    let next: Promise<IteratorResult<WatchEvent<P>>> | undefined;
    let listing: Promise<readonly P[] | Fault> | undefined;
    let resynced = true;
    let isRefused = false;
    let isSynced = false;
    let ended: { readonly reason: unknown } | undefined;
    let listAtMs = Number.POSITIVE_INFINITY;
    // UIDs that an event was about since the listing under way was asked for: which of the two is newer is not known.
    const since = new Set<string>();

    const listBy = (atMs: number) => {
      listAtMs = Math.min(listAtMs, atMs);
    };
    const list = () => {
      since.clear();
      listAtMs = performance.now() + relistMs * (0.75 + Math.random() / 2);
      listing = client.list<F | "uid">({ fields, timeoutMs, signal: ending }).then(
        (listed) => listed.pods,
        (error) => {
          if (error instanceof Fault && passingCodes.has(error.code)) return error;
          throw error;
        },
      );
      // Whoever ends the life may not wait for it.
      listing.catch(() => {});
    };

    /** Takes an event in; what it changes. */
    const apply = (event: Exclude<WatchEvent<P>, { type: "synced" }>): InventoryChange<P> | undefined => {
      const { pod } = event;
      since.add(pod.uid);
      // Whether it is in the listing that this life begins with, or newer, only another one tells.
      if (resynced) return undefined;
      const known = pods.get(pod.uid);
      // It has ended, but may still be listed.
      if (event.type === "deleted") return void listBy(performance.now() + settleMs);
      // A pod that has been taken away may go on changing until it has ended: only a listing tells.
      if (known === undefined && event.type === "modified") return void listBy(performance.now() + settleMs);
      if (known !== undefined && isSame(known, pod)) return undefined;
      pods.set(pod.uid, pod);
      return {
        pods,
        added: known === undefined ? [pod] : [],
        changed: known === undefined ? [] : [pod],
        removed: [],
        resynced: false,
      };
    };

    /** Takes a listing in; what it changes. */
    const reconcile = (listed: readonly P[]): InventoryChange<P> => {
      const added: P[] = [];
      const changed: P[] = [];
      const removed: P[] = [];
      const present = new Set<string>();
      let isUnsettled = false;
      for (const pod of listed) {
        present.add(pod.uid);
        const known = pods.get(pod.uid);
        if (known !== undefined && isSame(known, pod)) continue;
        if (since.has(pod.uid)) isUnsettled = true;
        if (known === undefined) added.push(pod);
        else if (since.has(pod.uid)) continue;
        else changed.push(pod);
        pods.set(pod.uid, pod);
      }
      for (const [uid, pod] of pods) {
        if (present.has(uid)) continue;
        if (since.has(uid)) {
          isUnsettled = true;
          continue;
        }
        pods.delete(uid);
        removed.push(pod);
      }
      if (isUnsettled || (resynced && since.size > 0)) listBy(performance.now() + settleMs);
      const change = { pods, added, changed, removed, resynced };
      resynced = false;
      return change;
    };

    const step = async (): Promise<InventoryChange<P> | undefined> => {
      next ??= events.next();
      if (isSynced && listing === undefined && performance.now() >= listAtMs) list();
      const timer = isSynced && listing === undefined ? createTimer(listAtMs - performance.now()) : undefined;
      let came: "event" | "end" | "listing" | "time";
      try {
        came = await Promise.race([
          next.then(
            () => "event" as const,
            (error) => {
              ended ??= { reason: error };
              return "end" as const;
            },
          ),
          ...(listing === undefined ? [] : [listing.then(() => "listing" as const)]),
          ...(timer === undefined ? [] : [timer.done.then(() => "time" as const)]),
        ]);
      } finally {
        timer?.clear();
      }
      // What was asked for beside a watch that ends is an answer all the same.
      if (came === "end" && listing !== undefined && ended?.reason instanceof Fault) came = "listing";
      if (came === "end") throw ended?.reason;
      if (came === "listing") {
        const answer = await listing!;
        listing = undefined;
        if (answer instanceof Fault) {
          const nextMs = listBackoff.next();
          listAtMs = performance.now() + nextMs;
          isRefused = true;
          onFault?.(answer, nextMs);
          return undefined;
        }
        listBackoff.reset();
        const change = reconcile(answer);
        const isTold = change.resynced || isRefused || isAny(change);
        isRefused = false;
        return isTold ? change : undefined;
      }
      if (came === "time") return undefined;
      const { value: event } = await next;
      next = undefined;
      if (event!.type === "synced") {
        isSynced = true;
        listBy(0);
        return undefined;
      }
      // Those before it are repeated by the listing that follows it.
      return isSynced ? apply(event!) : undefined;
    };

    try {
      for (;;) {
        if (ended !== undefined) throw ended.reason;
        const change = await step();
        if (change !== undefined) yield change;
      }
    } finally {
      // Not waited for: it may be in the middle of a wait that only the signal ends.
      events.return(undefined as never).catch(() => {});
    }
  }

  for (;;) {
    const ending = new AbortController();
    const end = () => ending.abort(signal!.reason);
    if (signal?.aborted) return;
    signal?.addEventListener("abort", end);
    const startMs = performance.now();
    let fault: Fault;
    try {
      yield* life(ending.signal);
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof Fault) || !passingCodes.has(error.code)) throw error;
      fault = error;
    } finally {
      signal?.removeEventListener("abort", end);
      ending.abort();
    }
    if (performance.now() - startMs > steadyMs) backoff.reset();
    const nextMs = backoff.next();
    onFault?.(fault!, nextMs);
    try {
      await pause(nextMs, signal);
    } catch {
      return;
    }
  }
}

function isAny({ added, changed, removed }: InventoryChange<unknown>): boolean {
  return added.length + changed.length + removed.length > 0;
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function createTimer(ms: number): { readonly done: Promise<void>; clear(): void } {
  let timer: NodeJS.Timeout | undefined;
  const done = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, Math.min(2 ** 31 - 1, ms)));
  });
  return { done, clear: () => clearTimeout(timer) };
}
