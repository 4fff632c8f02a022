// Many pods and many clients.

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { PodsClient } from "../../lib/client.ts";
import { Fault } from "../../lib/fault.ts";
import { checkOf, metricOf, probeJson } from "../support.ts";
import { assertVerdict, createNode, expectVerdict, type Node, only, podManifest, profiles, until } from "./node.ts";
import { openRaw } from "./raw.ts";

// A pod of a real node has 5 to 20 KB; 500 of these are more than the 4 MiB that gRPC clients take by default.
const filling = "x".repeat(9000);

const unlimited = {
  maxPods: 1000,
  registryPullQPS: 0,
  serializeImagePulls: false,
  // The API server's; there is none, but the queue of events is the same.
  eventRecordQPS: 0,
};

/** A node with so many manifests, whose kubelet is not started yet. */
function crowd(t: TestContext, count: number): Promise<Node> {
  const names = Array.from({ length: count }, (_, i) => `pod-${String(i).padStart(3, "0")}`);
  const metadata = { annotations: { filling } };
  return createNode(t, Object.fromEntries(names.map((name) => [`${name}.yaml`, podManifest(name, { metadata })])));
}

/** A watch whose reader reads nothing until it is told to, and how it ends. */
function stalledWatch(t: TestContext, socket: string) {
  const session = openRaw(socket);
  t.after(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": "/v1alpha1.Pods/WatchPods",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(Buffer.alloc(5));
  stream.pause();
  const ended = new Promise<string>((resolve, reject) => {
    stream.once("trailers", (headers) => resolve(`${headers["grpc-status"]} ${headers["grpc-message"]}`));
    stream.once("response", (headers) => {
      if ("grpc-status" in headers) resolve(`${headers["grpc-status"]} ${headers["grpc-message"]}`);
    });
    stream.once("error", reject);
    session.once("error", reject);
  });
  const begun = new Promise<void>((resolve) => stream.once("response", () => resolve()));
  return { begun, ended, resume: () => void stream.resume() };
}

/** Lists again and again until it is told to stop. */
function lister(client: PodsClient) {
  let stopped = false;
  let listings = 0;
  let refused = 0;
  const sizes = new Set<number>();
  const done = (async () => {
    while (!stopped) {
      try {
        sizes.add((await client.list()).pods.length);
        listings++;
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== "RateLimited") throw error;
        refused++;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return { listings, refused, sizes };
  })();
  return {
    isFed: () => listings >= 5,
    stop() {
      stopped = true;
      return done;
    },
  };
}

describe("many pods and many clients", { concurrency: 2, ...only }, () => {
  test("110 pods", async (t) => {
    const node = await crowd(t, 110);
    await node.start({ config: unlimited });
    await t.test("all are listed and healthy", async () => {
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", { says: /^110 of 110 / });
      await expectVerdict(node, ["manifests", "--pods", "110:110"], "OK", "ManifestsClean");
      await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy", { says: /watch of 110 pods/ });
      await expectVerdict(node, ["rate-limit"], "OK", "RateLimitHeadroom");
    });

    await t.test("three clients list at once: each gets whole listings, and so does the probe", async () => {
      const listers = [1, 2, 3].map(() => lister(node.client()));
      await until("each client to have its listings", () => listers.every((one) => one.isFed()));
      await expectVerdict(node, ["ready"], "OK", "Ready", { meanwhile: ["RateLimited"], fleeting: true });
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", { fleeting: true });
      for (const one of listers) {
        const { sizes, listings, refused } = await one.stop();
        assert.deepEqual([...sizes], [110]);
        t.diagnostic(`a client had ${listings} listings, ${refused} refused`);
      }
    });

    await t.test("another client drains the limiter: the probe says RateLimited, never anything else", async () => {
      // One that is quick enough to leave next to nothing for others.
      await node.runtime(`drain ${node.socket}`);
      const allowed = { fleeting: true, meanwhile: ["RateLimited", "RateLimitHeadroom", "Ready"] };
      try {
        await expectVerdict(node, ["rate-limit"], "CRITICAL", "RateLimited", allowed);
        await expectVerdict(node, ["rate-limit", "-w", "3:", "-c", "0:"], "WARNING", "RateLimited", allowed);
        await expectVerdict(node, ["ready"], "WARNING", "RateLimited", allowed);
        await expectVerdict(node, ["socket"], "OK", "SocketSecure");
        await expectVerdict(node, ["static-pods", "--source", "watch"], "OK", "StaticPodsHealthy");
        await expectVerdict(node, ["watch", "--hold", "500ms"], "OK", "WatchHealthy");
        const sampled = ["rate-limit", "--samples", "3", "--interval", "200ms", "-w", "3:", "-c", "0:"];
        await expectVerdict(node, sampled, "WARNING", "RateLimited", { ...allowed, says: /refused/ });
      } finally {
        await node.runtime(`rest ${node.socket}`);
      }
      await expectVerdict(node, ["rate-limit"], "OK", "RateLimitHeadroom", { meanwhile: ["RateLimited"] });
    });
  });

  test("500 pods of 9 KB", async (t) => {
    const node = await crowd(t, 500);
    await node.start({ config: unlimited });
    await t.test("all are listed and healthy", async () => {
      // A kubelet of 1.37 is not ready before it has admitted every pod of its first scan.
      await until("500 pods", async () => (await node.pods()).size === 500);
      await expectVerdict(node, ["ready"], "OK", "Ready");
      await expectVerdict(node, ["static-pods"], "OK", "StaticPodsHealthy", { says: /^500 of 500 / });
    });

    await t.test("an answer of more than 4 MiB is sent, and refused by a client with that limit only", async () => {
      const { run } = await expectVerdict(node, ["ready"], "OK", "Ready");
      assert.ok(metricOf(run, "ready", "size")! > 4 << 20);
      await expectVerdict(node, ["ready", "--max-bytes", String(4 << 20)], "UNKNOWN", "AnswerTooLarge");
    });

    await t.test("a watcher that does not read is dropped with watch client channel closed, and counted", async () => {
      // Its initial listing is far more than what fits into its windows, and each pod that restarts is two events more.
      const slow = stalledWatch(t, node.socket);
      await slow.begun;
      const watches = () => node.log().split('"WatchPods called"').length;
      const before = watches();
      const runs = profiles.map((profile) =>
        probeJson(["watch", "--slow", "--hold", "10s", ...node.options, "--profile", profile]),
      );
      // Each has one watch that it reads and one that it does not.
      await until("the watches of the probe", () => watches() === before + 2 * runs.length);
      assert.equal(await node.runtime("exit * 1"), 500);
      await until("a dropped watcher", async () => {
        return ((await node.metrics()).get("kubelet_pod_watch_events_dropped_total") ?? 0) > 0;
      });
      slow.resume();
      assert.equal(await slow.ended, "8 watch client channel closed");
      for (const [i, run] of (await Promise.all(runs)).entries()) {
        assertVerdict(run, profiles[i]!, "OK", "WatchHealthy");
        assert.equal((checkOf(run, "watch").data.slow as { readonly dropped: boolean }).dropped, true, run.summary);
      }
    });
  });
});
