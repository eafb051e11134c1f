/** The client of a forge. */
import { forgeApi } from "./api.ts";
import { CommitHashes } from "./commit-hashes.ts";
import { bitbucketDataCenter } from "./forges/bitbucket-data-center.ts";
import { bitbucket } from "./forges/bitbucket.ts";
import { gitea } from "./forges/gitea.ts";
import { github } from "./forges/github.ts";
import { gitlab } from "./forges/gitlab.ts";
import type { ForgeHttp } from "./http.ts";
import type { Forge, ForgeCredentials, ForgeTarget } from "./types.ts";

export interface ForgeTools {
  readonly http: ForgeHttp;
  /** Shared by clients that list pull requests of the same repositories again and again. */
  readonly hashes?: CommitHashes;
}

/** Throws a ForgeError if the target has no valid URL or repository. */
export function forge(target: ForgeTarget, credentials: ForgeCredentials, { http, hashes }: ForgeTools): Forge {
  const api = forgeApi(target, credentials, http);
  switch (target.type) {
    case "GitHub":
      return github(api);
    case "GitLab":
      return gitlab(api);
    case "Gitea":
      return gitea(api);
    case "Bitbucket":
      return bitbucket(api, hashes ?? new CommitHashes());
    case "BitbucketDataCenter":
      return bitbucketDataCenter(api);
  }
}
