/** The record of a finished run, from its events on disk. */
import { emptyContent, maxContentBytes, type NumberedEvent, type RecordContent } from "@pko/records";
import type { Operation, RunResult } from "@pko/rpc";
import { isPreview } from "../pulumi/operation.ts";
import { EventReader } from "../runs/event-log.ts";
import type { RunFolder } from "../runs/run-folder.ts";
import { fit, jsonChars, thin, type Fitted } from "./fit.ts";
import { StackResources } from "./stack-resources.ts";

/** Far more than fits: JSON of events compresses to about a twentieth. */
const maxReadChars = 8 * 1024 * 1024;

interface FinishedRun {
  readonly operation: Operation;
  readonly outcome: RunResult["outcome"];
}

export async function buildRecord(folder: RunFolder, run: FinishedRun): Promise<Fitted> {
  return await fit(await readContent(folder, run), maxContentBytes);
}

async function readContent(folder: RunFolder, { operation, outcome }: FinishedRun): Promise<RecordContent> {
  const resources = new StackResources({ isPreview: isPreview(operation) });
  let content = emptyContent;
  let [events, chars]: [NumberedEvent[], number] = [[], 0];
  for await (const { seq, time, event } of new EventReader(folder).more()) {
    resources.add(event);
    events.push({ seq, time, event });
    chars += jsonChars(event);
    if (chars <= 2 * maxReadChars) continue;
    content = thin({ ...content, events }, maxReadChars);
    [events, chars] = [content.events, jsonChars(content)];
  }
  const state = await folder.readResources();
  if (state) return { ...content, events, resources: state };
  const isPartial = !visitsAll(operation, outcome);
  return { ...content, events, resources: resources.list(), ...(isPartial && { partialResources: true }) };
}

/** A run that fails or that has targets does not visit every resource. */
function visitsAll({ targets = [] }: Operation, outcome: RunResult["outcome"]): boolean {
  return outcome === "succeeded" && targets.length === 0;
}
