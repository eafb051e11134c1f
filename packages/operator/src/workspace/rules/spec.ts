/** Rules for a Workspace that is deleted, or cannot have a pod before something is corrected. */
import { describeProblems } from "@pko/api";

import * as messages from "../messages.ts";
import { isServing, type WorkspaceView } from "../view.ts";
import { decide, missingPause, problemPause, type Decision, type WorkspaceRule } from "./decision.ts";

export const deleted: WorkspaceRule = ({ workspace }) =>
  workspace.metadata.deletionTimestamp
    ? decide({ kind: "deleting" }, undefined, [{ kind: "forgetPreparation" }])
    : undefined;

export const rejectedByApiServer: WorkspaceRule = (view) => {
  const { rejection } = view;
  return rejection === undefined
    ? undefined
    : decide({ kind: "misconfigured", message: rejection }, problemPause(view));
};

export const specInvalid: WorkspaceRule = (view) => {
  const { spec, pod } = view;
  if (spec.ok) return undefined;
  // The pod's certificate must be renewed in time, even while the spec stays invalid.
  const afterMs = pod ? problemPause(view) : undefined;
  return decide({ kind: "misconfigured", message: describeProblems(spec.problems) }, afterMs);
};

export const templateInvalid: WorkspaceRule = (view) => {
  const { inputs } = view;
  if (!inputs || inputs.pod.ok) return undefined;
  const { problems, reason } = inputs.pod;
  return decide({ kind: "misconfigured", message: problems.join("\n"), ...(reason && { reason }) }, problemPause(view));
};

/**
 * A prepared workspace stays ready even if its source no longer exists, unless an Update waits, and it is not known what the pod has
 * prepared.
 */
export const sourceUnavailable: WorkspaceRule = (view) => {
  const { updates, isKnownPrepared } = view;
  const isUsable = isKnownPrepared || !updates.some(({ phase }) => phase === "waiting");
  return isServing(view) && isUsable ? undefined : requestIncomplete(view);
};

/** Applies where the request to the agent cannot be built, or needs a token first. */
export function requestIncomplete(view: WorkspaceView): Decision | undefined {
  const { inputs } = view;
  switch (inputs?.requested.kind) {
    case "incomplete": {
      const { message, soon } = inputs.requested;
      return decide({ kind: "misconfigured", message }, soon ? missingPause(view) : problemPause(view));
    }
    case "needsAppToken":
      return decide({ kind: "unchanged" }, undefined, [{ kind: "requestAppToken", app: inputs.requested.app }]);
    case "complete":
    case undefined:
      return undefined;
  }
}

export const referencesMissing: WorkspaceRule = (view) => {
  const { inputs, pod } = view;
  const [first, ...others] = inputs?.missing ?? [];
  // A pod that is up has read them: it is not replaced by one that could not start.
  if (first === undefined || pod?.isUp) return undefined;
  const message = messages.firstMissing(first, others.length);
  return decide({ kind: "waiting", message, isStuck: true }, missingPause(view));
};
