/** Drift and the checks for it. */
import { retryTime } from "./updates.ts";

export const noDrift = "The resources match the state.";

interface DetectedDrift {
  readonly count: number;
  readonly summary: string;
  /** Whether an update corrects it. */
  readonly isCorrected: boolean;
  /** The correction of the same drift before this check. */
  readonly corrected?: { readonly updateName: string; readonly time: string };
}

export function driftDetected({ count, summary, isCorrected, corrected }: DetectedDrift): string {
  const what = count === 1 ? "1 resource differs from the state" : `${count} resources differ from the state`;
  const next = isCorrected
    ? "An update with a refresh corrects this."
    : "Nothing was changed; to correct it, set driftDetection.action to Correct, or run an update with a refresh.";
  return [`${what}: ${summary}.`, ...(corrected ? [driftAgain(corrected)] : []), next].join(" ");
}

const driftAgain = ({ updateName, time }: NonNullable<DetectedDrift["corrected"]>): string =>
  `Update ${updateName} corrected the same drift at ${time}. Something else keeps changing these resources, or the program does not set these properties.`;

export const driftCorrected = (updateName: string): string =>
  `Update ${updateName} refreshed the state, so that it matches the resources.`;

export function driftCheckFailed(why: string, retryAt: number | undefined): string {
  const problem = `The drift check failed: ${why}`;
  return retryAt === undefined ? problem : `${problem}${retryTime(retryAt)}`;
}

export const nameTaken = "another owner's object has a name that it needs";

export const stoppingCheck = (name: string, why: string): string =>
  `The drift check ${name} is being stopped, because ${why}.`;

export const checkObstacles = {
  stackDeleted: "the Stack is being deleted",
  specInvalid: "the spec is invalid",
  updateDue: "an update is due",
} as const;
