/** A run's result in words and numbers that a status can hold. Nothing here is a secret: outputs go another way. */
import { boundStdout, type Stdout, type UpdateProgress } from "@pko/api";
import type { Progress, RunResult } from "@pko/rpc";

import { truncate } from "../shared/truncate.ts";

/** A condition's message holds more, but every watcher receives it. */
const maxConditionMessage = 1024;
const maxStatusMessage = 8192;

export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

/** For a condition: one sentence. */
export function headline(text: string): string {
  return truncate(text, maxConditionMessage);
}

/** For status: the sentence, then the program's own words. */
export function errorText({ error }: RunResult): string | undefined {
  if (!error) return undefined;
  const lines = error.lines.filter((line) => line.trim() !== "" && !error.message.includes(line.trim()));
  return truncate([error.message, ...lines].join("\n"), maxStatusMessage);
}

interface Wording {
  readonly steps: readonly string[];
  readonly planned: string;
  readonly made: string;
}

/** In the order in which people want to read them. Parts of a replacement count with it. */
const wordings: readonly Wording[] = [
  { steps: ["create"], planned: "to create", made: "created" },
  { steps: ["update"], planned: "to update", made: "updated" },
  { steps: ["replace"], planned: "to replace", made: "replaced" },
  { steps: ["delete"], planned: "to delete", made: "deleted" },
  { steps: ["import"], planned: "to import", made: "imported" },
  { steps: ["same"], planned: "unchanged", made: "unchanged" },
];

export function summaryOf({ changes, operation }: Pick<RunResult, "changes" | "operation">): string {
  const parts = wordings.flatMap(({ steps, planned, made }) => {
    const count = steps.reduce((sum, step) => sum + (changes[step] ?? 0), 0);
    return count > 0 ? [`${count} ${operation === "preview" ? planned : made}`] : [];
  });
  return parts.length > 0 ? parts.join(", ") : "no changes";
}

/** The printed plan of a preview, and what a failed run printed: whoever wants the rest has the agent's log. */
export function stdoutOf({ operation, outcome, output }: RunResult): Stdout | undefined {
  if ((operation !== "preview" && outcome === "succeeded") || output.tail === "") return undefined;
  const bounded = boundStdout(output.tail);
  return { ...bounded, truncated: bounded.truncated || output.truncated };
}

interface ProgressInput {
  readonly progress: Progress;
  readonly nowMs: number;
  readonly expected: number | undefined;
}

export function progressOf({ progress, nowMs, expected }: ProgressInput): UpdateProgress {
  const { created, updated, deleted, replaced, unchanged, failed, other, current } = progress;
  const finished = created + updated + deleted + replaced + unchanged + failed + other;
  return {
    time: timestamp(nowMs),
    created,
    updated,
    deleted,
    replaced,
    unchanged,
    failed,
    ...(current && { current: truncate(`${current.op} ${current.urn}`, maxConditionMessage) }),
    // Not yet finished, whatever the count says: what is new was not expected.
    ...(expected !== undefined && { percent: Math.min(99, Math.floor((finished * 100) / expected)) }),
  };
}
