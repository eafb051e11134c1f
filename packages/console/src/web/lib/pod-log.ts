/** The lines of a workspace pod's log that belong to one run: its events, and what Pulumi printed. Pure. */
import { parseLogLine, runFinished, runStarted, type AgentMessage, type NumberedEvent } from "@pko/records/browser";

import { withoutEscapes } from "./search-log.ts";

export interface RunLog {
  readonly events: readonly NumberedEvent[];
  readonly lines: readonly string[];
}

/** Pulumi's lines name no run: they belong to the run between the agent's messages about its start and its end. */
export function runLog(lines: readonly string[], run: string): RunLog {
  const events: NumberedEvent[] = [];
  const texts: string[] = [];
  let isInRun = false;
  for (const text of lines) {
    const line = parseLogLine(text);
    if (line.kind === "event") {
      isInRun = line.run === run;
      if (isInRun) events.push(line.event);
    } else if (line.kind === "message") {
      const edge = runEdge(line.message, run);
      if (edge !== undefined) isInRun = edge === "started";
    } else if (isInRun) texts.push(withoutEscapes(line.text));
  }
  return { events, lines: texts };
}

/** Another run's start ends this one. */
function runEdge(message: AgentMessage | undefined, run: string): "started" | "finished" | undefined {
  if (message?.msg === runStarted) return message.run === run ? "started" : "finished";
  return message?.msg === runFinished && message.run === run ? "finished" : undefined;
}
