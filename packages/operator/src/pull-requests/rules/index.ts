/** What to do about the pull requests of a Stack: the first rule that applies decides. Pure. */
import type { Stack, StackReason } from "@pko/api";
import { firstDecision } from "@pko/kube";

import { jittered } from "../../shared/pauses.ts";
import {
  closedWithoutResult,
  isDeleting,
  movedWithoutResult,
  pullRequestNumberOf,
  wantsPreviews,
} from "../../shared/pull-request-preview.ts";
import { areRecorded } from "../cancelled.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import { isPreviewCurrent, previewNameOf, previewStack, type Head } from "../preview-stack.ts";
import type { PullRequestsPlan, Step, WantedPreview } from "../steps.ts";
import type { ForgeView, PullRequestsView } from "../view.ts";
import { headOf, targetsOf, type Targets } from "./targets.ts";

/** What the list requires is computed once for all rules: it may have hundreds of pull requests. Undefined before the first list. */
interface RuleView extends PullRequestsView {
  readonly targets: Targets | undefined;
}

/** Undefined where the rule does not apply. */
type Rule = (view: RuleView) => PullRequestsPlan | undefined;

const wait = (outcome: Outcome): PullRequestsPlan => ({ steps: [], outcome });

/** A status with nothing but pull requests would look like that of a Stack that is not observed. */
function statusMissing({ stack }: PullRequestsView): PullRequestsPlan | undefined {
  return stack.status?.observedGeneration === undefined ? wait({ kind: "unchanged" }) : undefined;
}

function previewsUnwanted({ stack, previews }: PullRequestsView): PullRequestsPlan | undefined {
  if (wantsPreviews(stack)) return undefined;
  return { steps: deletions(previews), outcome: { kind: "off" } };
}

function specInvalid({ spec }: PullRequestsView): PullRequestsPlan | undefined {
  if (spec.ok) return undefined;
  return wait({ kind: "waiting", reason: "ForgePending", message: messages.specInvalid });
}

/** The previews are suspended with the Stack: their specs follow its spec. */
function suspended({ stack, previews, operatorSuspended }: PullRequestsView): PullRequestsPlan | undefined {
  if (!stack.spec.suspend && !operatorSuspended) return undefined;
  const heads = previews.flatMap((preview) => headOf(stack, preview) ?? []);
  const steps = applications({ stack, previews }, stack.spec.suspend ? heads : []);
  return { steps, outcome: { kind: "waiting", reason: "PreviewsSuspended", message: messages.suspended } };
}

/** A forge that does not respond must not end previews. */
function forgeFailed({ forge }: PullRequestsView): PullRequestsPlan | undefined {
  if (forge.kind !== "failed") return undefined;
  return wait({ kind: "failing", reason: failures[forge.problem], message: forge.message });
}

const failures: Readonly<
  Record<Extract<ForgeView, { kind: "failed" }>["problem"], StackReason<"PullRequestsPreviewed">>
> = {
  unreachable: "ForgeUnavailable",
  rejected: "ForgeRejected",
  credentials: "ForgeCredentialsMissing",
};

function listPending({ targets }: RuleView): PullRequestsPlan | undefined {
  if (targets) return undefined;
  return wait({ kind: "waiting", reason: "ForgePending", message: messages.pending });
}

/** The operator may stop after it has deleted a preview, and nothing else shows that a run has no result. */
function cancellationsUnrecorded(view: RuleView): PullRequestsPlan | undefined {
  const { targets } = view;
  if (!targets || areRecorded(view.stack, targets.cancelled)) return undefined;
  return { ...current(view, targets), requeueAt: view.now };
}

function previewsDue(view: RuleView): PullRequestsPlan | undefined {
  const { targets } = view;
  if (!targets || view.blocked) return undefined;
  const steps = [...deletions(targets.obsolete), ...applications(view, targets.heads)];
  return steps.length > 0 ? { ...current(view, targets), steps } : undefined;
}

/** A pass has to end before its deadline, also with a slow forge: what it has reported would be lost, and reported again. */
const maxReported = 3;

/** After the previews: a slow forge must not delay them. */
function resultMissing(view: RuleView): PullRequestsPlan | undefined {
  const { targets } = view;
  if (!targets || targets.unreported.length === 0 || view.answered) return undefined;
  const open = new Set(targets.heads.map(({ number }) => number));
  const previews = targets.unreported.slice(0, maxReported).map(({ number, commit }) => ({
    number,
    commit,
    description: open.has(number) ? movedWithoutResult : closedWithoutResult,
  }));
  return { ...current(view, targets), steps: [{ kind: "reportCancelled", previews }] };
}

/** Applies to every view. The rules before it leave those with a list. */
function previewsCurrent(view: RuleView): PullRequestsPlan {
  const { targets } = view;
  return targets ? current(view, targets) : wait({ kind: "unchanged" });
}

/** Neither what blocks a preview nor the runs of cancelled ones are watched. */
const cancelledPauseMs = 10_000;
const failedPauseMs = 60_000;

function current(view: PullRequestsView, targets: Targets): PullRequestsPlan {
  const { stack, blocked, answered, now } = view;
  const { selection, kept, cancelled } = targets;
  const { name = "", uid = "" } = stack.metadata;
  const message = targets.isComparing ? messages.comparing : messages.previewing(selection, targets);
  const outcome = { kind: "previewing", selected: selection.selected, kept, cancelled, message } as const;
  const texts = [...(blocked ?? [])].map(([number, each]) =>
    messages.blocked(number, each, previewNameOf(name, number)),
  );
  const pauseMs = cancelled.length > 0 && !answered ? cancelledPauseMs : failedPauseMs;
  const isMoreDue = targets.unreported.length > 0 && answered !== undefined && answered.length > 0;
  return {
    steps: [],
    outcome: { ...outcome, ...(blocked && { blocked: texts.join(" ") }) },
    ...((blocked || cancelled.length > 0) && { requeueAt: isMoreDue ? now : now + jittered(pauseMs, uid) }),
  };
}

function deletions(previews: readonly Stack[]): Step[] {
  const present = previews.filter((preview) => !isDeleting(preview));
  return present.length > 0 ? [{ kind: "deletePreviews", previews: present }] : [];
}

/** A preview that is being deleted has to disappear before another one can have its name. */
function applications(
  { stack, previews }: Pick<PullRequestsView, "stack" | "previews">,
  heads: readonly Head[],
): Step[] {
  const presents = new Map(previews.map((preview) => [pullRequestNumberOf(preview), preview]));
  const wanted = heads.flatMap((head): WantedPreview[] => {
    const present = presents.get(head.number);
    const preview = previewStack(stack, head, present);
    if (present && (isDeleting(present) || isPreviewCurrent(present, preview))) return [];
    return [{ number: head.number, stack: preview }];
  });
  return wanted.length > 0 ? [{ kind: "applyPreviews", previews: wanted }] : [];
}

const rules: readonly Rule[] = [
  statusMissing, // the Stack has no status yet: wait for it
  previewsUnwanted, // the Stack is deleted, or previews no pull requests: delete all previews
  specInvalid, // the spec is invalid, which the Stack reports: leave the previews as they are
  suspended, // the Stack or the operator is suspended: suspend the previews, and read nothing
  forgeFailed, // the list of pull requests cannot be read: report it, and leave the previews as they are
  listPending, // there is no list of pull requests yet: wait for it
  cancellationsUnrecorded, // previews end without a result: record that first
  previewsDue, // create, move and delete previews
  resultMissing, // report previews that ended without a result
  previewsCurrent, // each selected pull request has its preview, or one that is blocked
];

export const planPullRequests = (view: PullRequestsView): PullRequestsPlan =>
  firstDecision(rules, { ...view, targets: targetsOf(view) });
