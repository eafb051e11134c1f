/** Rules about other Stacks that have to be deployed first. */
import { timestamp } from "@pko/kube";

import { clockSkewMs } from "../../shared/parse-timestamp.ts";
import * as messages from "../messages.ts";
import type { PrerequisiteRequest, StackPlan } from "../steps.ts";
import { isDeleting, validSpec, type PrerequisiteView, type StackOutputView, type StackView } from "../view.ts";

export function prerequisitesUnmet(view: StackView): StackPlan | undefined {
  const unmet = isDeleting(view) ? [] : unmetPrerequisites(view);
  if (unmet.length === 0) return undefined;
  const requests = [...new Map(unmet.flatMap(({ request }) => (request ? [[request.name, request]] : []))).values()];
  return {
    steps: requests.length > 0 ? [{ kind: "requestPrerequisites", requests }] : [],
    outcome: {
      kind: "prerequisites",
      message: messages.prerequisitesUnmet(unmet.map(({ message }) => message)),
      waitingFor: messages.stackNames([...new Set(unmet.map(({ name }) => name))]),
    },
  };
}

interface Unmet {
  readonly name: string;
  readonly message: string;
  /** Set if it has to run, and this was not requested yet. */
  readonly request?: PrerequisiteRequest;
}

function unmetPrerequisites(view: StackView): Unmet[] {
  const named = view.prerequisites.flatMap((each) => unmetPrerequisite(each, view) ?? []);
  const outputs = view.stackOutputs.flatMap((each) => unmetOutput(each, view) ?? []);
  return [...named, ...outputs];
}

function unmetOutput(wanted: StackOutputView, view: StackView): Unmet | undefined {
  const { output, from, version, others } = wanted;
  const { name } = from;
  const unmet = unmetPrerequisite(from, view);
  if (unmet) return { ...unmet, message: messages.outputNeeded(unmet.message, output) };
  if (version !== undefined) return undefined;
  if (wanted.isForeign) return { name, message: messages.outputsSecretForeign(name, output) };
  if (others) return { name, message: messages.outputMissing(name, output, others) };
  // It was deployed without a Secret for its outputs, for example by the Go operator. Another run creates the Secret.
  const request = from.last === "deployed" ? requestOnce(from, outputsRequest) : {};
  return { name, message: messages.outputsNotStored(name, output, request.request !== undefined), ...request };
}

/** A constant: a Stack that has run for it, and still has no outputs, is not requested to run again. */
const outputsRequest = "outputs-are-needed";

function unmetPrerequisite(each: PrerequisiteView, view: StackView): Unmet | undefined {
  const { name, endedAt, withinMs } = each;
  const message = problemWith(each, view);
  if (message !== undefined) return { name, message };
  if (withinMs === undefined || isWithin(endedAt, withinMs, view.now)) return undefined;
  return { name, message: messages.prerequisiteTooOld(each), ...requestOnce(each, `after-${timestamp(endedAt ?? 0)}`) };
}

/** A time in the future was recorded while a clock was wrong. */
function isWithin(endedAt: number | undefined, withinMs: number, now: number): boolean {
  return endedAt !== undefined && now - endedAt <= withinMs && endedAt - now <= clockSkewMs;
}

function problemWith({ name, state, last, isCurrent }: PrerequisiteView, view: StackView): string | undefined {
  if (state === "absent") return messages.prerequisiteMissing(name);
  if (state === "deleting") return messages.prerequisiteDeleting(name);
  if (last === "none") return messages.prerequisiteNotDeployed(name);
  if (!isCurrent) return messages.prerequisiteOutdated(name);
  if (last === "failed") return messages.prerequisiteFailed(name);
  // A preview deploys nothing, which is enough for another preview.
  const isEnough = last === "deployed" || validSpec(view)?.operation === "preview";
  return isEnough ? undefined : messages.prerequisiteOnlyPreviewed(name);
}

/** All dependent Stacks request the same value, so that the prerequisite runs once for all of them. */
function requestOnce(
  { name, uid, reconcileRequest }: PrerequisiteView,
  request: string,
): { request?: PrerequisiteRequest } {
  return uid === undefined || request === reconcileRequest ? {} : { request: { name, uid, request } };
}
