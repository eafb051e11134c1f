import { expect, spyOn, test } from "bun:test";
import { existsSync, readlinkSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";

import { temporaryFolder } from "../testing/folders.ts";
import { RunFolder, type RunRecord } from "./run-folder.ts";

/** `onSync` replaces the write of a folder to disk. */
async function withSync(onSync: (folder: string) => void, work: () => Promise<void>): Promise<void> {
  const file = await open("/dev/null");
  const prototype = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
  const sync = spyOn(prototype, "sync").mockImplementation(async function (this: FileHandle) {
    onSync(readlinkSync(`/proc/self/fd/${this.fd}`));
  });
  try {
    await work();
  } finally {
    sync.mockRestore();
  }
}

/** Folders that are written to disk, and whether they contained the record by then. */
async function syncedFolders(work: () => Promise<void>, record: string): Promise<(readonly [string, boolean])[]> {
  const synced: (readonly [string, boolean])[] = [];
  await withSync((folder) => synced.push([folder, existsSync(record)]), work);
  return synced;
}

const ready = {
  revision: "r",
  stack: "dev",
  project: { name: "demo", runtime: "go" },
  projectFolder: "/",
  settings: "/settings.yaml",
};
const record: RunRecord = { runId: "run-1", operation: { kind: "up" }, ready, startedAt: "", launches: [] };

test("the record of a run is on disk before its start is acknowledged, and before its command is followed", async () => {
  const folder = new RunFolder(join(temporaryFolder(), "runs"), "run-1");
  const path = join(folder.path, "run.json");
  expect(await syncedFolders(() => folder.create(record), path)).toEqual([
    [folder.path, true],
    [dirname(folder.path), true],
  ]);
  expect(await syncedFolders(() => folder.writeRecord(record), path)).toEqual([[folder.path, true]]);
});

test.each(["runs/run-1", "runs"])(
  "a run whose record cannot be written to disk can be started again: %s",
  async (failing) => {
    const root = temporaryFolder();
    const folder = new RunFolder(join(root, "runs"), "run-1");
    const onSync = (synced: string): void => {
      if (synced === join(root, failing)) throw new Error("EIO");
    };
    await withSync(onSync, async () => {
      expect(await folder.create(record).catch(String)).toBe("Error: EIO");
    });
    expect(await folder.readRecord()).toBeUndefined();
  },
);
