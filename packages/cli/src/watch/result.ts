/** What `watch` shows when the run has ended. Pure. */
import type { Stack } from "@pko/api";

import type { Report } from "../command.ts";
import { outputBlocks } from "../commands/get.ts";
import { updateTones } from "../commands/history.ts";
import { documentOf, type RunResult } from "../documents.ts";
import { exitCodes, permissionText } from "../errors.ts";
import { blank, list, section, text, toned, type Block } from "../output/blocks.ts";
import { elapsed } from "../output/time.ts";
import { diagnosticBlocks, resourceBlocks } from "../runs/resource-blocks.ts";
import { withoutStart } from "../runs/run-log.ts";
import { summarizeUpdate } from "../stacks/summary.ts";
import { hiddenTextOf } from "../visibility.ts";
import type { Followed } from "./follow-run.ts";
import { missingEvents } from "./frame.ts";

export interface Ended extends Followed {
  readonly stackName: string;
  readonly stack?: Stack;
}

/** `isLive`: the events were shown one by one already. */
export function resultReport(ended: Ended, { isLive }: { readonly isLive: boolean }): Report {
  const document = describeResult(ended);
  const exitCode = document.state === "succeeded" ? exitCodes.success : exitCodes.failure;
  return { document, blocks: resultBlocks(document, isLive && ended.recovered === 0), exitCode };
}

function describeResult({ update, log, hidden, stackName, stack }: Ended): RunResult {
  return documentOf("RunResult", {
    ...summarizeUpdate(update),
    stackName,
    resources: log.resources.map(withoutStart),
    diagnostics: [...log.diagnostics],
    outputs: stack?.status?.lastUpdate?.name === update.metadata.name ? (stack?.status?.outputs ?? {}) : {},
    missingEvents: missingEvents(log),
    hidden: hidden.map(({ what, permission }) => ({ what, permission: permissionText(permission) })),
  });
}

export function resultBlocks(result: RunResult, isLive: boolean): Block[] {
  const { resources, diagnostics, outputs, missingEvents: missing, hidden } = result;
  const details = [
    ...section("Resources", resourceBlocks(resources)),
    ...section("Diagnostics", diagnosticBlocks(diagnostics)),
  ];
  const lost = `${missing} events are neither in the log nor in the record.`;
  return [
    ...(isLive ? [blank] : [...details.slice(1), ...(details.length > 0 ? [blank] : [])]),
    text(toned(updateTones[result.state], resultText(result))),
    ...(result.state === "failed" && result.message ? [text(result.message)] : []),
    ...section("Outputs", outputBlocks(outputs)),
    ...section("Not complete", missing > 0 ? [text(toned("warning", lost))] : []),
    ...section("Not visible to you", hidden.length > 0 ? [list(hidden.map(hiddenTextOf))] : []),
  ];
}

function resultText({ type, name, state, startTime, endTime, summary, stackName }: RunResult): string {
  const time = elapsed(startTime, endTime);
  return `The ${type} ${name} of Stack ${stackName} ${state}${time && ` after ${time}`}${summary === undefined ? "" : `: ${summary}`}.`;
}
