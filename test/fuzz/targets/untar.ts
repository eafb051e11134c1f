/** The tar in artifacts of Flux, which anyone can have written who may write to the bucket or repository. */
import { gzipSync } from "node:zlib";

import { tarOf } from "../../../packages/agent/src/testing/tar.ts";
import { hold, type Target } from "../engine/target.ts";
import { unpackWithGnuTar, unpacked } from "./unpacking.ts";

async function check(input: Uint8Array): Promise<void> {
  await unpacked(gzipSync(input, { level: 1 }));
}

/** What both accept, GNU tar unpacks in the same way. */
async function compare(input: Uint8Array): Promise<void> {
  const ours = await unpacked(gzipSync(input, { level: 1 }));
  const theirs = ours && (await unpackWithGnuTar(input));
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
    tarOf([
      { path: "link", type: "2", link: "../.." },
      { path: "link/file", type: "0", body: "x" },
    ]),
    tarOf([{ path: "file", type: "1", link: "../present" }]),
    tarOf([{ path: "../../file", type: "0", body: "x" }]),
    tarOf([{ path: "a", type: "0", body: "x", pax: { path: "/proc/self/cwd/file" } }]),
    // Found: the error of a folder in place of a file was not declared.
    tarOf([
      { path: "a", type: "0", body: "x" },
      { path: "a", type: "5" },
    ]),
    tarOf([{ path: "pax_global_header", type: "g", body: "52 comment=0000000000000000000000000000000000000000\n" }]),
  ],
  words: [
    "../",
    "../../",
    "/etc/passwd",
    "/proc/self/cwd/",
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
