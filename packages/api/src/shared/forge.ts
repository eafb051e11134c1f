/** Which repository of which forge, and the credentials for it. */
import { Type } from "typebox";

import { validatedBy, validationText } from "../schema/cel.ts";
import { choice, optional, text } from "../schema/field.ts";

const forgeTypes = ["GitHub", "GitLab", "Gitea", "Bitbucket", "BitbucketDataCenter"] as const;

/** A URL of a web server, without user, query and fragment. */
const urlPattern = String.raw`^https?://[^/?#@\s]+(/[^?#@\s]*)?$`;
const repositoryPattern = String.raw`^[\w.~-]+( ?[\w.~-]+)*(/[\w.~-]+( ?[\w.~-]+)*)+$`;

export const webURL = (description: string) =>
  text(description, {
    maxLength: 1024,
    ...validatedBy({
      rule: `self.matches(r'${urlPattern}')`,
      message: validationText({
        message: "is not a URL of a web server",
        remedy: "use https://, a host and a path, without user, query and fragment",
      }),
    }),
  });

export const forgeFields = {
  type: choice(
    [...forgeTypes],
    "The forge: GitHub, GitLab, Gitea (also Forgejo), Bitbucket (Cloud), or BitbucketDataCenter.",
  ),
  url: optional(
    webURL(
      "The root of the forge's API, such as https://git.example.com/api/v1. By default, it is derived from the URL of the Git repository.",
    ),
  ),
  repository: optional(
    text(
      "The repository, such as owner/name, or group/subgroup/name for GitLab. By default, it is derived from the URL of the Git repository.",
      {
        maxLength: 512,
        ...validatedBy({
          rule: `self.matches(r'${repositoryPattern}')`,
          message: validationText({
            message: "is not the path of a repository",
            remedy: "use a path such as owner/name",
          }),
        }),
      },
    ),
  ),
  secretRef: Type.Object(
    { name: text("The name of the Secret, in the namespace of the Stack.", { minLength: 1, maxLength: 253 }) },
    {
      description:
        "The Secret with the credentials: the key token; or appID, installationID and privateKey of a GitHub App; or username and password. A key ca.crt has the certificates of a private CA.",
    },
  ),
};
