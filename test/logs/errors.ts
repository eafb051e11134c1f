/** Errors in the logs of the operator and of agents: there must be none except those that a test expects. */
import { parseLogLine } from "@pko/records";

/** A line of the operator's log below the level error, in either format. */
const harmless = /^(\{"level":"(debug|info|warn)"|\d{4}-\S+Z (DEBUG|INFO |WARN ) )/;

/** Entries with the level error, and text that is not from the logger: a stack trace, or why it did not start. */
export const operatorErrors = (log: string): string[] => entriesOf(log).filter((entry) => !harmless.test(entry));

/** In the console format, the lines of an error are indented. */
const entriesOf = (log: string): string[] => log.split(/\n(?!\s)/).filter((entry) => entry.trim() !== "");

/** Other lines are the CLI's output and the feed: what a program does wrong is not an error of the agent that reports it. */
export const agentErrors = (log: string): string[] => log.split("\n").filter(isAgentError);

function isAgentError(text: string): boolean {
  const line = parseLogLine(text);
  return line.kind === "message" && line.message?.level === "error";
}

/** Those that match none of the patterns. */
export const unexpected = (found: readonly string[], expected: readonly RegExp[]): string[] =>
  found.filter((each) => !expected.some((pattern) => pattern.test(each)));

/** Throws unless each one matches a pattern that the test expects. */
export function assertNoErrors(found: readonly string[], expected: readonly RegExp[] = []): void {
  const errors = unexpected(found, expected);
  if (errors.length > 0) throw new Error(`${errors.length} unexpected errors were logged:\n${errors.join("\n")}`);
}
