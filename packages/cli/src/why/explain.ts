/** From a Stack to its root cause, through the Stacks that it waits for. */
import type { Cause } from "./cause.ts";
import type { StackFacts } from "./facts.ts";
import { explainFacts } from "./rules/index.ts";

export interface Explained {
  /** From the Stack in question to the one that has the cause. */
  readonly path: readonly string[];
  readonly cause: Cause;
  readonly hidden: StackFacts["hidden"];
}

/** `gather` reads the facts about a Stack of the same namespace. */
export async function explainStack(
  name: string,
  gather: (name: string) => Promise<StackFacts>,
  visited: ReadonlySet<string> = new Set(),
): Promise<Explained> {
  const facts = await gather(name);
  const finding = explainFacts(facts);
  const { hidden } = facts;
  if (finding.kind === "cause") return { path: [name], cause: finding.cause, hidden };
  const seen = new Set([...visited, name]);
  for (const other of finding.stacks.filter((each) => !seen.has(each))) {
    const explained = await explainStack(other, gather, seen);
    if (explained.cause.code === "upToDate" || explained.cause.code === "drifted") continue;
    return { path: [name, ...explained.path], cause: explained.cause, hidden: [...hidden, ...explained.hidden] };
  }
  return { path: [name], cause: finding.cause, hidden };
}
