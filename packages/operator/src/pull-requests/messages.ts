/** The texts of pull request previews. */
import { stackKind } from "@pko/api";

import { conflictMessage } from "../shared/objects/ownership.ts";
import type { Selection } from "./selection.ts";
import type { Blockage } from "./view.ts";

export const pending = "The operator has not read the list of pull requests yet; it does so within seconds.";

export const specInvalid =
  "The spec of the Stack is invalid, so its pull requests are not read and their previews stay as they are; see Stalled.";

export const suspended =
  "The Stack or the whole operator is suspended, so its pull requests are not read. They are read again when the suspension ends.";

const truncated =
  "The repository has more open pull requests, or longer ones, than the operator reads, so only the newest are considered for new previews; close some that are no longer needed.";

/** Without numbers, which would change with each comparison. */
export const comparing =
  "Some open pull requests are being compared with the commit that the Stack has deployed, because of spec.pathFilters. Until that is known, they get no preview, or keep the one that they have; the others are previewed.";

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** `unaffecting`: how many pull requests change no file that the path filters select. */
interface LeftOut {
  readonly unaffecting: number;
  readonly isTruncated: boolean;
}

export function previewing(selection: Selection, { unaffecting, isTruncated }: LeftOut): string {
  const { selected, beyondLimit, fromForks, withoutCommit } = selection;
  const shown = `${counted(selected.length, "open pull request")} ${selected.length === 1 ? "has" : "have"} a preview.`;
  const beyond =
    beyondLimit > 0
      ? ` ${counted(beyondLimit, "older one")} ${beyondLimit === 1 ? "exceeds" : "exceed"} spec.pullRequests.limit.`
      : "";
  const forks =
    fromForks > 0
      ? ` ${fromForks} from ${fromForks === 1 ? "a fork is" : "forks are"} not previewed, because spec.pullRequests.allowForks is not set.`
      : "";
  const missing =
    withoutCommit > 0
      ? ` ${withoutCommit} cannot be previewed, because the forge does not have the head commit; its branch or fork may have been deleted.`
      : "";
  const others =
    unaffecting > 0
      ? ` ${counted(unaffecting, "other")} ${unaffecting === 1 ? "has" : "have"} no changes under spec.pathFilters, and no preview.`
      : "";
  return `${shown}${others}${beyond}${forks}${missing}${isTruncated ? ` ${truncated}` : ""}`;
}

/** Of one pull request. */
export function blocked(number: number, blockage: Blockage, preview: string): string {
  switch (blockage.kind) {
    case "former":
    case "foreign":
      return `Pull request ${number} has no preview: ${conflictMessage([blockage], { kind: stackKind.kind, name: preview })}`;
    case "rejected":
      return `Pull request ${number} has no preview, because the API server rejected Stack ${preview}: ${blockage.rejection.explanation}`;
  }
}

/** `why` is a clause or a sentence. */
export const forgeFailed = (repository: string, why: string): string =>
  `The pull requests of ${repository} cannot be read: ${why.replace(/\.$/, "")}. Previews stay as they are, and the operator tries again.`;

export const repositoryUnknown =
  "the repository at the forge cannot be derived from spec.projectRepo; set spec.pullRequests.repository, and spec.pullRequests.url to the root of the API";

export const opened = (number: number, preview: string): string =>
  `Pull request ${number} is previewed by Stack ${preview}.`;

export const moved = (number: number, commit: string): string =>
  `Pull request ${number} has the new head ${commit.slice(0, 12)}, which is previewed instead of the old one.`;

export const closed = (number: number, preview: string): string =>
  `Pull request ${number} was closed or is no longer selected; Stack ${preview} is deleted.`;
