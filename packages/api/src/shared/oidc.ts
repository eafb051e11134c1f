/** Login to Pulumi Cloud without a stored token: the workspace's service account token is exchanged for an access token. */
import { Type, type Static } from "typebox";

import { isSet, validationText, validatedBy, type ValidationMessage } from "../schema/cel.ts";
import { flag, int64, optional, text } from "../schema/field.ts";

export const oidcMessages = {
  teamAndUser: { message: "team and user are mutually exclusive", remedy: "remove one of them" },
  adminOfOthers: {
    message: "admin is valid only for a token of the organization",
    remedy: "remove admin, or remove team and user",
  },
} as const satisfies Record<string, ValidationMessage>;

const hasTeam = isSet("team");
const hasUser = isSet("user");

export const Oidc = Type.Object(
  {
    organization: optional(
      text(
        "The Pulumi organization in which the cluster is registered as an OIDC issuer. Defaults to the organization in the name of the Pulumi stack, or else to the operator's setting.",
      ),
    ),
    team: optional(text("Requests a token of this team instead of the organization's.")),
    user: optional(text("Requests a personal token of this user instead of the organization's.")),
    admin: optional(flag("Whether the organization's token has administrator permissions.")),
    expirationSeconds: optional(
      int64(
        "The lifetime of each access token in seconds, which also limits the duration of an update. Defaults to the operator's setting, which is 7200 by default.",
        { minimum: 60 },
      ),
    ),
  },
  {
    description:
      "Logs in to Pulumi Cloud by exchanging the service account's token for a short-lived access token, if PULUMI_ACCESS_TOKEN is not set.",
    ...validatedBy(
      { rule: `!(${hasTeam}) || !(${hasUser})`, message: validationText(oidcMessages.teamAndUser) },
      {
        rule: `!(has(self.admin) && self.admin) || (!(${hasTeam}) && !(${hasUser}))`,
        message: validationText(oidcMessages.adminOfOthers),
      },
    ),
  },
);
export type Oidc = Static<typeof Oidc>;
