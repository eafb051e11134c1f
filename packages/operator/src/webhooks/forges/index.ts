/** The formats of hooks, by the type of a Receiver. */
import type { ReceiverType } from "@pko/api";

import { azureDevOps } from "./azure-devops.ts";
import { bitbucket, bitbucketDataCenter } from "./bitbucket.ts";
import { generic } from "./generic.ts";
import { gitea, github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import type { Forge } from "./hook.ts";

export const forges: Readonly<Record<ReceiverType, Forge>> = {
  GitHub: github,
  GitLab: gitlab,
  Gitea: gitea,
  Bitbucket: bitbucket,
  BitbucketDataCenter: bitbucketDataCenter,
  AzureDevOps: azureDevOps,
  Generic: generic,
};
