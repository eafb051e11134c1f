/** Whether a pod exchanges its service account's token for an access token of Pulumi Cloud, and for which. Pure. */
import { organizationsIn, pulumiContainer, type NormalWorkspace, type OidcHolder } from "@pko/api";
import { assertNever } from "@pko/rpc";
import type { Container, PodSpec } from "kubernetes-types/core/v1";

import { backendVariable } from "./file-backend.ts";
import { valueOfVariable, type Readings } from "./references.ts";

/** What holds where a Workspace says nothing. */
export interface OidcDefaults {
  /** Whether workspaces that have no token and say nothing about it sign in this way. */
  readonly automatic: boolean;
  /** For stacks whose name has no organization. */
  readonly organization?: string;
  readonly holder: OidcHolder;
  readonly expirationSeconds: number;
}

export const plainOidc: OidcDefaults = {
  automatic: false,
  holder: { kind: "organization", admin: false },
  expirationSeconds: 7200,
};

/** What the agent is to ask for. */
export interface TokenExchange {
  readonly organization: string;
  readonly holder: OidcHolder;
  readonly expirationSeconds: number;
  /** Whether the container says itself where the CLI keeps its credentials. */
  readonly hasCredentialsPath: boolean;
}

type Exchanging =
  | { readonly kind: "exchange"; readonly exchange: TokenExchange }
  | { readonly kind: "none" }
  | { readonly kind: "invalid"; readonly problem: string };

const tokenVariable = "PULUMI_ACCESS_TOKEN";
export const credentialsVariable = "PULUMI_CREDENTIALS_PATH";
const none: Exchanging = { kind: "none" };

/** A token of its own wins, and other backends know no tokens. What init containers bring only the agent can see. */
export function exchangeOf(
  workspace: NormalWorkspace,
  defaults: OidcDefaults,
  pod: { readonly spec: PodSpec; readonly readings: Readings },
): Exchanging {
  const container = pod.spec.containers.find(({ name }) => name === pulumiContainer);
  if (!container || hasVariable(container, tokenVariable, pod.readings) || !isCloud(container, pod.readings))
    return none;
  const { oidc, stacks } = workspace;
  if (!oidc && !defaults.automatic) return none;
  const [first, ...others] = organizationsIn(stacks.map(({ name }) => name));
  // A pod signs in to one organization; which of several it is to be is not for us to guess.
  const isAmbiguous = others.length > 0 && oidc?.organization === undefined;
  const wish = { ...defaults, ...(first !== undefined && { organization: first }), ...oidc };
  const { organization, holder, expirationSeconds } = wish;
  if (organization !== undefined && !isAmbiguous) {
    const hasCredentialsPath = hasVariable(container, credentialsVariable, pod.readings);
    return { kind: "exchange", exchange: { organization, holder, expirationSeconds, hasCredentialsPath } };
  }
  return oidc ? { kind: "invalid", problem: isAmbiguous ? severalOrganizations : noOrganization } : none;
}

const noOrganization =
  "spec.oidc.organization: is missing; name the Pulumi organization, here or in the stack's name (ORGANIZATION/PROJECT/STACK)";

const severalOrganizations =
  "spec.oidc.organization: is missing, and the names of the stacks begin with several organizations; " +
  "name the one to sign in to, or make a Workspace for the stacks of each";

/** Named is enough: what it will hold may not be there yet. */
function hasVariable(container: Container, variable: string, readings: Readings): boolean {
  const isNamed = container.env?.some(({ name }) => name === variable) ?? false;
  return isNamed || Boolean(valueOfVariable(container, variable, readings));
}

/** Pulumi Cloud is what there is without a word about it. */
function isCloud(container: Container, readings: Readings): boolean {
  const url = valueOfVariable(container, backendVariable, readings);
  return !url || /^https?:\/\//.test(url);
}

/** In the words of Pulumi Cloud. */
export function scopeOf(holder: OidcHolder): string {
  switch (holder.kind) {
    case "team":
      return `team:${holder.team}`;
    case "user":
      return `user:${holder.user}`;
    case "organization":
      return holder.admin ? "admin" : "";
    default:
      return assertNever(holder);
  }
}
