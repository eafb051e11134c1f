/** From a Stack to its root cause, through the Stacks that it waits for. */
import type { Cause, CauseCode } from "./cause.ts";
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
  let inProgress: Explained | undefined;
  for (const other of finding.stacks.filter((each) => !seen.has(each))) {
    const root = await explainStack(other, gather, seen);
    const explained = { path: [name, ...root.path], cause: root.cause, hidden: [...hidden, ...root.hidden] };
    const urgency = urgencyOf(root.cause.code);
    if (urgency === "needsAction") return explained;
    if (urgency === "inProgress") inProgress ??= explained;
  }
  return inProgress ?? { path: [name], cause: finding.cause, hidden };
}

/** Of several Stacks, one that needs help is the cause, rather than one that the operator is working on. */
function urgencyOf(code: CauseCode): "none" | "inProgress" | "needsAction" {
  if (code === "upToDate" || code === "drifted") return "none";
  return code === "updateRunning" || code === "workspacePreparing" ? "inProgress" : "needsAction";
}
