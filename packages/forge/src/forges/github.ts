/** GitHub, and GitHub Enterprise: https://docs.github.com/rest */
import { entriesOf, findAt, linkedPage, type Entries, type ForgeApi } from "../api.ts";
import { htmlMarker, maxComments, putComment, shortDescription } from "../comments.ts";
import { at, labelsAt, listAt, nameAt, numberAt, textAt, type Json } from "../json.ts";
import type { CommitState, Forge, PullRequest, PullRequestList } from "../types.ts";

const states: Readonly<Record<CommitState, string>> = {
  pending: "pending",
  running: "pending",
  success: "success",
  failure: "failure",
  error: "error",
};

export function github(api: ForgeApi): Forge {
  const repository = `repos/${api.repository.join("/")}`;
  return {
    async setStatus(commit, { context, state, description, url }) {
      await api.post(`${repository}/statuses/${commit}`, {
        state: states[state],
        context,
        description: shortDescription(description),
        ...(url !== undefined && { target_url: url }),
      });
    },
    async openPullRequests(limit) {
      const first = `${repository}/pulls?state=open&sort=created&direction=desc&per_page=100`;
      return githubPullRequests(await entriesOf(api, first, { limit, read: (json) => listAt(json), next: linkedPage }));
    },
    async openPullRequest(number) {
      const found = await findAt(api, `${repository}/pulls/${number}`);
      return textAt(found, "state") === "open" ? githubPullRequest(found) : undefined;
    },
    putComment: (number, comment) => putComment(issueComments(api, repository, number), comment, htmlMarker),
  };
}

/** Also Gitea's form. */
export const githubPullRequests = ({ entries, isComplete }: Entries): PullRequestList => ({
  pullRequests: entries.map((entry) => githubPullRequest(entry)),
  isComplete,
});

function githubPullRequest(entry: Json | undefined): PullRequest {
  return {
    number: numberAt(entry, "number"),
    title: nameAt(entry, "title"),
    url: nameAt(entry, "html_url"),
    head: { ref: nameAt(entry, "head", "ref"), commit: nameAt(entry, "head", "sha") },
    base: { ref: nameAt(entry, "base", "ref") },
    labels: labelsAt(entry),
    // The repository of a deleted fork is null.
    isFork: textAt(entry, "head", "repo", "id") !== textAt(entry, "base", "repo", "id"),
    isDraft: at(entry, "draft") === true,
  };
}

function issueComments(api: ForgeApi, repository: string, number: number) {
  const comments = `${repository}/issues/${number}/comments`;
  return {
    async list() {
      const reader = { limit: maxComments, read: (json: Json) => listAt(json), next: linkedPage };
      const { entries } = await entriesOf(api, `${comments}?per_page=100`, reader);
      return entries.map((entry) => ({ id: textAt(entry, "id"), body: textAt(entry, "body") }));
    },
    create: async (body: string) => textAt((await api.post(comments, { body })).json, "id"),
    async replace(id: string, body: string) {
      await api.patch(`${repository}/issues/comments/${encodeURIComponent(id)}`, { body });
    },
  };
}
