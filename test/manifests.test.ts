import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { Fault } from "../lib/fault.ts";
import { readManifest } from "../lib/manifests/manifest.ts";
import { type Manifests, readManifests } from "../lib/manifests.ts";
import { isUnread } from "../lib/node_manifests.ts";
import { everyManifest } from "./manifests/generate.ts";

const cases = resolve(import.meta.dirname, "cases");

/** What the kubelet's own reader said of a case (test/manifests/record.ts, and the same for the public cases). */
interface Expected {
  readonly nodeName: string;
  readonly scanError?: string;
  readonly files:
    | readonly { readonly file: string; readonly pod?: string; readonly mirror?: boolean; readonly parsed?: boolean }[]
    | null;
  readonly pods: readonly {
    readonly Namespace: string;
    readonly Name: string;
    readonly DeclaredUID: string;
    readonly Images: readonly string[];
    readonly File?: string;
  }[];
}

const pod = (name: string, more = ""): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec:\n  containers:\n  - {name: c, image: registry.test/${name}:1}\n${more}`;

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "manifests-test-"));
});
after(async () => {
  await rm(root, { recursive: true, force: true });
});

/** A fresh folder with some files in it. */
async function folder(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const path = await mkdtemp(join(root, "f"));
  for (const [name, content] of Object.entries(files)) await writeFile(join(path, name), content);
  return path;
}

function verdicts(manifests: Manifests): string[] {
  return manifests.files.map(({ file, verdict, pod: name }) => `${file} ${verdict} ${name}`);
}

describe("cases, as the kubelet reads them", async () => {
  for (const name of (await readdir(cases)).filter((entry) => /^[am][0-9]/.test(entry)).sort()) {
    test(name, async () => {
      const expected = JSON.parse(readFileSync(join(cases, name, "expected.json"), "utf8")) as Expected;
      const found = await readManifests(join(cases, name, "manifests"), expected.nodeName);
      assert.equal(found.absent, expected.files === null);
      assert.deepEqual(
        found.pods.map(({ namespace, name: full, uid, images }) => [namespace, full, uid ?? "", images]),
        expected.pods.map(({ Namespace, Name, DeclaredUID, Images }) => [Namespace, Name, DeclaredUID, Images]),
      );
      const files = expected.files ?? [];
      assert.deepEqual(
        found.files.map(({ file }) => file),
        files.map(({ file }) => file),
      );
      for (const [i, { file, pod: key, mirror, parsed }] of files.entries()) {
        const { verdict, pod: named, reason } = found.files[i] ?? { verdict: "", pod: "", reason: "" };
        if (key !== undefined) {
          assert.ok(
            mirror === true ? verdict === "refused" : ["pod", "shadowed"].includes(verdict),
            `${file}: ${reason}`,
          );
          assert.equal(named, key);
        } else {
          assert.ok(parsed === true ? verdict === "refused" : ["refused", "ignored"].includes(verdict), file);
          assert.notEqual(reason, "");
        }
      }
      for (const { Name, File } of expected.pods) {
        if (File !== undefined) assert.equal(found.pods.find((one) => one.name === Name)?.file, File);
      }
    });
  }
});

describe("every recorded manifest is taken or not as the kubelet takes it", () => {
  const letters = readFileSync(resolve(import.meta.dirname, "manifests/verdicts.txt"), "utf8").replaceAll("\n", "");
  const all = [...everyManifest()];
  test("the record is of these manifests", () => {
    assert.equal(all.length, letters.length);
  });
  const size = 500;
  for (let start = 0; start < all.length; start += size) {
    test(`${start} to ${start + size - 1}`, () => {
      for (const [i, bytes] of all.slice(start, start + size).entries()) {
        const { verdict, reason } = readManifest(bytes, "cp-1");
        const letter = letters[start + i];
        const agrees =
          letter === "p"
            ? verdict === "pod" || verdict === "mirror"
            : letter === "r"
              ? verdict === "refused"
              : verdict === "refused" || verdict === "ignored";
        assert.ok(
          agrees,
          `${start + i}: kubelet ${letter}, here ${verdict} (${reason})\n${Buffer.from(bytes).toString()}`,
        );
      }
    });
  }
});

describe("what a folder holds", () => {
  test("files are read in the order of their names' bytes, dotfiles and empty folders are not mentioned", async () => {
    const path = await folder({
      "b.yaml": pod("b"),
      "a.yaml~": pod("a"),
      Z: pod("z"),
      é: pod("e"),
      "~": pod("t"),
      ".x.yaml": pod("x"),
    });
    await mkdir(join(path, "empty"));
    await mkdir(join(path, "old"));
    await writeFile(join(path, "old", "c.yaml"), pod("c"));
    const found = await readManifests(path, "cp-1");
    assert.deepEqual(verdicts(found), [
      "Z pod default/z-cp-1",
      "a.yaml~ pod default/a-cp-1",
      "b.yaml pod default/b-cp-1",
      "old ignored null",
      "~ pod default/t-cp-1",
      "é pod default/e-cp-1",
    ]);
    assert.deepEqual(
      found.pods.map(({ name }) => name),
      ["a-cp-1", "b-cp-1", "e-cp-1", "t-cp-1", "z-cp-1"],
    );
  });

  test("the last file of one pod wins, a refused one takes no part", async () => {
    const path = await folder({
      "a.yaml": pod("x"),
      "b.yaml": pod("x").replace("x:1", "x:2"),
      "c.yaml": pod("x", "  restartPolicy: X\n"),
    });
    const found = await readManifests(path, "cp-1");
    assert.deepEqual(verdicts(found), [
      "a.yaml shadowed default/x-cp-1",
      "b.yaml pod default/x-cp-1",
      "c.yaml refused default/x-cp-1",
    ]);
    assert.match(found.files[0]?.reason ?? "", /b\.yaml/);
    assert.deepEqual(found.pods[0]?.images, ["registry.test/x:2"]);
    assert.equal(found.pods[0]?.file, "b.yaml");
  });

  test("a mirror pod's annotation takes the name and runs nothing", async () => {
    const mirror = pod("x").replace("{name: x}", "{name: x, annotations: {kubernetes.io/config.mirror: ''}}");
    const path = await folder({ "a.yaml": pod("x"), "b.yaml": mirror });
    const found = await readManifests(path, "cp-1");
    assert.deepEqual(verdicts(found), ["a.yaml shadowed default/x-cp-1", "b.yaml refused default/x-cp-1"]);
    assert.deepEqual(found.pods, []);
  });

  test("links are followed, what they lead to counts", async () => {
    const path = await folder({});
    const elsewhere = await folder({ "x.yaml": pod("x") });
    await symlink(join(elsewhere, "x.yaml"), join(path, "link"));
    await symlink(join(elsewhere, "none"), join(path, "dangling"));
    await symlink("loop", join(path, "loop"));
    await symlink(join(elsewhere, "x.yaml", "none"), join(path, "notdir"));
    await symlink("x".repeat(300), join(path, "toolong"));
    await symlink(elsewhere, join(path, "folder"));
    const found = await readManifests(path, "cp-1");
    assert.deepEqual(verdicts(found), [
      "dangling ignored null",
      "folder ignored null",
      "link pod default/x-cp-1",
      "loop ignored null",
      "notdir ignored null",
      "toolong ignored null",
    ]);
    for (const at of [0, 4, 5]) assert.equal(found.files[at]?.reason, "a link to nothing");
    assert.equal(found.files[3]?.reason, "a link that leads in a circle");
    // Nobody could read them, so there is nothing in them that only root may see.
    assert.deepEqual(found.files.filter(isUnread), []);
  });

  // An editor's own files come and go while a folder is read: they are no links to nothing.
  test("what is gone since the folder was listed is not there", async () => {
    const path = await folder({ "x.yaml": pod("x"), y: pod("y") });
    const { signal } = new AbortController();
    // It is looked at before the folder is listed, and then before each entry.
    let looks = 0;
    Object.defineProperty(signal, "aborted", {
      get() {
        if (++looks === 2) rmSync(join(path, "y"));
        return false;
      },
    });
    assert.deepEqual(verdicts(await readManifests(path, "cp-1", { signal })), ["x.yaml pod default/x-cp-1"]);
    assert.ok(looks > 2);
  });

  test("FIFOs and sockets are not opened", {
    skip: process.platform === "win32" ? "needs mkfifo" : false,
  }, async () => {
    const path = await folder({});
    execFileSync("mkfifo", [join(path, "fifo")]);
    const server = createServer().listen(join(path, "socket"));
    await new Promise((done) => server.once("listening", done));
    try {
      const found = await readManifests(path, "cp-1", { signal: AbortSignal.timeout(5000) });
      assert.deepEqual(
        found.files.map(({ file, verdict, reason }) => [file, verdict, reason]),
        [
          ["fifo", "ignored", "a FIFO; the kubelet reads files only"],
          ["socket", "ignored", "a socket; the kubelet reads files only"],
        ],
      );
    } finally {
      await new Promise((done) => server.close(done));
    }
  });

  test("a file's time is the pod's", async () => {
    const path = await folder({ "x.yaml": pod("x") });
    await utimes(join(path, "x.yaml"), new Date(1_700_000_000_000), new Date(1_700_000_000_000));
    assert.equal((await readManifests(path, "cp-1")).pods[0]?.modifiedMs, 1_700_000_000_000);
  });

  test("a file nobody may read is said to be so", {
    skip: process.getuid?.() === 0 ? "root reads everything" : false,
  }, async () => {
    const path = await folder({ "x.yaml": pod("x") });
    await chmod(join(path, "x.yaml"), 0);
    const found = await readManifests(path, "cp-1");
    assert.equal(found.files[0]?.verdict, "ignored");
    assert.match(found.files[0]?.reason ?? "", /EACCES/);
  });
});

describe("paths", () => {
  test("one file, with or without slashes behind it", async () => {
    const path = await folder({ "x.yaml": pod("x") });
    for (const spelled of [join(path, "x.yaml"), `${join(path, "x.yaml")}//`]) {
      assert.deepEqual(verdicts(await readManifests(spelled, "cp-1")), ["x.yaml pod default/x-cp-1"]);
    }
    assert.deepEqual(verdicts(await readManifests(`${path}///`, "cp-1")), ["x.yaml pod default/x-cp-1"]);
  });

  test("a path that is not there is absent, an empty folder is not", async () => {
    const path = await folder({});
    assert.deepEqual(await readManifests(join(path, "none"), "cp-1"), {
      path: join(path, "none"),
      absent: true,
      pods: [],
      files: [],
    });
    assert.deepEqual(await readManifests(path, "cp-1"), { path, absent: false, pods: [], files: [] });
  });

  test("a path that cannot be read is a fault", async () => {
    const path = await folder({ x: "" });
    await symlink("loop", join(path, "loop"));
    for (const [spelled, errno] of [
      [join(path, "x", "y"), "ENOTDIR"],
      [join(path, "loop"), "ELOOP"],
    ] as const) {
      await assert.rejects(readManifests(spelled, "cp-1"), (error: unknown) => {
        assert.ok(error instanceof Fault);
        assert.equal(error.code, "ManifestsUnreadable");
        assert.equal(error.details.errno, errno);
        return true;
      });
    }
    await assert.rejects(readManifests("/dev/null", "cp-1"), { code: "ManifestsUnreadable" });
  });

  test("the node's name is lower-cased and trimmed", async () => {
    const path = await folder({ "x.yaml": pod("x") });
    const found = await readManifests(path, " Worker-01.EXAMPLE.test\n");
    assert.equal(found.pods[0]?.name, "x-worker-01.example.test");
  });

  test("an aborted signal ends it with a Timeout", async () => {
    const path = await folder({ "x.yaml": pod("x") });
    await assert.rejects(readManifests(path, "cp-1", { signal: AbortSignal.abort() }), { code: "Timeout" });
    const under = new AbortController();
    const reading = readManifests(path, "cp-1", { signal: under.signal });
    under.abort();
    await assert.rejects(reading, { code: "Timeout" });
  });
});

describe("files made to hurt", () => {
  const much = 10 * 1024 * 1024 - 1;
  const read = (text: string | Uint8Array): string => {
    const { verdict, reason } = readManifest(typeof text === "string" ? Buffer.from(text) : text, "cp-1");
    return reason === "" ? verdict : `${verdict}: ${reason}`;
  };

  test("10 MiB are not read, one byte less is", async () => {
    const start = Buffer.from(`${pod("x")}#`);
    const path = await folder({
      a: Buffer.concat([start, Buffer.alloc(much + 1 - start.length, "x")]),
      b: Buffer.concat([start, Buffer.alloc(much - start.length, "x")]),
    });
    assert.equal((await stat(join(path, "a"))).size, much + 1);
    const found = await readManifests(path, "cp-1");
    assert.deepEqual(verdicts(found), ["a ignored null", "b pod default/x-cp-1"]);
    assert.match(found.files[0]?.reason ?? "", /10 MiB/);
  });

  test("depth: 10000 in all, in JSON and in YAML", () => {
    const json = (depth: number): string =>
      `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}]},"x":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    assert.equal(read(json(9999)), "pod");
    assert.match(read(json(10_000)), /^ignored: not JSON/);
    assert.equal(read(pod("x", `x: ${"[".repeat(9999)}${"]".repeat(9999)}\n`)), "pod");
    assert.match(
      read(pod("x", `x: ${"[".repeat(10_000)}${"]".repeat(10_000)}\n`)),
      /^ignored: not YAML: nested deeper/,
    );
    assert.equal(read("[".repeat(much)), "ignored: not an object");
    assert.match(read(`x: ${"[".repeat(much - 3)}`), /^ignored: not YAML: line 1: nested deeper/);
    assert.match(read(`${'{"a":'.repeat(much / 5)}`), /^ignored: not JSON: line 1: nested deeper/);
    assert.equal(read(pod("x", `x:\n${"- ".repeat(9990)}a\n`)), "pod");
  });

  test("aliases that multiply are refused, with and without merging", () => {
    const nine = (text: string): string => Array.from({ length: 9 }, () => text).join(",");
    const lists = Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${nine(`*a${i}`)}]\n`).join("");
    assert.match(read(pod("x", `a0: &a0 [${nine("x")}]\n${lists}`)), /aliases/);
    const maps = Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} {<<: [${nine(`*a${i}`)}]}\n`).join("");
    assert.match(read(pod("x", `a0: &a0 {k: v}\n${maps}`)), /aliases/);
    assert.match(read(pod("x", "a: &a [*a]\n")), /contains itself/);
  });

  test("a deadline ends the reading within a file", async () => {
    const path = await folder({ "x.yaml": pod("x", `x:\n${"- a\n".repeat(2_000_000)}`) });
    const started = Date.now();
    await assert.rejects(readManifests(path, "cp-1", { deadline: started + 100 }), { code: "Timeout" });
    assert.ok(Date.now() - started < 3000);
  });

  test("nothing of environment, arguments or annotations is in a reason", () => {
    const secret = "hunter2";
    for (const text of [
      pod("x").replace("image:", `env: [{name: ${secret}=x, value: ${secret}}], image:`),
      pod("x").replace("image:", `env: [{name: A, value: {${secret}: ${secret}}}], image:`),
      pod("x").replace("image:", `args: [{${secret}: ${secret}}], image:`),
      pod("x").replace("name: x}", `name: x, annotations: {${secret} x: ${secret}}}`),
      pod("x").replace("name: x}", `name: x, annotations: {${secret}: 1}}`),
      pod("x").replace(
        "name: x}",
        `name: x, annotations: {container.apparmor.security.beta.kubernetes.io/${secret}: ${secret}}}`,
      ),
    ]) {
      const reason = read(text);
      assert.match(reason, /^refused: /);
      assert.doesNotMatch(reason, /hunter2/);
      assert.doesNotMatch(reason, /[\n\r]/);
    }
  });
});
