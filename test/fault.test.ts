import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Fault } from "../lib/fault.ts";

describe("Fault", () => {
  test("is an error with a code, a message and details", () => {
    const fault = new Fault("SocketDead", "Nobody listens on /s", { phase: "connect", errno: "ECONNREFUSED" });
    assert.ok(fault instanceof Error);
    assert.equal(fault.name, "Fault");
    assert.equal(fault.code, "SocketDead");
    assert.equal(fault.message, "Nobody listens on /s");
    assert.deepEqual(fault.details, { phase: "connect", errno: "ECONNREFUSED" });
    assert.equal(String(fault), "Fault: Nobody listens on /s");
  });

  test("has empty details where none are given", () => {
    assert.deepEqual(new Fault("BadUsage", "x").details, {});
  });
});
