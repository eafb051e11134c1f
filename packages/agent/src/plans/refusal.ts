/**
 * How the CLI refuses a plan. It prints the values that differ, secret ones in plain text, so everything from there on is
 * dropped: from events, from the pod's log, and from the files with its output. A value may have several lines, so the
 * rest of the output is dropped, not the rest of the line.
 */
import { open, rm } from "node:fs/promises";
import { hasCode } from "../system/files.ts";

/** What precedes the values. */
const markers = ["violates plan", "properties changed:"] as const;
const longestMarker = Math.max(...markers.map(({ length }) => length));

const omission = " (values are not shown)";

/** The text up to the first value. */
export function withoutPlanValues(text: string): string {
  const end = valuesStart(text);
  return end === undefined ? text : text.slice(0, end) + omission;
}

export function hasPlanValues(text: string): boolean {
  return valuesStart(text) !== undefined;
}

function valuesStart(text: string): number | undefined {
  const ends = markers.flatMap((marker) => {
    const start = text.indexOf(marker);
    return start < 0 ? [] : [start + marker.length];
  });
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Refusals of the engine (pkg/resource/deploy of pulumi/pulumi), with the URN if the text has one. */
const refusals: readonly RegExp[] = [
  /resource (?:(urn:\S+) )?violates plan/,
  /is not allowed by the plan:/,
  /expected resource operations for (urn:\S+) but none were seen/,
  /no plan for resource (urn:\S+)/,
];

/** The resource at which the engine refused the plan; "" if it is unknown. Undefined if the message is no refusal. */
export function refusedAt(message: string, urn: string): string | undefined {
  for (const refusal of refusals) {
    const match = refusal.exec(message);
    if (match) return match[1] ?? urn;
  }
  return undefined;
}

/** Whether the CLI cannot decrypt the plan, or the configuration, with the stack's key. */
export function isUndecryptable(printed: string): boolean {
  return /decrypting secret value|message authentication failed|incorrect passphrase/.test(printed);
}

const chunkBytes = 64 * 1024;

/** Removes values from a file with the CLI's output. The CLI has exited. */
export async function cutPlanValues(path: string): Promise<void> {
  try {
    const file = await open(path, "r+");
    try {
      const end = await findInFile(file);
      if (end === undefined) return;
      await file.truncate(end);
      await file.write(`${omission}\n`, end);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    // Better no output than one with secrets.
    await rm(path, { force: true });
  }
}

async function findInFile(file: Awaited<ReturnType<typeof open>>): Promise<number | undefined> {
  const buffer = Buffer.alloc(chunkBytes);
  // Chunks overlap, because a marker may be at the end of one and the start of the next.
  for (let position = 0; ; position += chunkBytes - longestMarker) {
    const { bytesRead } = await file.read(buffer, 0, chunkBytes, position);
    const chunk = buffer.subarray(0, bytesRead);
    const ends = markers.flatMap((marker) => {
      const start = chunk.indexOf(marker);
      return start < 0 ? [] : [start + marker.length];
    });
    if (ends.length > 0) return position + Math.min(...ends);
    if (bytesRead < chunkBytes) return undefined;
  }
}
