/** The status file of the supervisor, for processes that wait for it. */
import { readFile, rename, writeFile } from "node:fs/promises";

import type { Layout } from "./layout.ts";

interface ClusterStatus {
  readonly phase: string;
  readonly ready: boolean;
  readonly error?: string;
}

export async function writeStatus(layout: Layout, status: ClusterStatus): Promise<void> {
  const draft = `${layout.status}.new`;
  await writeFile(draft, JSON.stringify(status));
  await rename(draft, layout.status);
}

export async function readStatus(layout: Layout): Promise<ClusterStatus | undefined> {
  try {
    return JSON.parse(await readFile(layout.status, "utf8")) as ClusterStatus;
  } catch {
    return undefined;
  }
}
