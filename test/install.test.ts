import assert from "node:assert/strict";
import {
  chmodSync,
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
import { Fault } from "../lib/fault.ts";
import { install } from "../lib/install.ts";

async function inFolder(work: (folder: string, binary: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "kubelet-probe-"));
  try {
    const binary = join(folder, "binary");
    writeFileSync(binary, "new");
    chmodSync(binary, 0o755);
    await work(folder, binary);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const isUsage = (error: unknown) => error instanceof Fault && error.code === "BadUsage";

test("a copy with the mode of the binary, in place of an old one", () =>
  inFolder(async (folder, binary) => {
    const path = join(folder, "copy");
    writeFileSync(path, "old");
    assert.equal(await install([path], binary), `installed ${path}\n`);
    assert.equal(readFileSync(path, "utf8"), "new");
    assert.equal(statSync(path).mode & 0o777, 0o755);
    assert.deepEqual(readdirSync(folder).sort(), ["binary", "copy"]);
  }));

test("one absolute path of a file, and nothing else", () =>
  inFolder(async (folder, binary) => {
    for (const words of [[], ["copy"], ["/"], [`${folder}/`], [`${folder}/a`, "b"]]) {
      await assert.rejects(install(words, binary), isUsage, words.join(" "));
    }
    await assert.rejects(install([join(folder, "copy")], undefined), isUsage);
  }));

test("what is there and is no file stays", () =>
  inFolder(async (folder, binary) => {
    mkdirSync(join(folder, "folder"));
    symlinkSync(binary, join(folder, "link"));
    for (const path of ["/dev/null", join(folder, "folder"), join(folder, "link")]) {
      await assert.rejects(install([path], binary), isUsage);
    }
    assert.ok(statSync("/dev/null").isCharacterDevice());
  }));

test("a folder that is not there is not made", () =>
  inFolder(async (folder, binary) => {
    await assert.rejects(install([join(folder, "no", "copy")], binary), /ENOENT|NotFound/);
    assert.deepEqual(readdirSync(folder), ["binary"]);
  }));
