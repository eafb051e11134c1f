/** What commands print with -o json and yaml. docs/cli.schema.json is generated from these schemas. */
import { stackStates, type StackState } from "@pko/api";
import { Type, type Static } from "typebox";

export type { StackState };

import { choice, document, documentVersion, HiddenPart, optionalText, part, text } from "./document-parts.ts";
import { Comparison, Diff, recordFields, ResourceTree, RunResult, Trace, updateFields } from "./run-documents.ts";

export { documentVersion } from "./document-parts.ts";
export * from "./run-documents.ts";

const stackState = choice(stackStates, "The state in one word.");

const LastUpdateSummary = part(
  {
    name: optionalText("The name of the Update."),
    type: text("The operation: preview, up, refresh or destroy."),
    state: text("The result: succeeded or failed."),
    time: optionalText("The time when it finished."),
    summary: optionalText("The changes in one line."),
    revision: optionalText("The source revision."),
    failures: Type.Optional(Type.Integer({ description: "The number of consecutive failures." })),
    failure: optionalText("The class of the failure."),
    permalink: optionalText("The URL of the operation in Pulumi Cloud."),
  },
  "The last finished update.",
);

const Next = part({ what: text("The next action."), time: text("The earliest time.") }, "What happens next.");

const summaryFields = {
  namespace: text("The namespace of the Stack."),
  name: text("The name of the Stack."),
  stack: text("The name of the Pulumi stack."),
  state: stackState,
  reason: text("The reason of the condition that decides the state."),
  message: text("The message of that condition, in full."),
  deleting: Type.Boolean({ description: "Whether the Stack is being deleted." }),
  lastUpdate: Type.Optional(LastUpdateSummary),
  next: Type.Optional(Next),
};

export const StackSummary = part(summaryFields, "A Stack in one line.");
export type StackSummary = Static<typeof StackSummary>;

export const StackList = document("StackList", "The output of get.", { items: Type.Array(StackSummary) });

export const StackDetail = document("StackDetail", "The output of get STACK.", {
  ...summaryFields,
  source: text("Where the program comes from."),
  waiting: Type.Optional(part({ for: text("For what."), since: text("Since when.") }, "What the Stack waits for.")),
  currentUpdate: optionalText("The name of the running Update."),
  approval: Type.Optional(Type.Unknown({ description: "The plan that waits for an approval, as in the status." })),
  drift: Type.Optional(Type.Unknown({ description: "The result of the last drift check, as in the status." })),
  outputs: Type.Record(Type.String(), Type.Unknown(), { description: "The outputs. Secret ones are [secret]." }),
  conditions: Type.Array(Type.Unknown(), { description: "The conditions of the Stack." }),
  dependsOn: Type.Array(Type.String(), { description: "The Stacks of which it needs success or outputs." }),
});
export type StackDetail = Static<typeof StackDetail>;

export const Explanation = document("Explanation", "The output of why.", {
  namespace: text("The namespace of the Stack."),
  name: text("The name of the Stack."),
  cause: text("The code of the cause."),
  stack: text("The Stack that has the cause."),
  summary: text("The cause in one sentence."),
  message: optionalText("What the operator or Kubernetes reports."),
  next: Type.Array(Type.String(), { description: "What to do next." }),
  path: Type.Array(Type.String(), { description: "The Stacks from the one in question to the one with the cause." }),
  hidden: Type.Array(HiddenPart, { description: "What the user does not have permission to read." }),
});
export type Explanation = Static<typeof Explanation>;

const UpdateSummary = part(updateFields, "An Update in one line.");
export type UpdateSummary = Static<typeof UpdateSummary>;

export const UpdateList = document("UpdateList", "The output of history.", { items: Type.Array(UpdateSummary) });

export const UpdateDetail = document("UpdateDetail", "The output of show.", {
  ...updateFields,
  changes: Type.Optional(Type.Record(Type.String(), Type.Integer(), { description: "Resources by type of step." })),
  progress: Type.Optional(Type.Unknown({ description: "The progress of a running operation, as in the status." })),
  plan: Type.Optional(Type.Unknown({ description: "The plan that a preview kept, as in the status." })),
  stdout: optionalText("The output of Pulumi, or its beginning and end."),
  ...recordFields,
});
export type UpdateDetail = Static<typeof UpdateDetail>;

export const Outputs = document("Outputs", "The output of outputs.", {
  namespace: text("The namespace of the Stack."),
  name: text("The name of the Stack."),
  outputs: Type.Record(Type.String(), Type.Unknown(), { description: "The outputs by name." }),
  masked: Type.Array(Type.String(), { description: "The names of the outputs whose values are not shown." }),
});

const EventSummary = part(
  {
    time: optionalText("The time of the last occurrence."),
    type: text("Normal or Warning."),
    reason: text("The reason of the event."),
    object: text("The object, as KIND/NAME."),
    count: Type.Integer({ description: "How often it occurred." }),
    message: text("The message."),
  },
  "An event.",
);
export type EventSummary = Static<typeof EventSummary>;

export const EventList = document("EventList", "The output of events.", { items: Type.Array(EventSummary) });

export const Graph = document("Graph", "The output of graph.", {
  nodes: Type.Array(
    part(
      {
        namespace: text("The namespace of the Stack."),
        name: text("The name of the Stack."),
        state: choice([...stackStates, "Missing"], "The state, or Missing if there is no such Stack."),
      },
      "A Stack.",
    ),
  ),
  edges: Type.Array(
    part(
      {
        namespace: text("The namespace of both Stacks."),
        from: text("The Stack that depends on the other."),
        to: text("The Stack that is needed."),
        outputs: Type.Array(Type.String(), { description: "The outputs that are read; none for a prerequisite." }),
      },
      "A dependency.",
    ),
  ),
});
export type Graph = Static<typeof Graph>;

export const checkResults = ["ok", "warning", "failed", "unknown"] as const;
const Check = part(
  {
    name: text("What is checked."),
    result: choice(checkResults, "ok, warning, failed, or unknown if it could not be checked."),
    message: text("What was found."),
    fix: optionalText("What to do about it."),
  },
  "One check.",
);
export type Check = Static<typeof Check>;

/** What is worst comes first. */
export const severities = ["blocks", "mayBlock", "differs"] as const;
export type Severity = (typeof severities)[number];

const StackDifference = part(
  {
    severity: choice(
      severities,
      "blocks: correct it before the migration; mayBlock: check it, because it depends on something that is not read; differs: nothing to do, unless the old behavior is needed.",
    ),
    namespace: text("The namespace of the Stack."),
    name: text("The name of the Stack."),
    field: text("The field of the Stack."),
    message: text("What differs."),
    fix: text("What to do about it."),
  },
  "Something that behaves differently from the Go operator.",
);
export type StackDifference = Static<typeof StackDifference>;

export const CheckReport = document("CheckReport", "The output of check.", {
  checks: Type.Array(Check),
  differences: Type.Optional(Type.Array(StackDifference)),
});

export const ActionResult = document("ActionResult", "The output of a command that changes something.", {
  action: text("The command."),
  namespace: text("The namespace."),
  name: text("The name of the Stack."),
  message: text("What was done."),
  details: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "More about the result." })),
});

export const VersionInfo = document("Version", "The output of version.", {
  client: text("The version of this command."),
  kubernetes: optionalText("The version of the API server."),
  operator: optionalText("The version of the operator that installed the CRDs."),
});

export const documentSchemas = [
  StackList,
  StackDetail,
  Explanation,
  UpdateList,
  UpdateDetail,
  RunResult,
  Diff,
  Comparison,
  ResourceTree,
  Trace,
  Outputs,
  EventList,
  Graph,
  CheckReport,
  ActionResult,
  VersionInfo,
] as const;

type AnyDocument = Static<(typeof documentSchemas)[number]>;
type DocumentOf<Kind extends AnyDocument["kind"]> = Extract<AnyDocument, { kind: Kind }>;

/** The document with its version. */
export function documentOf<Kind extends AnyDocument["kind"]>(
  kind: Kind,
  content: Omit<DocumentOf<Kind>, "apiVersion" | "kind">,
): DocumentOf<Kind> {
  return { apiVersion: documentVersion, kind, ...content } as unknown as DocumentOf<Kind>;
}

/** The published JSON Schema: any of the documents. */
export function documentSchema(): object {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Documents that kubectl pulumi prints with -o json",
    oneOf: documentSchemas.map(({ properties }) => ({ $ref: `#/$defs/${properties.kind.const}` })),
    $defs: Object.fromEntries(documentSchemas.map((schema) => [schema.properties.kind.const, schema])),
  };
}
