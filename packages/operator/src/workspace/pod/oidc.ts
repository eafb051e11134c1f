/** Whether a pod exchanges its service account token for an access token of Pulumi Cloud, and for which one. Pure. */
import { organizationsIn, pulumiContainer, type NormalWorkspace, type OidcHolder } from "@pko/api";
import type { Container, PodSpec } from "kubernetes-types/core/v1";

import { backendVariable } from "./file-backend.ts";
import { valueOfVariable, type Readings } from "./references.ts";

/** The defaults for a Workspace that does not set them. */
export interface OidcDefaults {
  /** Whether workspaces without an access token and without `oidc` sign in this way. */
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

/** The token that the agent requests. */
export interface TokenExchange {
  readonly organization: string;
  readonly holder: OidcHolder;
  readonly expirationSeconds: number;
  /** Whether the container itself sets where the CLI stores its credentials. */
  readonly hasCredentialsPath: boolean;
}

type Exchanging =
  | { readonly kind: "exchange"; readonly exchange: TokenExchange }
  | { readonly kind: "none" }
  | { readonly kind: "invalid"; readonly problem: string };

const tokenVariable = "PULUMI_ACCESS_TOKEN";
export const credentialsVariable = "PULUMI_CREDENTIALS_PATH";
const none: Exchanging = { kind: "none" };

/** Its own token takes precedence, and other backends use none. Only the agent can see what init containers provide. */
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
  // A pod signs in to one organization, and which of several cannot be guessed.
  const isAmbiguous = others.length > 0 && oidc?.organization === undefined;
  const settings = { ...defaults, ...(first !== undefined && { organization: first }), ...oidc };
  const { organization, holder, expirationSeconds } = settings;
  if (organization !== undefined && !isAmbiguous) {
    const hasCredentialsPath = hasVariable(container, credentialsVariable, pod.readings);
    return { kind: "exchange", exchange: { organization, holder, expirationSeconds, hasCredentialsPath } };
  }
  return oidc ? { kind: "invalid", problem: isAmbiguous ? severalOrganizations : noOrganization } : none;
}

const noOrganization =
  "spec.oidc.organization: is missing; name the Pulumi organization, here or in the stack's name (ORGANIZATION/PROJECT/STACK)";

const severalOrganizations =
  "spec.oidc.organization: is missing, and the names of the stacks start with several organizations; " +
  "name the one to sign in to, or create a Workspace for the stacks of each";

/** Its name is enough: its value may not exist yet. */
function hasVariable(container: Container, variable: string, readings: Readings): boolean {
  const isNamed = container.env?.some(({ name }) => name === variable) ?? false;
  return isNamed || Boolean(valueOfVariable(container, variable, readings));
}

/** Pulumi Cloud is the default backend. */
function isCloud(container: Container, readings: Readings): boolean {
  const url = valueOfVariable(container, backendVariable, readings);
  return !url || /^https?:\/\//.test(url);
}

/** The scope in the syntax of Pulumi Cloud. */
export function tokenScope(holder: OidcHolder): string {
  switch (holder.kind) {
    case "team":
      return `team:${holder.team}`;
    case "user":
      return `user:${holder.user}`;
    case "organization":
      return holder.admin ? "admin" : "";
  }
}
