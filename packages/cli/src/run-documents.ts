/** The documents about runs: what watch, diff, tree, trace and show print with -o json. */
import { Type, type Static } from "typebox";

import { choice, document, HiddenPart, optionalText, part, text } from "./document-parts.ts";

export const updateFields = {
  namespace: text("The namespace of the Update."),
  name: text("The name of the Update."),
  type: text("The operation: preview, up, refresh or destroy."),
  stack: text("The name of the Pulumi stack."),
  state: choice(["waiting", "running", "succeeded", "failed"], "The state of the operation."),
  startTime: optionalText("The time when the operation started."),
  endTime: optionalText("The time when the operation finished."),
  summary: optionalText("The changes in one line."),
  message: optionalText("Details about the result, such as the error."),
  errorClass: optionalText("The class of the failure."),
  reason: optionalText("What it ran for."),
  revision: optionalText("The source revision."),
  permalink: optionalText("The URL of the operation in Pulumi Cloud."),
  recorded: Type.Optional(Type.Boolean({ description: "Whether the Update is gone, and only its record remains." })),
};

const resourceFields = {
  urn: text("The URN."),
  type: text("The type."),
  name: text("The name in the program."),
};

const PropertyChange = part(
  {
    path: text("The path of the property."),
    kind: text("Pulumi's name of the change: add, update, delete, or one of them with -replace."),
    old: optionalText("The old value as JSON. Secrets are masked."),
    new: optionalText("The new value as JSON. Secrets are masked."),
  },
  "A property that changes.",
);

const RunResource = part(
  {
    ...resourceFields,
    op: text("Pulumi's name of the operation: create, update, delete, replace, same, read, refresh."),
    state: choice(["running", "done", "failed"], "How far the operation is."),
    durationMs: Type.Optional(Type.Number({ description: "How long it took, in milliseconds." })),
    parent: optionalText("The URN of the parent."),
    id: optionalText("The ID that the provider gave the resource."),
    changes: Type.Optional(Type.Array(PropertyChange, { description: "The properties that change." })),
    omittedChanges: Type.Optional(Type.Integer({ description: "How many more properties change." })),
    replaceKeys: Type.Optional(Type.Array(Type.String(), { description: "The properties that force a replacement." })),
  },
  "A resource in a run.",
);
export type RunResource = Static<typeof RunResource>;

const RunDiagnostic = part(
  {
    severity: choice(["debug", "info", "warning", "error"], "How serious it is."),
    message: text("The message."),
    urn: optionalText("The URN of the resource."),
  },
  "A message of the program, a provider, a policy or Pulumi.",
);
export type RunDiagnostic = Static<typeof RunDiagnostic>;

const Omitted = part(
  {
    events: Type.Integer({ description: "Events that did not fit into the record." }),
    resources: Type.Integer({ description: "Resources that did not fit." }),
    values: Type.Integer({ description: "Values of properties that did not fit." }),
    dependencies: Type.Optional(Type.Integer({ description: "Dependencies of resources that did not fit." })),
    inputs: Type.Optional(Type.Integer({ description: "Inputs that did not fit." })),
  },
  "What the record does not contain.",
);

/** From the record of a run, or from its events. */
export const recordFields = {
  trigger: optionalText("Why the run was started."),
  approvedBy: optionalText("The user who approved the plan."),
  approval: Type.Optional(Type.Unknown({ description: "The Approval, as in the record." })),
  versions: Type.Optional(Type.Record(Type.String(), Type.String(), { description: "Versions by component." })),
  inputs: Type.Optional(Type.Record(Type.String(), Type.String(), { description: "Digests of the inputs." })),
  resources: Type.Optional(Type.Array(RunResource, { description: "The resources in the run." })),
  diagnostics: Type.Optional(Type.Array(RunDiagnostic, { description: "Diagnostics, in order." })),
  omitted: Type.Optional(Omitted),
};

export const RunResult = document("RunResult", "The output of watch, at the end of the run.", {
  ...updateFields,
  stackName: text("The name of the Stack."),
  resources: Type.Array(RunResource, { description: "The resources in the run." }),
  diagnostics: Type.Array(RunDiagnostic, { description: "Diagnostics, in order." }),
  outputs: Type.Record(Type.String(), Type.Unknown(), { description: "The outputs. Secret ones are [secret]." }),
  missingEvents: Type.Integer({ description: "Events that neither the log nor the record contains." }),
  hidden: Type.Array(HiddenPart, { description: "What the user does not have permission to read." }),
});
export type RunResult = Static<typeof RunResult>;

export const Diff = document("Diff", "The output of diff STACK, diff UPDATE and preview.", {
  items: Type.Array(
    part(
      {
        namespace: text("The namespace."),
        name: text("The name of the Stack."),
        update: text("The Update."),
        what: choice(["preview", "plan", "run"], "A preview, a plan that waits for an approval, or a run."),
        time: optionalText("The time of the run."),
        revision: optionalText("The source revision."),
        summary: optionalText("The changes, if there is no record of them by resource."),
        resources: Type.Array(RunResource, { description: "The resources that change." }),
        omitted: Type.Optional(Omitted),
      },
      "What one run changes.",
    ),
  ),
});
export type Diff = Static<typeof Diff>;

const Pair = part(
  {
    name: text("What is compared."),
    from: optionalText("In the first run; absent if it has none."),
    to: optionalText("In the second run; absent if it has none."),
  },
  "A difference.",
);

export const Comparison = document("Comparison", "The output of diff UPDATE UPDATE.", {
  namespace: text("The namespace."),
  from: text("The first Update."),
  to: text("The second Update."),
  run: Type.Array(Pair, { description: "Differences of the runs themselves: operation, result, revision, versions." }),
  inputs: Type.Array(Pair, {
    description: "Inputs with different digests, and those that only one of the records has.",
  }),
  changes: Type.Array(Pair, { description: "Resources, by URN, on which the runs performed different operations." }),
  resources: Type.Array(Pair, { description: "Resources, by URN, that exist after only one of the runs." }),
  outputs: Type.Array(Pair, { description: "Names of outputs that only one of the runs has." }),
  hidden: Type.Array(HiddenPart, { description: "What the user does not have permission to read." }),
});
export type Comparison = Static<typeof Comparison>;

const TreeResource = part(
  {
    ...resourceFields,
    parent: optionalText("The URN of the parent."),
    provider: optionalText("The URN of the provider."),
    id: optionalText("The ID that the provider gave the resource."),
    dependencies: Type.Optional(Type.Array(Type.String(), { description: "URNs." })),
  },
  "A resource of the stack.",
);
export type TreeResource = Static<typeof TreeResource>;

export const ResourceTree = document("ResourceTree", "The output of tree.", {
  namespace: text("The namespace."),
  name: text("The name of the Stack."),
  update: text("The Update whose record lists the resources."),
  time: text("The time when that Update ended."),
  resources: Type.Array(TreeResource),
  omitted: Type.Integer({ description: "Resources that did not fit into the record." }),
  partial: Type.Boolean({ description: "Whether there may be more resources: the Update did not visit all of them." }),
  unlisted: optionalText("A later Update, whose record does not list the resources."),
});
export type ResourceTree = Static<typeof ResourceTree>;

const TraceMatch = part(
  {
    namespace: text("The namespace of the Stack."),
    stack: text("The name of the Stack."),
    pulumiStack: text("The Pulumi stack."),
    urn: text("The URN of the resource."),
    id: optionalText("The ID that the provider gave the resource."),
    exists: Type.Boolean({
      description: "Whether no later run deleted the resource, and no later complete list lacks it.",
    }),
    createdBy: optionalText("The Update that created it, if its record is kept."),
    revision: optionalText("The revision of that Update, or else of the latest one with the resource."),
    update: text("The latest Update whose record lists the resource."),
    time: text("The time when that Update ended."),
  },
  "A resource of a Stack.",
);
export type TraceMatch = Static<typeof TraceMatch>;

export const Trace = document("Trace", "The output of trace.", {
  query: text("What was searched for."),
  owners: Type.Array(Type.String(), {
    description: "The objects that own it, as KIND/NAME, up to the one that was found.",
  }),
  matches: Type.Array(TraceMatch),
  belongsTo: optionalText("The Stack to which the object belongs, if the operator created it."),
});
export type Trace = Static<typeof Trace>;
