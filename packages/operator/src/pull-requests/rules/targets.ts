/** What the list of open pull requests requires. Pure. */
import type { CancelledPreview, NormalPullRequests, Stack } from "@pko/api";
import type { PullRequest } from "@pko/forge";

import { pullRequestNumberOf } from "../../shared/pull-request-preview.ts";
import { cancellations } from "../cancelled.ts";
import type { ListedPullRequests } from "../poller.ts";
import { forkURL, type Head } from "../preview-stack.ts";
import { matchingPullRequests, selectMatching, type Selection } from "../selection.ts";
import type { PullRequestsView } from "../view.ts";

export interface Targets {
  readonly selection: Selection;
  /** The numbers of pull requests that are not selected, but keep a preview that they have: whether they are open, or selected, is not known. */
  readonly kept: readonly number[];
  /** What is previewed. */
  readonly heads: readonly Head[];
  /** Previews that are no longer needed. */
  readonly obsolete: readonly Stack[];
  readonly cancelled: readonly CancelledPreview[];
  /** Of these, the ones to report. */
  readonly unreported: readonly CancelledPreview[];
  readonly isTruncated: boolean;
  /** How many match, but change nothing that the Stack's path filters select. */
  readonly unaffecting: number;
  /** Whether some that match have not been compared yet. */
  readonly isComparing: boolean;
}

/** Undefined before the first list. */
export function targetsOf(view: PullRequestsView): Targets | undefined {
  const { stack, spec, forge, previews } = view;
  const wanted = spec.ok ? spec.value.pullRequests : undefined;
  if (forge.kind !== "listed" || !wanted) return undefined;
  const matching = matchingPullRequests(forge.pullRequests, wanted);
  const { affecting, unaffecting, uncompared } = byEffect(view, matching);
  const { selection, undecided } = select({ affecting, uncompared }, wanted);
  const numbers = new Set<number | undefined>(selection.selected.map(({ number }) => number));
  const others = previews.filter((preview) => !numbers.has(pullRequestNumberOf(preview)));
  const isDecided = (number = 0): boolean => isKnown(forge, number) && !undecided.includes(number);
  const obsolete = others.filter((preview) => isDecided(pullRequestNumberOf(preview)));
  const kept = others.filter((preview) => !obsolete.includes(preview)).flatMap((each) => headOf(stack, each) ?? []);
  const heads = [...selection.selected.map((pullRequest) => headAt(stack, pullRequest)), ...kept];
  const { cancelled, due } = cancellations(view, heads);
  return {
    selection,
    kept: [...new Set([...kept.map(({ number }) => number), ...undecided])],
    heads,
    obsolete,
    cancelled,
    unreported: due,
    isTruncated: forge.truncated !== undefined,
    unaffecting: countOf(unaffecting, wanted),
    isComparing: countOf(uncompared, wanted) > 0,
  };
}

const countOf = (matching: readonly PullRequest[], wanted: NormalPullRequests): number =>
  selectMatching(matching, { ...wanted, limit: Infinity }).selected.length;

/** Whether they change something that the Stack's path filters select. */
interface ByEffect {
  readonly affecting: readonly PullRequest[];
  readonly unaffecting: readonly PullRequest[];
  /** Not known yet. */
  readonly uncompared: readonly PullRequest[];
}

function byEffect({ heads: { unaffected, uncompared } }: PullRequestsView, matching: readonly PullRequest[]): ByEffect {
  const isCompared = ({ head }: PullRequest): boolean => !uncompared.has(head.commit);
  const compared = matching.filter(isCompared);
  return {
    affecting: compared.filter(({ head }) => !unaffected.has(head.commit)),
    unaffecting: compared.filter(({ head }) => unaffected.has(head.commit)),
    uncompared: matching.filter((each) => !isCompared(each)),
  };
}

/** Selected is what is selected whatever the comparisons show. `undecided`: the numbers of those that may be selected. */
function select({ affecting, uncompared }: Omit<ByEffect, "unaffecting">, wanted: NormalPullRequests) {
  const all = selectMatching([...affecting, ...uncompared], wanted);
  const { selected: compared } = selectMatching(affecting, wanted);
  const selected = all.selected.filter((each) => compared.includes(each));
  const undecided = [...all.selected, ...compared].filter((each) => !selected.includes(each));
  return { selection: { ...all, selected }, undecided: undecided.map(({ number }) => number) };
}

/** Whether the forge has answered if the pull request is open. A truncated list may lack open ones. */
function isKnown({ pullRequests, truncated }: ListedPullRequests, number: number): boolean {
  return !truncated || truncated.closed.includes(number) || pullRequests.some((each) => each.number === number);
}

function headAt({ spec }: Stack, { number, head }: PullRequest): Head {
  const { commit, repository } = head;
  const projectRepo = repository === undefined ? undefined : forkURL(spec.projectRepo ?? "", repository);
  return { number, commit, ...(projectRepo !== undefined && { projectRepo }) };
}

/** That the preview has. */
export function headOf({ spec: parent }: Stack, preview: Stack): Head | undefined {
  const [number, { commit, projectRepo }] = [pullRequestNumberOf(preview), preview.spec];
  if (number === undefined || commit === undefined) return undefined;
  return { number, commit, ...(projectRepo && projectRepo !== parent.projectRepo && { projectRepo }) };
}
