/** Bitbucket Data Center: https://developer.atlassian.com/server/bitbucket/rest */
import { entriesOf, findAt, type Answer, type ForgeApi } from "../api.ts";
import { linkMarker, maxComments, putComment, shortDescription } from "../comments.ts";
import { at, isRecord, listAt, nameAt, numberAt, textAt, type Json } from "../json.ts";
import { statusKey } from "../status-key.ts";
import type { Forge, PullRequest } from "../types.ts";
import { bitbucketStates } from "./bitbucket.ts";

const maxKeyLength = 255;
const pageSize = 100;

export function bitbucketDataCenter(api: ForgeApi): Forge {
  const [project = "", name = ""] = api.repository;
  const path = `projects/${encodeURIComponent(project)}/repos/${encodeURIComponent(name)}`;
  const repository = `api/1.0/${path}`;
  return {
    async setStatus(commit, { context, state, description, url }) {
      await api.post(`${repository}/commits/${commit}/builds`, {
        key: statusKey(context, maxKeyLength),
        name: context,
        state: bitbucketStates[state],
        description: shortDescription(description),
        // A status must have a URL.
        url: url ?? `${api.root.replace(/\/rest$/, "")}/${path}/commits/${commit}`,
      });
    },
    async openPullRequests(limit) {
      const list = paged(`${repository}/pull-requests?state=OPEN&order=NEWEST`, limit);
      const { entries, isComplete } = await entriesOf(api, ...list);
      return { pullRequests: entries.map((entry) => pullRequest(entry)), isComplete };
    },
    async openPullRequest(number) {
      const found = await findAt(api, `${repository}/pull-requests/${number}`);
      return textAt(found, "state") === "OPEN" ? pullRequest(found) : undefined;
    },
    putComment: (number, comment) => putComment(comments(api, repository, number), comment, linkMarker),
  };
}

/** The first page of a list and how to read it. */
function paged(list: string, limit: number) {
  const page = `${list}${list.includes("?") ? "&" : "?"}limit=${pageSize}`;
  const next = ({ json }: Answer, path: string): string | undefined =>
    at(json, "isLastPage") === false
      ? `${path.replace(/&start=[^&]*$/, "")}&start=${numberAt(json, "nextPageStart")}`
      : undefined;
  return [page, { limit, read: (json: Json) => listAt(json, "values"), next }] as const;
}

const branchOf = (ref: Json | undefined): string => nameAt(ref, "id").replace(/^refs\/heads\//, "");

const repositoryIn = (ref: Json | undefined): string =>
  `${textAt(ref, "repository", "project", "key")}/${textAt(ref, "repository", "slug")}`;

function pullRequest(entry: Json | undefined): PullRequest {
  const [from, to] = [at(entry, "fromRef"), at(entry, "toRef")];
  return {
    number: numberAt(entry, "id"),
    title: nameAt(entry, "title"),
    url: nameAt(listAt(entry, "links", "self")[0], "href"),
    head: { ref: branchOf(from), commit: nameAt(from, "latestCommit") },
    base: { ref: branchOf(to) },
    // Bitbucket has none.
    labels: [],
    isFork: repositoryIn(from) !== repositoryIn(to),
    isDraft: at(entry, "draft") === true,
  };
}

function comments(api: ForgeApi, repository: string, number: number) {
  const path = `${repository}/pull-requests/${number}`;
  return {
    /** There is no list of comments, but one of everything that has happened, newest first. */
    async list() {
      const { entries } = await entriesOf(api, ...paged(`${path}/activities`, maxComments));
      return entries
        .filter((entry) => textAt(entry, "action") === "COMMENTED" && isRecord(at(entry, "comment")))
        .map((entry) => ({ id: textAt(entry, "comment", "id"), body: textAt(entry, "comment", "text") }))
        .toReversed();
    },
    create: async (text: string) => textAt((await api.post(`${path}/comments`, { text })).json, "id"),
    /** The version proves that the comment is replaced as it was read. */
    async replace(id: string, text: string) {
      const comment = `${path}/comments/${encodeURIComponent(id)}`;
      const version = numberAt((await api.get(comment)).json, "version");
      await api.put(comment, { text, version });
    },
  };
}
