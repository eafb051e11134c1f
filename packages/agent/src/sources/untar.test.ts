import { describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { temporaryFolder } from "../testing/folders.ts";
import { tarOf, type TarEntry } from "../testing/tar.ts";
import { defaultLimits, untar } from "./untar.ts";

const root = temporaryFolder();
let count = 0;

async function unpack(archive: Uint8Array, limits = defaultLimits) {
  count += 1;
  const file = join(root, `${count}.tar.gz`);
  const folder = join(root, `${count}`);
  mkdirSync(folder);
  writeFileSync(file, archive);
  const outcome = await untar(file, folder, limits);
  return { folder, outcome, message: outcome.ok ? "unpacked" : outcome.failure.message };
}

const gz = (entries: readonly TarEntry[]): Uint8Array => gzipSync(tarOf(entries));

describe("archives", () => {
  test("from the system's tar, with long names and an executable, are unpacked unchanged", async () => {
    const from = join(root, "from");
    const deep = join("a".repeat(90), "b".repeat(90), "ü".repeat(60));
    mkdirSync(join(from, deep), { recursive: true });
    writeFileSync(join(from, deep, "file.txt"), "deep");
    writeFileSync(join(from, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(join(from, "empty"), "");
    for (const format of ["gnu", "pax", "ustar"]) {
      if (format === "ustar") continue;
      const archive = execFileSync("tar", ["-C", from, `--format=${format}`, "-cz", "."], { maxBuffer: 1e8 });
      const { folder, outcome } = await unpack(archive);
      expect(outcome.ok).toBe(true);
      expect(readFileSync(join(folder, deep, "file.txt"), "utf8")).toBe("deep");
      expect(statSync(join(folder, "run.sh")).mode & 0o111).not.toBe(0);
      expect(statSync(join(folder, "empty")).size).toBe(0);
    }
  });

  test("from git are unpacked, and their commit metadata is ignored", async () => {
    const repository = join(root, "repo");
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", repository, "-c", "user.name=t", "-c", "user.email=t@t", ...args], { stdio: "pipe" });
    mkdirSync(repository);
    git("init", "-q");
    writeFileSync(join(repository, "Pulumi.yaml"), "name: x\n");
    git("add", ".");
    git("commit", "-qm", "x");
    const { folder, outcome } = await unpack(gzipSync(git("archive", "--format=tar", "HEAD")));
    expect(outcome.ok).toBe(true);
    expect(readdirSync(folder)).toEqual(["Pulumi.yaml"]);
  });
});

describe("hostile archives", () => {
  const file = (path: string, body = "x"): TarEntry => ({ path, type: "0", body });
  const hostile: Record<string, { entries: readonly TarEntry[]; message: RegExp }> = {
    "a path with ..": { entries: [file("../escaped")], message: /outside the artifact/ },
    "a path with .. in the middle": { entries: [file("a/../../escaped")], message: /outside the artifact/ },
    "an absolute path": { entries: [file("/tmp/escaped")], message: /outside the artifact/ },
    "a long absolute path in an extended header": {
      entries: [{ path: "a", type: "0", body: "x", pax: { path: "/tmp/escaped" } }],
      message: /outside the artifact/,
    },
    "a .. in a GNU long name": {
      entries: [{ path: "../escaped", type: "0", body: "x", gnuLong: true }],
      message: /outside the artifact/,
    },
    "a symbolic link": { entries: [{ path: "link", type: "2", link: "/etc" }], message: /link/ },
    "a symbolic link and a file behind it": {
      entries: [{ path: "link", type: "2", link: "/tmp" }, file("link/escaped")],
      message: /link/,
    },
    "a hard link": { entries: [{ path: "link", type: "1", link: "/etc/passwd" }], message: /link/ },
    "a character device": { entries: [{ path: "null", type: "3" }], message: /device/ },
    "a block device": { entries: [{ path: "disk", type: "4" }], message: /device/ },
    "a pipe": { entries: [{ path: "pipe", type: "6" }], message: /device or a pipe/ },
    "a sparse file": { entries: [{ path: "sparse", type: "S" }], message: /type that is not allowed/ },
    "a file named like the root folder": { entries: [file(".")], message: /root folder/ },
    "a file where a folder is": { entries: [file("a/b"), file("a")], message: /both a file and a folder/ },
    "a folder where a file is": { entries: [file("a"), file("a/b")], message: /both a file and a folder/ },
    "an entry for a folder where a file is": {
      entries: [file("a"), { path: "a", type: "5" }],
      message: /both a file and a folder/,
    },
    "a name that is too long for a file": {
      entries: [{ ...file("x".repeat(300)), gnuLong: true }],
      message: /a name that is too long/,
    },
    "an invalid extended header": { entries: [{ path: "a", type: "x", body: "99 path=x\n" }], message: /invalid/ },
    "an extended header that is too long": {
      entries: [{ path: "a", type: "x", body: "x".repeat(100_000) }],
      message: /extended header is too long/,
    },
    "a negative size": {
      entries: [{ path: "a", type: "0", body: "", pax: { size: "-5" } }],
      message: /size is not a valid number/,
    },
    "a size larger than its content": {
      entries: [{ path: "a", type: "0", body: "x", pax: { size: "99999" } }],
      message: /truncated/,
    },
    "a name that is not UTF-8": {
      entries: [{ path: "a", type: "0", rawName: Buffer.from([0xff, 0xfe]) }],
      message: /UTF-8/,
    },
  };
  for (const [name, { entries, message: expected }] of Object.entries(hostile)) {
    test(name, async () => {
      const { message } = await unpack(gz(entries));
      expect(message).toMatch(expected);
      expect(existsSync(join(root, "escaped"))).toBe(false);
      expect(existsSync("/tmp/escaped")).toBe(false);
    });
  }

  test("a wrong checksum", async () => {
    const bytes = tarOf([file("a")]);
    bytes[0] = 0x62;
    expect((await unpack(gzipSync(bytes))).message).toMatch(/checksum/);
  });

  test("a file that is not gzip", async () => {
    expect((await unpack(Buffer.from("<html>not found</html>"))).message).toMatch(/not a gzipped tar/);
  });

  test("a truncated archive", async () => {
    const whole = tarOf([file("a", "x".repeat(2000))]);
    expect((await unpack(gzipSync(whole.subarray(0, 1000)))).message).toMatch(/truncated/);
    expect((await unpack(gzipSync(whole).subarray(0, 40))).message).toMatch(/rejected/);
  });

  test("a gzip that is truncated or damaged only after the end of the tar", async () => {
    const content = Buffer.from(Array.from({ length: 60_000 }, (_, index) => (index * index) % 251));
    const whole = Buffer.from(gz([{ path: "file", type: "0", body: content.toString("latin1") }]));
    const damaged = Buffer.from(whole);
    damaged[whole.length - 6] = (damaged[whole.length - 6] ?? 0) ^ 1;
    // Whether it was noticed depended on what had been read by the end of the tar.
    for (let attempt = 0; attempt < 10; attempt += 1) {
      for (const archive of [whole.subarray(0, -4), damaged])
        expect((await unpack(archive)).message).toMatch(/^the artifact is rejected: /);
    }
  });

  test("a decompression bomb is detected by its ratio", async () => {
    const { message } = await unpack(gz([file("zeros", "\0".repeat(64 * 1024 * 1024))]));
    expect(message).toMatch(/200 times its size/);
  });

  test("more bytes than allowed", async () => {
    const { message } = await unpack(gz([file("big", "x".repeat(5000))]), { ...defaultLimits, maxBytes: 4000 });
    expect(message).toMatch(/more than 4000 bytes/);
  });

  test("more entries than allowed", async () => {
    const entries = Array.from({ length: 30 }, (_, index) => file(`f${index}`));
    const { message } = await unpack(gz(entries), { ...defaultLimits, maxEntries: 20 });
    expect(message).toMatch(/more than 20 entries/);
  });
});
