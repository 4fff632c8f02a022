import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodsClient } from "../lib/client.ts";
import { Fault } from "../lib/fault.ts";
import { hold } from "../lib/hold.ts";
import type { Pod } from "../lib/pod.ts";
import type { WatchEvent } from "../lib/watch_event.ts";
import { fakeContext, metricOf, pod } from "./probes/support.ts";

const synced: WatchEvent = { type: "synced" };
const of = (type: "added" | "modified" | "deleted", name: string): WatchEvent => ({ type, pod: pod(name) });

/** A client whose watches give these events and hold, and whose listings have these pods; the last one is repeated. */
function kubelet(
  watches: readonly (readonly (WatchEvent | Fault)[])[],
  listings: readonly (readonly string[] | Fault)[],
) {
  const counts = { watches: 0, listings: 0 };
  const client: Partial<PodsClient> = {
    async *watch(options) {
      const events = watches[Math.min(counts.watches++, watches.length - 1)]!;
      for (const event of events) {
        if (event instanceof Fault) throw event;
        yield event;
      }
      await new Promise((_, reject) => {
        options?.signal?.addEventListener("abort", () => reject(options.signal!.reason));
      });
      throw new Error("never");
    },
    async list() {
      const names = listings[Math.min(counts.listings++, listings.length - 1)]!;
      if (names instanceof Fault) throw names;
      return { pods: names.map((name): Pod => pod(name)), bytes: 0 };
    },
  };
  return { client, counts };
}

async function heldBy(
  watches: readonly (readonly (WatchEvent | Fault)[])[],
  listings: readonly (readonly string[] | Fault)[],
  options: Partial<Parameters<typeof hold>[1]> = {},
) {
  const { client, counts } = kubelet(watches, listings);
  const outcome = await hold(fakeContext({ client }), { hold: 20, slow: false, ...options });
  const findings = outcome.findings.map(({ code, subject }) => [code, subject].join(" ").trim());
  return { ...outcome, findings, counts };
}

describe("what a watch and a listing may differ in", () => {
  // The listing and the watch are the kubelet's pods at two moments: docs/pods-api.md.
  for (const [name, watches, listings] of [
    ["nothing", [[of("added", "a"), synced]], [["a"]]],
    ["no pod at all", [[synced]], [[]]],
    ["a pod that came in between, and is ADDED later", [[synced, of("added", "a")]], [["a"]]],
    [
      "a replacement that is listed 12 s before its ADDED, and then in a watch",
      [[synced], [of("added", "a"), synced]],
      [["a"]],
    ],
    ["a pod that came and went", [[synced], [synced]], [["a"], []]],
    ["a pod that went, and DELETED came", [[of("added", "a"), synced, of("deleted", "a")]], [[]]],
    ["a pod that was taken away without an event", [[of("added", "a"), synced], [synced]], [[]]],
    [
      "a pod that has ended, DELETED while it is still listed",
      [[of("added", "a"), synced, of("deleted", "a")]],
      [["a"]],
    ],
    [
      "a pod that ended before the first state was complete",
      [[of("added", "a"), of("deleted", "a"), synced], [synced]],
      [["a"], []],
    ],
  ] as const) {
    test(name, async () => {
      const { findings } = await heldBy(watches, listings);
      assert.deepEqual(findings, []);
    });
  }
});

describe("what they must not differ in", () => {
  test("in two watches, and not in the listing between them", async () => {
    const first = [of("added", "a"), of("added", "b"), synced];
    const { findings, counts } = await heldBy([first], [["a"]]);
    assert.deepEqual(findings, ["WatchDiverged kube-system/b"]);
    assert.deepEqual(counts, { watches: 2, listings: 1 });
  });

  test("in two listings, and not in the watch between them", async () => {
    const { findings, counts } = await heldBy([[of("added", "a"), synced]], [["a", "b"]]);
    assert.deepEqual(findings, ["WatchDiverged kube-system/b"]);
    assert.deepEqual(counts, { watches: 2, listings: 2 });
  });

  test("another pod of the same name is another pod", async () => {
    const { client } = kubelet([[{ type: "added", pod: pod("a", { uid: "old" }) }, synced]], [["a"]]);
    const { findings } = await hold(fakeContext({ client }), { hold: 20, slow: false });
    assert.deepEqual(
      findings.map(({ message }) => message.split(",")[0]),
      ["in two listings", "in two watches"].sort().reverse(),
    );
  });
});

test("a rate limit that refuses the listing is no finding: nothing is compared", async () => {
  const { findings, details, data } = await heldBy([[of("added", "a"), synced]], [new Fault("RateLimited", "x")]);
  assert.deepEqual([findings, data?.listed], [[], null]);
  assert.match(details!.join(), /not compared/);
});

test("any other fault of the listing is the check's", async () => {
  await assert.rejects(heldBy([[synced]], [new Fault("Undecodable", "x")]), { code: "Undecodable" });
});

test("lost once, by a kubelet that restarts: opened again; twice: reported", async () => {
  const lost = new Fault("ConnectionLost", "gone");
  const once = await heldBy(
    [
      [synced, lost],
      [of("added", "a"), synced],
    ],
    [[]],
  );
  assert.deepEqual([once.findings, once.data?.reconnects, metricOf(once, "pods")], [[], 1, 1]);
  const early = await heldBy([[lost], [synced]], [[]]);
  assert.deepEqual([early.findings, early.data?.reconnects], [[], 1]);
  const twice = await heldBy([[synced, lost]], [[]]);
  assert.deepEqual(twice.findings, ["ConnectionLost"]);
  await assert.rejects(heldBy([[lost]], [[]]), { code: "ConnectionLost" });
});

test("what does not pass is not tried again", async () => {
  const { findings, counts } = await heldBy([[synced, new Fault("Undecodable", "x")]], [[]]);
  assert.deepEqual([findings, counts.watches], [["Undecodable"], 1]);
});

describe("--slow", () => {
  const dropped = new Fault("WatchDropped", "watch client channel closed");

  test("a drop is seen, after what was sent before it", async () => {
    const { data, details, findings } = await heldBy(
      [[synced], [synced, of("modified", "a"), of("modified", "a"), dropped]],
      [[]],
      { slow: true },
    );
    assert.deepEqual([data?.slow, findings], [{ dropped: true, events: 2 }, []]);
    assert.match(details!.join(), /was dropped by the kubelet, which shows after the 2 events/);
  });

  test("too few events for a drop: said, and no finding", async () => {
    const { data, summary, findings } = await heldBy([[synced], [synced, of("modified", "a")]], [[]], { slow: true });
    assert.deepEqual([data?.slow, findings], [{ dropped: false, events: 1 }, []]);
    assert.match(summary, /one that was not read was not dropped$/);
  });
});
