/**
 * The agent's own messages in the log of the container `pulumi`: JSON with the keys of the operator's log. The agents of
 * earlier versions wrote `time` and `message` instead of `ts` and `msg`, and their pods may still run.
 */

/** The messages by which readers recognize what belongs to a run. */
export const runStarted = "run started";
export const runFinished = "run finished";

export interface AgentMessage {
  readonly ts: string;
  readonly level: string;
  readonly msg: string;
  /** The UID of the Update. */
  readonly run?: string;
  /** The other keys. */
  readonly keys: Readonly<Record<string, unknown>>;
}

/** Undefined if the value is no message of the agent. */
export function agentMessage(value: unknown): AgentMessage | undefined {
  if (typeof value !== "object" || value === null || "feed" in value) return undefined;
  const { level, ts, time, msg, message, run, ...keys } = value as Readonly<Record<string, unknown>>;
  const [at, text] = [ts ?? time ?? "", msg ?? message];
  if (typeof level !== "string" || typeof at !== "string" || typeof text !== "string") return undefined;
  return { ts: at, level, msg: text, ...(typeof run === "string" && { run }), keys };
}
