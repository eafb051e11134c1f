/** The format of run events and records: agent and operator write it, the command line and the console read it. */
export * from "./agent-message.ts";
export * from "./credentials.ts";
export * from "./feed.ts";
export * from "./gaps.ts";
export * from "./limits.ts";
export type { LogLine } from "./log-line.ts";
export * from "./progress.ts";
export * from "./record.ts";
export { withoutRepetitions } from "./repetitions.ts";
export * from "./run-event.ts";
export * from "./urn.ts";
