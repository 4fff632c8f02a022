import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createPodsClient, type PodsClient } from "../lib/client.ts";
import type { Code } from "../lib/codes.ts";
import { Fault } from "../lib/fault.ts";
import { waitUntilReady } from "../lib/wait.ts";
import { withSimulator } from "./probes/support.ts";

/** A client whose calls fail with these codes, then succeed. */
function failing(...codes: readonly Code[]): Pick<PodsClient, "get"> {
  const rest = [...codes];
  return {
    get: async () => {
      const code = rest.shift();
      if (code !== undefined) throw new Fault(code, "x");
      return null;
    },
  };
}

const quick = { firstMs: 1, mostMs: 2 };

describe("waiting until the kubelet is ready", () => {
  test("outlasts what passes by itself, and tells of each try", async () => {
    const codes: Code[] = ["SocketMissing", "SocketDead", "ConnectionLost", "Initializing", "RateLimited", "Timeout"];
    const told: string[] = [];
    const onFault = ({ code }: Fault, nextMs: number) => {
      assert.ok(nextMs > 0 && nextMs <= 2);
      told.push(code);
    };
    assert.equal(await waitUntilReady(failing(...codes), undefined, { ...quick, onFault }), codes.length + 1);
    assert.deepEqual(told, codes);
  });

  test("does not wait for what does not pass", async () => {
    for (const code of ["PermissionDenied", "WrongService", "NotGrpc", "PathTooLong", "Undecodable"] as const) {
      await assert.rejects(waitUntilReady(failing("Initializing", code), undefined, quick), { code });
    }
  });

  test("ends with the signal's reason", async () => {
    const stop = new AbortController();
    const options = { firstMs: 3_600_000, mostMs: 3_600_000, onFault: () => stop.abort(new Error("enough")) };
    await assert.rejects(waitUntilReady(failing("Initializing"), stop.signal, options), /enough/);
  });

  test("of a kubelet that comes up: each try costs a token", () =>
    withSimulator("late", async (simulator) => {
      const client = createPodsClient({ socket: simulator.socket });
      const tries = await client.waitUntilReady(AbortSignal.timeout(60_000));
      assert.ok(tries > 1);
      assert.equal(client.tokensSpent, tries);
      assert.equal(simulator.admitted, tries);
      client.close();
    }));
});
