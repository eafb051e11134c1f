/** Signing in to Pulumi Cloud without a stored token: the workspace's service-account token is exchanged for one. */
import { Type, type Static } from "typebox";

import { given, sentence, validatedBy, type Wording } from "../schema/cel.ts";
import { flag, int64, optional, text } from "../schema/field.ts";

export const oidcWording = {
  teamAndUser: { message: "names a team and a user", remedy: "keep team, or keep user" },
  adminOfOthers: {
    message: "admin belongs to a token of the organization",
    remedy: "remove admin, or remove team and user",
  },
} as const satisfies Record<string, Wording>;

const hasTeam = given("team");
const hasUser = given("user");

export const Oidc = Type.Object(
  {
    organization: optional(
      text(
        "The Pulumi organization that has the cluster as an OIDC issuer; the one in the name of the Pulumi stack, or else the operator's, when left out.",
      ),
    ),
    team: optional(text("Asks for a token of this team, not of the organization.")),
    user: optional(text("Asks for a personal token of this user, not of the organization.")),
    admin: optional(flag("Whether the organization's token has the rights of an administrator.")),
    expirationSeconds: optional(
      int64(
        "How long each access token is good for, and so the longest update; the operator's setting, by default 7200, when left out.",
        { minimum: 60 },
      ),
    ),
  },
  {
    description:
      "Signs in to Pulumi Cloud by exchanging the service account's token for a short-lived access token, where there is no PULUMI_ACCESS_TOKEN.",
    ...validatedBy(
      { rule: `!(${hasTeam}) || !(${hasUser})`, message: sentence(oidcWording.teamAndUser) },
      {
        rule: `!(has(self.admin) && self.admin) || (!(${hasTeam}) && !(${hasUser}))`,
        message: sentence(oidcWording.adminOfOthers),
      },
    ),
  },
);
export type Oidc = Static<typeof Oidc>;
