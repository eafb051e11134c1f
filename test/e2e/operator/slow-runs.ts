/** Runs of `slowProject`: when they started, and that a Stack recovers from an interrupted one. */
import { waitFor } from "@pko/testkit";
import { expect } from "bun:test";

import { execInPod, failedReason, isReady, listUpdates, stackUntil, type Place } from "../harness.ts";

/** The lines that the program has logged: "started" for each run, "overlap" if two ran at the same time. */
export async function loggedStarts(place: Place, stack: string): Promise<string[]> {
  return (await execInPod(place, stack, `cat /state/log-${stack} 2>/dev/null || true`)).split("\n").filter(Boolean);
}

/** Only a run whose process is recorded can be distinguished from that of another cluster, so that its lock is removed after a crash. */
export async function waitForStart(place: Place, stack: string): Promise<void> {
  const isRecorded = async (): Promise<boolean> =>
    (await listUpdates(place, stack)).at(-1)?.status?.process !== undefined;
  await waitFor(async () => (await isRecorded()) && (await loggedStarts(place, stack)).length > 0, {
    timeoutMs: 240_000,
    what: `the program of ${stack} to start`,
  });
}

/**
 * Waits until the Stack is ready, and checks that the first Update was aborted and that a later one succeeded after removing
 * the lock of the first. Returns the results of the later Updates.
 */
export async function expectRecovery(place: Place, stack: string): Promise<(string | undefined)[]> {
  await stackUntil(place, stack, isReady);
  const [first, ...others] = await listUpdates(place, stack);
  const results = others.map(failedReason);
  expect(failedReason(first)).toBe("Aborted");
  expect(results.at(-1)).toBe("UpdateSucceeded");
  expect(await loggedStarts(place, stack)).toEqual(["started", "started"]);
  return results;
}
