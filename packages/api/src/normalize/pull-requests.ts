/** Which pull requests are previewed, with defaults. */
import { defaultPullRequestLimit, defaultPullRequestSeconds } from "../stack/pull-requests.ts";
import { stackMessages as messages } from "../stack/messages.ts";
import type { ReportSettings } from "../shared/report.ts";
import type { StackSpec } from "../stack/spec.ts";
import { boundedMs } from "./control.ts";
import type { Findings } from "./findings.ts";
import type { GitRef } from "./git.ts";
import type { Source } from "./source.ts";

export interface NormalPullRequests {
  readonly forge: ForgeSettings;
  /** At least one of them; any if there is none. */
  readonly labels: readonly string[];
  /** Globs of target branches. */
  readonly branches: readonly string[];
  readonly limit: number;
  readonly everyMs: number;
  readonly allowForks: boolean;
}

export function normalPullRequests(
  { pullRequests, report }: Pick<StackSpec, "pullRequests" | "report">,
  source: Source | undefined,
  findings: Findings,
): NormalPullRequests | undefined {
  if (!pullRequests || !source) return undefined;
  if (source.kind !== "git") {
    findings.problem("spec.projectRepo", messages.pullRequestsWithoutRepository);
    return undefined;
  }
  const forge = forgeOf(pullRequests, report);
  if (!forge) {
    findings.problem("spec.pullRequests", messages.pullRequestsWithoutForge);
    return undefined;
  }
  const { labels = [], branches = followedBranch(source.ref), limit, intervalSeconds, allowForks } = pullRequests;
  if (branches.length === 0) findings.problem("spec.pullRequests.branches", messages.pullRequestsWithoutBranch);
  if (labels.length > 0 && forge.type.startsWith("Bitbucket")) {
    findings.problem("spec.pullRequests.labels", messages.pullRequestsWithoutLabels);
  }
  return {
    forge,
    labels,
    branches,
    limit: limit ?? defaultPullRequestLimit,
    everyMs: boundedMs(Math.max(intervalSeconds ?? 0, defaultPullRequestSeconds)),
    allowForks: allowForks ?? false,
  };
}

type ForgeSettings = Pick<ReportSettings, "type" | "url" | "repository" | "secretRef">;

/** Each field that is not set is that of the report. */
function forgeOf(own: ForgeFields, report: ForgeFields = {}): ForgeSettings | undefined {
  const { type = report.type, secretRef = report.secretRef } = own;
  const { url = report.url, repository = report.repository } = own;
  if (!type || !secretRef) return undefined;
  return { type, secretRef, ...(url && { url }), ...(repository && { repository }) };
}

type ForgeFields = Partial<ForgeSettings>;

/** As a glob: Git allows no character in a branch that is special in one, except brackets and braces. */
const followedBranch = (ref: GitRef): string[] =>
  ref.kind === "branch" ? [ref.name.replaceAll(/[[\]{}!]/g, String.raw`\$&`)] : [];
