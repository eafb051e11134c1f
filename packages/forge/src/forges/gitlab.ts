/** GitLab: https://docs.gitlab.com/api/rest */
import { entriesOf, findAt, linkedPage, type ForgeApi } from "../api.ts";
import { htmlMarker, maxComments, putComment, shortDescription } from "../comments.ts";
import { ForgeError } from "../errors.ts";
import { at, labelsAt, listAt, nameAt, numberAt, textAt, type Json } from "../json.ts";
import type { CommitState, Forge, PullRequest } from "../types.ts";

/** GitLab rejects "pending" after "running", but a plan runs before it waits for an approval. */
const states: Readonly<Record<CommitState, string>> = {
  pending: "pending",
  running: "pending",
  success: "success",
  failure: "failed",
  error: "failed",
};

export function gitlab(api: ForgeApi): Forge {
  const project = `projects/${encodeURIComponent(api.repository.join("/"))}`;
  return {
    async setStatus(commit, { context, state, description, url }) {
      const body = {
        state: states[state],
        name: context,
        description: shortDescription(description),
        ...(url !== undefined && { target_url: url }),
      };
      try {
        await api.post(`${project}/statuses/${commit}`, body);
      } catch (error) {
        if (!(await hasState(error, commit, body))) throw error;
      }
    },
    async openPullRequests(limit) {
      const first = `${project}/merge_requests?state=opened&order_by=created_at&sort=desc&per_page=100`;
      const read = (json: Json): readonly Json[] => listAt(json);
      const { entries, isComplete } = await entriesOf(api, first, { limit, read, next: linkedPage });
      return { pullRequests: entries.map((entry) => mergeRequest(entry)), isComplete };
    },
    async openPullRequest(number) {
      const found = await findAt(api, `${project}/merge_requests/${number}`);
      return textAt(found, "state") === "opened" ? mergeRequest(found) : undefined;
    },
    putComment: (number, comment) => putComment(notes(number), comment, htmlMarker),
  };

  /** GitLab rejects a state that a commit already has: "Cannot transition status". */
  async function hasState(error: unknown, commit: string, { name, state }: { name: string; state: string }) {
    if (!(error instanceof ForgeError) || error.kind !== "invalid") return false;
    const query = `name=${encodeURIComponent(name)}&per_page=100`;
    const { json } = await api.get(`${project}/repository/commits/${commit}/statuses?${query}`);
    return listAt(json).some((entry) => textAt(entry, "name") === name && textAt(entry, "status") === state);
  }

  function notes(number: number) {
    const path = `${project}/merge_requests/${number}/notes`;
    return {
      async list() {
        const reader = { limit: maxComments, read: (json: Json) => listAt(json), next: linkedPage };
        const { entries } = await entriesOf(api, `${path}?sort=asc&order_by=created_at&per_page=100`, reader);
        return entries.map((entry) => ({ id: textAt(entry, "id"), body: textAt(entry, "body") }));
      },
      create: async (body: string) => textAt((await api.post(path, { body })).json, "id"),
      async replace(id: string, body: string) {
        await api.put(`${path}/${encodeURIComponent(id)}`, { body });
      },
    };
  }
}

function mergeRequest(entry: Json | undefined): PullRequest {
  return {
    number: numberAt(entry, "iid"),
    title: nameAt(entry, "title"),
    url: nameAt(entry, "web_url"),
    head: { ref: nameAt(entry, "source_branch"), commit: nameAt(entry, "sha") },
    base: { ref: nameAt(entry, "target_branch") },
    labels: labelsAt(entry),
    isFork: textAt(entry, "source_project_id") !== textAt(entry, "target_project_id"),
    isDraft: at(entry, "draft") === true,
  };
}
