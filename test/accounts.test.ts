import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { readAccounts } from "../lib/accounts.ts";
import { inFolder } from "./probes/support.ts";

function read(texts: { readonly passwd?: string; readonly group?: string }) {
  return inFolder((folder) => {
    const files = { passwd: join(folder, "passwd"), group: join(folder, "group") };
    for (const name of ["passwd", "group"] as const) {
      if (texts[name] !== undefined) writeFileSync(files[name], texts[name]);
    }
    return readAccounts(files);
  });
}

describe("users and groups", () => {
  test("a user is in its primary group and in those that name it", async () => {
    const { users, groupNames } = await read({
      passwd: "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n",
      group: "root:x:0:\nalice:x:1000:\nkubelet:x:990:alice,bob\nadm:x:4:syslog,alice\n",
    });
    assert.deepEqual(users, [
      { name: "root", uid: 0, groups: new Set([0]) },
      { name: "alice", uid: 1000, groups: new Set([1000, 990, 4]) },
    ]);
    assert.deepEqual(
      [...groupNames],
      [
        [0, "root"],
        [1000, "alice"],
        [990, "kubelet"],
        [4, "adm"],
      ],
    );
  });

  test("no files, empty files and broken lines are no users", async () => {
    for (const texts of [
      {},
      { passwd: "", group: "" },
      { passwd: "\n# x\n+::::::\nx:x:y:z\n:x:1:1\n", group: "+\nx\ny:x::a\n" },
    ]) {
      assert.deepEqual(await read(texts), { users: [], groupNames: new Map() });
    }
  });

  test("of this machine, root is one", () => {
    assert.ok(readAccounts().users.some(({ uid }) => uid === 0));
  });
});
