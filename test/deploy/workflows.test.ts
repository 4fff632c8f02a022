// The workflows: what they may do, and that they call what is there. Whether GitHub runs them is seen there only.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { root } from "../support.ts";

interface Job {
  readonly uses?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly "timeout-minutes"?: number;
  readonly steps?: readonly { readonly uses?: string; readonly run?: string }[];
}
interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const folder = join(root, ".github/workflows");
const workflows = new Map(
  readdirSync(folder).map((name): [string, Workflow] => [name, parse(readFileSync(join(folder, name), "utf8"))]),
);
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** The jobs that may do more than read this repository, and what. */
const mayWrite: Readonly<Record<string, readonly string[]>> = {
  "release.yml build": ["contents", "id-token"],
  "release.yml images": ["id-token", "packages"],
  "release.yml library": ["id-token"],
  "images.yml image": ["packages"],
  "images.yml manifest": ["id-token", "packages"],
};

test("only these jobs may write", () => {
  const found = [...workflows].flatMap(([name, { jobs }]) =>
    Object.entries(jobs).map(([job, { permissions = {} }]) => [
      `${name} ${job}`,
      Object.keys(permissions)
        .filter((scope) => permissions[scope] !== "read")
        .sort(),
    ]),
  );
  assert.deepEqual(Object.fromEntries(found.filter(([, scopes]) => scopes!.length > 0)), mayWrite);
});

for (const [name, { on, permissions, jobs }] of workflows) {
  describe(name, () => {
    const runs = Object.values(jobs).flatMap(({ steps = [] }) => steps.flatMap(({ run }) => run ?? []));

    test("runs nothing of a stranger's with rights of the repository", () => {
      for (const event of ["pull_request_target", "workflow_run", "issue_comment"]) assert.ok(!(event in on), event);
      assert.ok(Object.keys(permissions).every((scope) => scope === "contents" && permissions[scope] === "read"));
      // What an expression gives would be read as shell.
      for (const run of runs) assert.doesNotMatch(run, /\$\{\{/);
    });

    test("actions are pinned by commit, jobs have a time limit", () => {
      for (const [job, { uses, steps, ...rest }] of Object.entries(jobs)) {
        if (uses !== undefined) {
          assert.ok(uses.startsWith("./") && existsSync(join(root, uses)), uses);
          continue;
        }
        assert.ok(rest["timeout-minutes"]! > 0, job);
        for (const step of steps!) {
          if (step.uses !== undefined) assert.match(step.uses, /@[0-9a-f]{40}$/);
          else assert.ok(step.run);
        }
      }
    });

    test("calls scripts that are there", () => {
      for (const run of runs) {
        for (const [, script] of run.matchAll(/\bnode (?:"\$GITHUB_WORKSPACE\/)?(scripts\/[\w.-]+)/g)) {
          assert.ok(existsSync(join(root, script!)), script);
        }
        for (const [, script] of run.matchAll(/\bnpm run (?:-s )?([\w:]+)/g)) assert.ok(scripts[script!], script);
      }
    });
  });
}
