import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodsClient } from "../lib/client.ts";
import { Fault } from "../lib/fault.ts";
import { inventory } from "../lib/inventory.ts";
import type { WatchEvent } from "../lib/watch_event.ts";
import { fakeContext, pod } from "./probes/support.ts";

/** A client whose watches give these events, one list a watch; a fault ends one. */
function watching(...streams: readonly (readonly (WatchEvent | Fault)[])[]): Partial<PodsClient> {
  const rest = [...streams];
  return {
    async *watch() {
      for (const event of rest.shift() ?? []) {
        if (event instanceof Fault) throw event;
        yield event;
      }
      throw new Fault("WatchDropped", "no more");
    },
  };
}

const added = (name: string, uid: string): WatchEvent => ({ type: "added", pod: pod(name, { uid }) });
const synced: WatchEvent = { type: "synced" };
const namesOf = async (client: Partial<PodsClient>) =>
  (await inventory(fakeContext({ client }), "watch")).map(({ name }) => name);

describe("from a watch", () => {
  test("its first state, sorted by UID as a listing is", async () => {
    assert.deepEqual(await namesOf(watching([added("b", "2"), added("c", "3"), added("a", "1"), synced])), [
      "a",
      "b",
      "c",
    ]);
    assert.deepEqual(await namesOf(watching([synced])), []);
  });

  // The watcher registers before its snapshot, so changes may come in between.
  test("changes in between count", async () => {
    const changed: WatchEvent = { type: "modified", pod: pod("b2", { uid: "2" }) };
    const deleted: WatchEvent = { type: "deleted", pod: pod("a", { uid: "1" }) };
    assert.deepEqual(await namesOf(watching([added("a", "1"), added("b", "2"), changed, deleted, synced])), ["b2"]);
  });

  test("dropped or lost once: a second watch, from its start", async () => {
    for (const code of ["WatchDropped", "ConnectionLost"] as const) {
      assert.deepEqual(await namesOf(watching([added("a", "1"), new Fault(code, "x")], [added("b", "2"), synced])), [
        "b",
      ]);
    }
  });

  test("twice, or for another reason: the inventory cannot be had, and why", async () => {
    const lost = new Fault("ConnectionLost", "gone");
    await assert.rejects(namesOf(watching([lost], [lost])), (error) => {
      assert.ok(error instanceof Fault);
      assert.deepEqual(
        [error.code, error.details.cause, error.message],
        ["InventoryUnavailable", "ConnectionLost", "gone"],
      );
      return true;
    });
    await assert.rejects(namesOf(watching([new Fault("Initializing", "x")], [synced])), {
      code: "InventoryUnavailable",
    });
  });
});

test("from a listing, and no fault is an empty one", async () => {
  assert.deepEqual(
    (await inventory(fakeContext({ pods: [pod("a")] }), "list")).map(({ name }) => name),
    ["a"],
  );
  const context = {
    ...fakeContext(),
    listing: async () => {
      throw new Fault("RateLimited", "x");
    },
  };
  await assert.rejects(
    inventory(context, "list"),
    (error) => error instanceof Fault && error.details.cause === "RateLimited",
  );
  const broken = {
    ...fakeContext(),
    listing: async () => {
      throw new TypeError("a bug");
    },
  };
  await assert.rejects(inventory(broken, "list"), TypeError);
});
