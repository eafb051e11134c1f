/** Bitbucket Cloud: https://developer.atlassian.com/cloud/bitbucket/rest */
import { entriesOf, findAt, type Answer, type ForgeApi } from "../api.ts";
import type { CommitHashes } from "../commit-hashes.ts";
import { linkMarker, maxComments, putComment, shortDescription } from "../comments.ts";
import { at, listAt, nameAt, numberAt, textAt, type Json } from "../json.ts";
import { statusKey } from "../status-key.ts";
import type { CommitState, Forge, PullRequest } from "../types.ts";

export const bitbucketStates: Readonly<Record<CommitState, string>> = {
  pending: "INPROGRESS",
  running: "INPROGRESS",
  success: "SUCCESSFUL",
  failure: "FAILED",
  error: "FAILED",
};

const maxKeyLength = 40;
const values = (json: Json): readonly Json[] => listAt(json, "values");
const next = ({ json }: Answer): string | undefined => textAt(json, "next") || undefined;

export function bitbucket(api: ForgeApi, hashes: CommitHashes): Forge {
  const name = api.repository.join("/");
  const repository = `repositories/${name}`;
  return {
    async setStatus(commit, { context, state, description, url }) {
      await api.post(`${repository}/commit/${commit}/statuses/build`, {
        key: statusKey(context, maxKeyLength),
        name: context,
        state: bitbucketStates[state],
        description: shortDescription(description),
        // A status must have a URL.
        url: url ?? `https://bitbucket.org/${name}/commits/${commit}`,
      });
    },
    async openPullRequests(limit) {
      const first = `${repository}/pullrequests?state=OPEN&sort=-created_on&pagelen=50`;
      const { entries, isComplete } = await entriesOf(api, first, { limit, read: values, next });
      const read = entries.map((entry) => pullRequest(api, hashes, entry));
      return { pullRequests: await Promise.all(read), isComplete };
    },
    async openPullRequest(number) {
      const found = await findAt(api, `${repository}/pullrequests/${number}`);
      return textAt(found, "state") === "OPEN" ? await pullRequest(api, hashes, found) : undefined;
    },
    putComment: (number, comment) => putComment(comments(api, repository, number), comment, linkMarker),
  };
}

async function pullRequest(api: ForgeApi, hashes: CommitHashes, entry: Json | undefined): Promise<PullRequest> {
  const source = nameAt(entry, "source", "repository", "full_name");
  const isFork = source.toLowerCase() !== textAt(entry, "destination", "repository", "full_name").toLowerCase();
  const commit = await fullHash({ api, hashes }, entry, isFork);
  return {
    number: numberAt(entry, "id"),
    title: nameAt(entry, "title"),
    url: nameAt(entry, "links", "html", "href"),
    head: { ref: nameAt(entry, "source", "branch", "name"), commit, ...(isFork && { repository: source }) },
    base: { ref: nameAt(entry, "destination", "branch", "name") },
    // Bitbucket has none.
    labels: [],
    isFork,
    isDraft: at(entry, "draft") === true,
  };
}

interface HashReader {
  readonly api: ForgeApi;
  readonly hashes: CommitHashes;
}

/**
 * Pull requests have only the first 12 digits. A fork may be private, but its commits can be read from the pull request. If the
 * source was deleted, nobody has the rest.
 */
async function fullHash({ api, hashes }: HashReader, entry: Json | undefined, isFork: boolean): Promise<string> {
  const hash = nameAt(entry, "source", "commit", "hash");
  if (!/^[0-9a-f]{7,39}$/.test(hash)) return hash;
  const [path, number] = [`repositories/${api.repository.join("/")}`, numberAt(entry, "id")];
  // A commit of a fork may have the same beginning as one of the repository.
  const [repository, name] = [`${api.root}/${path}`, isFork ? `${number} ${hash}` : hash];
  const known = hashes.find(repository, name);
  if (known !== undefined) return known;
  const commits = isFork
    ? listAt(await findAt(api, `${path}/pullrequests/${number}/commits?pagelen=30`), "values")
    : [await findAt(api, `${path}/commit/${hash}`)];
  const isFound = (each: string): boolean => each.startsWith(hash) && /^[0-9a-f]{40,64}$/.test(each);
  const found = commits.map((commit) => nameAt(commit, "hash")).find(isFound);
  if (found !== undefined) hashes.remember(repository, name, found);
  return found ?? hash;
}

function comments(api: ForgeApi, repository: string, number: number) {
  const path = `${repository}/pullrequests/${number}/comments`;
  return {
    async list() {
      const { entries } = await entriesOf(api, `${path}?pagelen=100&sort=created_on`, {
        limit: maxComments,
        read: values,
        next,
      });
      return entries
        .filter((entry) => at(entry, "deleted") !== true)
        .map((entry) => ({ id: textAt(entry, "id"), body: textAt(entry, "content", "raw") }));
    },
    create: async (body: string) => textAt((await api.post(path, { content: { raw: body } })).json, "id"),
    async replace(id: string, body: string) {
      await api.put(`${path}/${encodeURIComponent(id)}`, { content: { raw: body } });
    },
  };
}
