/** Which finished Updates the history limits of the Stack no longer keep. Pure. */
import { isDeleting, presentStatus, validSpec, type StackView, type UpdateFacts } from "../view.ts";

/** What an Update is for. Each is counted separately: frequent drift checks do not displace updates. */
const purposes = ["update", "plan", "driftCheck"] as const;
type Purpose = (typeof purposes)[number];

function purposeOf({ isDriftCheck, isPlan }: UpdateFacts): Purpose {
  if (isDriftCheck) return "driftCheck";
  return isPlan ? "plan" : "update";
}

/** The oldest first. The garbage collector deletes all of a deleted Stack. */
export function excessUpdates(view: StackView): UpdateFacts[] {
  const history = validSpec(view)?.history;
  if (!history || isDeleting(view)) return [];
  // Times are in seconds: of two that ended in the same second, the one that was created later is the newer.
  const finished = view.updates
    .filter(isRecorded)
    .toReversed()
    .toSorted((a, b) => endOf(b) - endOf(a));
  const isNeeded = neededUpdates(view, finished);
  const excess = (purpose: Purpose, state: keyof typeof history): UpdateFacts[] =>
    finished.filter((update) => purposeOf(update) === purpose && update.state === state).slice(history[state]);
  return purposes
    .flatMap((purpose) => excess(purpose, "succeeded").concat(excess(purpose, "failed")))
    .filter((update) => !update.deleting && !isNeeded(update))
    .toSorted((a, b) => endOf(a) - endOf(b));
}

/** Finished, and its result is in the status. An Update without a trigger was created by somebody else. */
const isRecorded = ({ state, hasFinalizer, trigger }: UpdateFacts): boolean =>
  state !== "unfinished" && !hasFinalizer && trigger !== undefined;

const endOf = ({ endedAt, createdAt }: UpdateFacts): number => endedAt ?? createdAt;

/** `finished`: the newest first. */
function neededUpdates(view: StackView, finished: readonly UpdateFacts[]): (update: UpdateFacts) => boolean {
  const lastSuccess = finished.find((update) => update.state === "succeeded" && purposeOf(update) === "update");
  const names = new Set([...namesInStatus(view), ...appliedPlans(view), lastSuccess?.name]);
  // A later success shows that no lock was left.
  const since = lastSuccess ? endOf(lastSuccess) : -Infinity;
  return (update) => names.has(update.name) || (update.mayHaveLeftLock && endOf(update) > since);
}

function namesInStatus(view: StackView): (string | undefined)[] {
  const { currentUpdate, lastUpdate, approval, drift } = presentStatus(view);
  return [
    currentUpdate?.name,
    lastUpdate?.name,
    approval?.updateName,
    approval?.appliedBy,
    drift?.updateName,
    drift?.corrected?.updateName,
  ];
}

/** The plans that unfinished Updates apply. */
const appliedPlans = ({ updates }: StackView): (string | undefined)[] =>
  updates.filter(({ state }) => state === "unfinished").map(({ appliesPlan }) => appliesPlan);
