import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodsClient } from "../lib/client.ts";
import { createPodsClient } from "../lib/client.ts";
import type { Code } from "../lib/codes.ts";
import { Fault } from "../lib/fault.ts";
import { follow, type InventoryChange, type InventoryOptions } from "../lib/follow.ts";
import type { Pod } from "../lib/pod.ts";
import type { WatchEvent } from "../lib/watch_event.ts";
import { pod, withSimulator } from "./probes/support.ts";

// Bun ends a test after 5 s unless told otherwise.
const slow = { timeout: 60_000 };

/**
 * A kubelet in a few lines: its pods are a listing, what is told to its watchers are events, and both can be made to fail.
 * A watch that begins tells what is listed, as the kubelet's does.
 */
function createKubelet(...names: readonly string[]) {
  let pods = new Map(names.map((name) => [name, pod(name, { uid: name })]));
  let refusal: Code | undefined;
  const open = new Set<{ push(event: WatchEvent | Fault): void }>();
  const counts = { lists: 0, watches: 0 };
  const gates: (() => void)[] = [];
  let held = false;
  const client: Pick<PodsClient, "list" | "watch"> = {
    async list() {
      counts.lists++;
      if (refusal !== undefined) throw new Fault(refusal, "refused");
      const listed = [...pods.values()];
      if (held) await new Promise<void>((resolve) => gates.push(resolve));
      return { pods: listed, bytes: 0 };
    },
    async *watch(options) {
      counts.watches++;
      if (refusal !== undefined) throw new Fault(refusal, "refused");
      const queue: (WatchEvent | Fault)[] = [...pods.values()].map((each) => ({ type: "added", pod: each }));
      queue.push({ type: "synced" });
      let wake = () => {};
      const watcher = {
        push(event: WatchEvent | Fault) {
          queue.push(event);
          wake();
        },
      };
      open.add(watcher);
      const { signal } = options!;
      signal!.addEventListener("abort", () => wake());
      try {
        for (;;) {
          if (signal!.aborted) throw signal!.reason;
          const next = queue.shift();
          if (next instanceof Fault) throw next;
          if (next !== undefined) yield next;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      } finally {
        open.delete(watcher);
      }
    },
  };
  const tell = (event: WatchEvent | Fault) => {
    for (const watcher of open) watcher.push(event);
  };
  return {
    client,
    counts,
    get watchers() {
      return open.size;
    },
    tell,
    set(name: string, differs: Partial<Pod> = {}) {
      const isNew = !pods.has(name);
      pods.set(name, pod(name, { uid: name, ...differs }));
      tell({ type: isNew ? "added" : "modified", pod: pods.get(name)! });
    },
    /** Taken away without a word. */
    forget: (name: string) => void pods.delete(name),
    remove(name: string) {
      const gone = pods.get(name)!;
      pods.delete(name);
      tell({ type: "deleted", pod: gone });
    },
    /** Ended, and listed still. */
    end: (name: string) => tell({ type: "deleted", pod: pods.get(name)! }),
    drop: (code: Code = "WatchDropped") => tell(new Fault(code, "dropped")),
    restart(...others: readonly string[]) {
      pods = new Map(others.map((name) => [name, pod(name, { uid: name })]));
      tell(new Fault("ConnectionLost", "restarted"));
    },
    refuse(code: Code | undefined) {
      refusal = code;
    },
    /** Keeps the answers to listings back, as they were made, until they are let go. */
    hold() {
      held = true;
    },
    release() {
      held = false;
      for (const go of gates.splice(0)) go();
    },
  };
}

const named = (pods: Iterable<{ readonly name: string }>) => [...pods].map(({ name }) => name).sort();

function told({ pods, added, changed, removed, resynced }: InventoryChange) {
  return {
    pods: named(pods.values()).join(),
    ...(added.length > 0 && { added: named(added).join() }),
    ...(changed.length > 0 && { changed: named(changed).join() }),
    ...(removed.length > 0 && { removed: named(removed).join() }),
    ...(resynced && { resynced }),
  };
}

/** Follows a kubelet; `next` is its next change. */
async function following(
  kubelet: ReturnType<typeof createKubelet>,
  use: (next: () => Promise<ReturnType<typeof told>>, faults: string[]) => Promise<void>,
  options: InventoryOptions = {},
) {
  const stop = new AbortController();
  const faults: string[] = [];
  const onFault = ({ code }: Fault) => faults.push(code);
  const changes = follow(kubelet.client, stop.signal, { backoff: { firstMs: 1, mostMs: 5 }, onFault, ...options });
  try {
    await use(async () => told((await changes.next()).value!), faults);
    const rest = changes.next();
    stop.abort();
    for (let answer = await rest; !answer.done; answer = await changes.next());
    assert.equal(kubelet.watchers, 0, "no watch is left open");
  } finally {
    stop.abort();
  }
}

describe("the inventory", () => {
  test("begins with a listing, and goes on with its changes", async () => {
    const kubelet = createKubelet("a", "b");
    await following(kubelet, async (next) => {
      assert.deepEqual(await next(), { pods: "a,b", added: "a,b", resynced: true });
      kubelet.set("c");
      assert.deepEqual(await next(), { pods: "a,b,c", added: "c" });
      kubelet.set("a", { ready: false });
      assert.deepEqual(await next(), { pods: "a,b,c", changed: "a" });
      assert.deepEqual(kubelet.counts, { lists: 1, watches: 1 });
    });
  });

  test("is empty where the kubelet lists no pod, and that is told", async () => {
    await following(createKubelet(), async (next) => {
      assert.deepEqual(await next(), { pods: "", resynced: true });
    });
  });

  // The watcher registers before its snapshot: duplicates follow the first state.
  test("an event that repeats what is known is no change", async () => {
    const kubelet = createKubelet("a");
    await following(kubelet, async (next) => {
      await next();
      kubelet.tell({ type: "added", pod: pod("a", { uid: "a" }) });
      kubelet.tell({ type: "modified", pod: pod("a", { uid: "a" }) });
      kubelet.set("b");
      assert.deepEqual(await next(), { pods: "a,b", added: "b" });
    });
  });

  test("a pod that went is taken out once a listing lacks it", slow, async () => {
    const kubelet = createKubelet("a", "b");
    await following(kubelet, async (next) => {
      await next();
      kubelet.remove("a");
      assert.deepEqual(await next(), { pods: "b", removed: "a" });
    });
  });

  // DELETED means terminated: the kubelet may list it still, and then says nothing when it is taken away.
  test("a pod that has ended stays for as long as it is listed", slow, async () => {
    const kubelet = createKubelet("a", "b");
    await following(
      kubelet,
      async (next) => {
        await next();
        kubelet.end("a");
        kubelet.set("b", { ready: false });
        assert.deepEqual(await next(), { pods: "a,b", changed: "b" });
        kubelet.forget("a");
        assert.deepEqual(await next(), { pods: "b", removed: "a" });
      },
      { relistMs: 50 },
    );
  });

  // A replacement static pod was listed 12 s before its ADDED.
  test("a pod of which no event came is found by the next listing", async () => {
    const kubelet = createKubelet("a");
    await following(
      kubelet,
      async (next) => {
        await next();
        const { client } = createKubelet("a", "b");
        kubelet.client.list = client.list;
        assert.deepEqual(await next(), { pods: "a,b", added: "b" });
      },
      { relistMs: 50 },
    );
  });

  // A pod that is taken away first and ends later goes on sending MODIFIED.
  test("a change of a pod that is not known does not bring it back", slow, async () => {
    const kubelet = createKubelet("a");
    await following(kubelet, async (next) => {
      await next();
      kubelet.tell({ type: "modified", pod: pod("ghost", { uid: "ghost" }) });
      kubelet.set("b");
      assert.deepEqual(await next(), { pods: "a,b", added: "b" });
    });
  });

  test("what an event told while a listing was under way is not undone by it", slow, async () => {
    const kubelet = createKubelet("a");
    await following(
      kubelet,
      async (next) => {
        await next();
        kubelet.hold();
        const lists = kubelet.counts.lists;
        const coming = next();
        while (kubelet.counts.lists === lists) await new Promise((resolve) => setTimeout(resolve, 5));
        kubelet.set("b");
        assert.deepEqual(await coming, { pods: "a,b", added: "b" });
        kubelet.release();
        kubelet.set("c");
        assert.deepEqual(await next(), { pods: "a,b,c", added: "c" });
      },
      { relistMs: 20 },
    );
  });

  test("events before the first listing is there wait for another one", slow, async () => {
    const kubelet = createKubelet("a");
    kubelet.hold();
    await following(kubelet, async (next) => {
      const first = next();
      while (kubelet.counts.lists === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      kubelet.set("b");
      kubelet.remove("a");
      await new Promise((resolve) => setTimeout(resolve, 20));
      kubelet.release();
      assert.deepEqual(await first, { pods: "a", added: "a", resynced: true });
      assert.deepEqual(await next(), { pods: "b", added: "b", removed: "a" });
    });
  });
});

describe("whatever interrupts it", () => {
  test("a dropped watch: listed again, and the difference told", async () => {
    const kubelet = createKubelet("a", "b");
    await following(kubelet, async (next, faults) => {
      await next();
      kubelet.drop();
      assert.deepEqual(await next(), { pods: "a,b", resynced: true });
      kubelet.restart("b", "c");
      assert.deepEqual(await next(), { pods: "b,c", added: "c", removed: "a", resynced: true });
      assert.deepEqual(faults, ["WatchDropped", "ConnectionLost"]);
    });
  });

  test("nothing is told, and nothing forgotten, while the kubelet is away or not ready", async () => {
    for (const code of ["SocketDead", "SocketMissing", "Initializing", "RateLimited", "Timeout"] as const) {
      const kubelet = createKubelet("a", "b");
      await following(kubelet, async (next, faults) => {
        await next();
        kubelet.refuse(code);
        kubelet.drop("ConnectionLost");
        const coming = next();
        while (faults.length < 4) await new Promise((resolve) => setTimeout(resolve, 1));
        kubelet.refuse(undefined);
        assert.deepEqual(await coming, { pods: "a,b", resynced: true });
        assert.deepEqual([...new Set(faults)], ["ConnectionLost", code]);
      });
    }
  });

  test("a listing that is refused is made again, on the same watch", async () => {
    const kubelet = createKubelet("a");
    let refusals = 3;
    const { list } = kubelet.client;
    kubelet.client.list = (options) => {
      if (refusals-- > 0) return Promise.reject(new Fault("RateLimited", "x"));
      return list(options);
    };
    await following(kubelet, async (next, faults) => {
      assert.deepEqual(await next(), { pods: "a", added: "a", resynced: true });
      assert.deepEqual(faults, ["RateLimited", "RateLimited", "RateLimited"]);
      assert.equal(kubelet.counts.watches, 1);
    });
  });

  test("once a refused listing has been made up for, that is told though nothing has changed", slow, async () => {
    const kubelet = createKubelet("a");
    await following(
      kubelet,
      async (next, faults) => {
        assert.deepEqual(await next(), { pods: "a", added: "a", resynced: true });
        kubelet.refuse("RateLimited");
        const change = next();
        while (faults.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        kubelet.refuse(undefined);
        // Were it not told, this change would be the next one.
        let isTold = false;
        void change.then(() => {
          isTold = true;
        });
        const { lists } = kubelet.counts;
        while (!isTold && kubelet.counts.lists < lists + 3) await new Promise((resolve) => setTimeout(resolve, 1));
        kubelet.set("b");
        assert.deepEqual(await change, { pods: "a" });
      },
      { relistMs: 1 },
    );
  });

  test("what does not pass by itself ends it", async () => {
    for (const code of ["PermissionDenied", "WrongService", "NotGrpc", "AnswerTooLarge"] as const) {
      const kubelet = createKubelet("a");
      kubelet.refuse(code);
      await assert.rejects(follow(kubelet.client, undefined, {}).next(), { code });
    }
  });

  test("whoever stops iterating leaves no watch behind", async () => {
    const kubelet = createKubelet("a");
    for await (const { resynced } of follow(kubelet.client, undefined, {})) {
      if (resynced) kubelet.set("b");
      else break;
    }
    while (kubelet.watchers > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    const stop = new AbortController();
    stop.abort();
    assert.equal((await follow(kubelet.client, stop.signal, {}).next()).done, true);
  });
});

test("over a real socket, with chosen fields: a watch that is dropped each time still gives an inventory", slow, () =>
  withSimulator("watch-dropped", async ({ socket }) => {
    const client = createPodsClient({ socket, budget: { perSecond: 50, burst: 5 } });
    const stop = new AbortController();
    let resyncs = 0;
    for await (const { pods, resynced } of client.inventory(stop.signal, {
      fields: ["name"],
      backoff: { mostMs: 1 },
    })) {
      assert.equal(pods.size, 10);
      assert.deepEqual(Object.keys([...pods.values()][0]!), ["name", "uid"]);
      if (resynced && ++resyncs === 3) stop.abort();
    }
    assert.equal(resyncs, 3);
    client.close();
  }),
);

test("a kubelet that is initializing never gives an empty inventory", slow, () =>
  withSimulator("late", async ({ socket }) => {
    const client = createPodsClient({ socket });
    const faults: string[] = [];
    const stop = new AbortController();
    const onFault = ({ code }: Fault) => faults.push(code);
    for await (const { pods } of client.inventory(stop.signal, { onFault })) {
      assert.equal(pods.size, 10);
      stop.abort();
    }
    assert.ok(faults.length > 0);
    assert.deepEqual([...new Set(faults)], ["Initializing"]);
    client.close();
  }),
);
