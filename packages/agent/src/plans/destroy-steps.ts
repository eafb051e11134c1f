/**
 * The plan of a destroy. The CLI has none, so it consists of the sorted steps of its preview. Their order and the order of
 * the events differ between previews of the same state; their metadata does not.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { canonicalJson } from "@pko/rpc";
import { entry } from "../pulumi/project/project.ts";
import type { PlannedChange } from "./plan-file.ts";
import { changeOf, isDefaultProvider } from "./plan-file.ts";
import type { DestroyStep } from "./sealed-plan.ts";

/** Reads the event log of `pulumi destroy --preview-only`. */
export async function readDestroySteps(eventLog: string): Promise<DestroyStep[]> {
  const steps: DestroyStep[] = [];
  for await (const line of createInterface({ input: createReadStream(eventLog), crlfDelay: Infinity })) {
    const step = parseStep(line);
    if (step) steps.push(step);
  }
  return sortSteps(steps);
}

export function parseStep(line: string): DestroyStep | undefined {
  // Most events are others, and some are large.
  if (!line.includes("resourcePreEvent")) return undefined;
  const metadata = entry(entry(parseLine(line), "resourcePreEvent"), "metadata");
  const [op, urn] = [entry(metadata, "op"), entry(metadata, "urn")];
  if (typeof op !== "string" || typeof urn !== "string") return undefined;
  const [before, after] = [entry(metadata, "old"), entry(metadata, "new")];
  const resource = [entry(before, "id"), entry(before, "inputs"), entry(before, "protect"), entry(after, "inputs")];
  const digest = createHash("sha256").update(canonicalJson(resource)).digest("hex");
  return { op, urn, digest };
}

/** Also a line that a crash left incomplete is possible. */
function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function sortSteps(steps: readonly DestroyStep[]): DestroyStep[] {
  return steps.toSorted((a, b) => (stepKey(a) < stepKey(b) ? -1 : 1));
}

/** The resources whose steps differ. */
export function differingUrns(planned: readonly DestroyStep[], current: readonly DestroyStep[]): string[] {
  const [before, after] = [new Set(planned.map(stepKey)), new Set(current.map(stepKey))];
  const changed = [
    ...planned.filter((step) => !after.has(stepKey(step))),
    ...current.filter((step) => !before.has(stepKey(step))),
  ];
  return [...new Set(changed.map(({ urn }) => urn))];
}

function stepKey({ op, urn, digest }: DestroyStep): string {
  return JSON.stringify([urn, op, digest]);
}

export function destroyChanges(steps: readonly DestroyStep[]): PlannedChange[] {
  const byUrn = Map.groupBy(steps, ({ urn }) => urn);
  return [...byUrn].flatMap(([urn, ofUrn]) => {
    const op = changeOf(ofUrn.map((step) => step.op));
    return op === undefined || isDefaultProvider(urn) ? [] : [{ op, urn }];
  });
}
