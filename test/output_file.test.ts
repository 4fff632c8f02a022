import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeOutputFile } from "../lib/output_file.ts";

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a new file has the text and mode 0644, whatever the umask, and nothing stays beside it", () =>
  inFolder(async (folder) => {
    const before = process.umask(0o077);
    try {
      await writeOutputFile(join(folder, "a.prom"), "one\n");
    } finally {
      process.umask(before);
    }
    assert.deepEqual(readdirSync(folder), ["a.prom"]);
    assert.equal(readFileSync(join(folder, "a.prom"), "utf8"), "one\n");
    assert.equal(statSync(join(folder, "a.prom")).mode & 0o7777, 0o644);
  }));

test("an old file is replaced, not written into: who has it open reads it to its end", () =>
  inFolder(async (folder) => {
    const path = join(folder, "a.prom");
    writeFileSync(path, "old\n");
    chmodSync(path, 0o600);
    const { ino } = statSync(path);
    await writeOutputFile(path, "new\n");
    assert.equal(readFileSync(path, "utf8"), "new\n");
    assert.notEqual(statSync(path).ino, ino);
    assert.equal(statSync(path).mode & 0o7777, 0o644);
  }));

test("what another left under the name beside it is in nobody's way, and a link there is not followed", () =>
  inFolder(async (folder) => {
    const victim = join(folder, "victim");
    writeFileSync(victim, "untouched");
    symlinkSync(victim, join(folder, `.a.prom.${process.pid}`));
    await writeOutputFile(join(folder, "a.prom"), "new\n");
    assert.equal(readFileSync(victim, "utf8"), "untouched");
    assert.deepEqual(readdirSync(folder).sort(), ["a.prom", "victim"]);
  }));

test("no file is put in the place of anything else: a device, a folder, a link", () =>
  inFolder(async (folder) => {
    mkdirSync(join(folder, "folder"));
    writeFileSync(join(folder, "target"), "untouched");
    symlinkSync(join(folder, "target"), join(folder, "link"));
    for (const path of ["/dev/null", join(folder, "folder"), join(folder, "link")]) {
      await assert.rejects(writeOutputFile(path, "x"), /is there and is no regular file$/);
    }
    assert.ok(statSync("/dev/null").isCharacterDevice());
    assert.equal(readFileSync(join(folder, "target"), "utf8"), "untouched");
    assert.deepEqual(readdirSync(folder).sort(), ["folder", "link", "target"]);
  }));

test("a folder that is not there is not made", () =>
  inFolder(async (folder) => {
    await assert.rejects(writeOutputFile(join(folder, "no", "a.prom"), "x"), /ENOENT/);
    assert.ok(!existsSync(join(folder, "no")));
  }));
