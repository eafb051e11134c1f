/** Gitea and Forgejo, whose API is GitHub's in what the operator uses, except for lists: https://docs.gitea.com/api */
import { entriesOf, linkedPage, type ForgeApi } from "../api.ts";
import { listAt, type Json } from "../json.ts";
import type { Forge } from "../types.ts";
import { github, githubPullRequests } from "./github.ts";

export function gitea(api: ForgeApi): Forge {
  return {
    ...github(api),
    async openPullRequests(limit) {
      // Newest first is the default, and has no name.
      const first = `repos/${api.repository.join("/")}/pulls?state=open&limit=50`;
      const read = (json: Json): readonly Json[] => listAt(json);
      return githubPullRequests(await entriesOf(api, first, { limit, read, next: linkedPage }));
    },
  };
}
