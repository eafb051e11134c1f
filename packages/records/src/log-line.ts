/** The lines of the container `pulumi`, without a schema: the caller provides the check. */
import { agentMessage, type AgentMessage } from "./agent-message.ts";
import { parseJson } from "./json.ts";
import type { NumberedEvent } from "./run-event.ts";

/** A line of the container's log: an event of a run, a message of the agent, or what the CLI printed. */
export type LogLine =
  | { readonly kind: "event"; readonly run: string; readonly event: NumberedEvent }
  /** Without `message` if the line is damaged, or of a later version. */
  | { readonly kind: "message"; readonly text: string; readonly message?: AgentMessage }
  | { readonly kind: "text"; readonly text: string };

interface FeedLine extends NumberedEvent {
  readonly run: string;
}

/** Only lines of the agent start with a brace: it indents such a line of the CLI. */
export function readLogLine(text: string, isFeedLine: (value: unknown) => value is FeedLine): LogLine {
  if (!text.startsWith("{")) return { kind: "text", text };
  const value = parseJson(text);
  if (!isFeedLine(value)) {
    const message = agentMessage(value);
    return { kind: "message", text, ...(message && { message }) };
  }
  const { run, seq, time, event } = value;
  return { kind: "event", run, event: { seq, time, event } };
}
