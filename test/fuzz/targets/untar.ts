/** Artifacts of Flux, which anyone can have written who may write to the bucket or repository. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { untar } from "../../../packages/agent/src/sources/untar.ts";
import { tarOf } from "../../../packages/agent/src/testing/tar.ts";
import { lazyFolder } from "../engine/folder.ts";
import { hold, type Target } from "../engine/target.ts";

const limits = { maxBytes: 256 * 1024, maxEntries: 20, maxRatio: 20, ratioFloorBytes: 64 * 1024 };
const base = lazyFolder();
const archiveFile = (): string => join(base(), "archive.tgz");

/** The files by their paths; folders end with a slash. */
function filesIn(folder: string): ReadonlyMap<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name).slice(folder.length + 1);
      hold(entry.isFile() || entry.isDirectory(), "only files and folders are created");
      return entry.isFile() ? [path, readFileSync(join(folder, path), "latin1")] : [`${path}/`, ""];
    }),
  );
}

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = join(base(), "out");
  mkdirSync(folder);
  try {
    await use(folder);
    hold(readdirSync(base()).length === 2, "nothing is created outside of the folder");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function check(input: Uint8Array): Promise<void> {
  writeFileSync(archiveFile(), gzipSync(input, { level: 1 }));
  await withFolder(async (folder) => {
    const outcome = await untar(archiveFile(), folder, limits);
    const bytes = filesIn(folder)
      .values()
      .reduce((sum, text) => sum + text.length, 0);
    hold(bytes <= limits.maxBytes, "no more is written than allowed");
    if (outcome.ok) return hold(outcome.value <= limits.maxEntries, "no more entries are unpacked than allowed");
    hold(outcome.failure.message.length < 1000, "a message is short");
    // oxlint-disable-next-line no-control-regex -- it must match control characters
    hold(!/[\u0000-\u001F]/.test(outcome.failure.message), "a message has no control characters");
  });
}

/** What both accept, GNU tar unpacks in the same way. */
async function compare(input: Uint8Array): Promise<void> {
  let [ours, theirs]: (ReadonlyMap<string, string> | undefined)[] = [];
  await withFolder(async (folder) => {
    if ((await untar(archiveFile(), folder, limits)).ok) ours = filesIn(folder);
  });
  if (!ours) return;
  writeFileSync(archiveFile(), input);
  await withFolder(async (folder) => {
    const options = ["--no-same-owner", "--no-same-permissions", "--delay-directory-restore", "--mode=u+rwx"];
    try {
      execFileSync("tar", ["-x", "-f", archiveFile(), "-C", folder, ...options], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      theirs = filesIn(folder);
    } catch {
      // It rejects the archive.
    }
  });
  if (theirs) hold(Bun.deepEquals(ours, theirs), "tar unpacks the same files");
}

/** Corrects the checksum of every block that looks like a header. */
function repair(input: Uint8Array): Uint8Array {
  for (let at = 0; at + 512 <= input.length; at += 512) {
    const block = input.subarray(at, at + 512);
    if (Buffer.from(block.subarray(257, 262)).toString("latin1") !== "ustar") continue;
    block.fill(0x20, 148, 156);
    const sum = block.reduce((total, byte) => total + byte, 0);
    block.set(Buffer.from(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  }
  return input;
}

export const untarTarget: Target = {
  name: "untar",
  form: "bytes",
  seeds: [
    tarOf([
      { path: "dir/", type: "5" },
      { path: "dir/file", type: "0", body: "content", isExecutable: true },
    ]),
    tarOf([{ path: "short", type: "0", pax: { path: "long/name", size: "3" }, body: "abc" }]),
    tarOf([{ path: "gnu/long", type: "0", gnuLong: true, body: "x".repeat(600) }]),
    tarOf([
      { path: "link", type: "2", link: "/etc" },
      { path: "link/file", type: "0", body: "x" },
    ]),
    // Found: the error of a folder in place of a file was not declared.
    tarOf([
      { path: "a", type: "0", body: "x" },
      { path: "a", type: "5" },
    ]),
    tarOf([{ path: "pax_global_header", type: "g", body: "52 comment=0000000000000000000000000000000000000000\n" }]),
  ],
  words: [
    "../",
    "/etc/passwd",
    "ustar",
    "27 path=../../../etc/passwd\n",
    "12 size=100\n",
    "11 path=a/b\n",
    "\0",
    "x",
    "L",
    "5",
  ],
  maxBytes: 8192,
  rounds: 400,
  repair,
  check,
  compare,
};
