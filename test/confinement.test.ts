import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { confinement } from "../lib/confinement.ts";
import { inFolder } from "./probes/support.ts";

test("what is known of a security module", () =>
  inFolder((folder) => {
    const files = { enforce: join(folder, "enforce"), label: join(folder, "current") };
    assert.deepEqual(confinement(files), []);
    writeFileSync(files.label, "unconfined\n");
    assert.deepEqual(confinement(files), []);
    writeFileSync(files.enforce, "1");
    writeFileSync(files.label, "system_u:system_r:container_t:s0:c1,c2\0");
    assert.deepEqual(confinement(files), [
      "SELinux is enforcing; see ls -Z for the file's label",
      "this process has the security label system_u:system_r:container_t:s0:c1,c2",
    ]);
    writeFileSync(files.enforce, "0");
    assert.match(confinement(files)[0]!, /^SELinux is permissive/);
  }));

test("on this machine it does not fail", () => {
  for (const line of confinement()) assert.match(line, /^[A-Za-z]/);
});
