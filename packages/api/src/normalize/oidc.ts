/** How a workspace logs in to Pulumi Cloud without a stored token. */
import { oidcMessages, type Oidc } from "../shared/oidc.ts";
import type { Findings } from "./findings.ts";

export interface NormalOidc {
  /** Undefined for the operator's default. */
  readonly organization?: string;
  readonly holder: OidcHolder;
  /** Undefined for the operator's default. */
  readonly expirationSeconds?: number;
}

/** The owner of the requested token. */
export type OidcHolder =
  | { readonly kind: "organization"; readonly admin: boolean }
  | { readonly kind: "team"; readonly team: string }
  | { readonly kind: "user"; readonly user: string };

/** If no organization is set, it is the one that all names in `stacks` share. */
export function normalOidc(
  given: Oidc | undefined,
  stacks: readonly string[],
  findings: Findings,
): NormalOidc | undefined {
  if (!given) return undefined;
  const { organization, team, user, admin, expirationSeconds } = given;
  for (const [name, value] of Object.entries({ organization, team, user })) {
    if (value && !isName(value)) {
      findings.problem(`spec.oidc.${name}`, {
        message: `is not a valid name of a Pulumi ${name}`,
        remedy: "correct the name",
      });
    }
  }
  if (team && user) findings.problem("spec.oidc", oidcMessages.teamAndUser);
  if (admin && (team || user)) findings.problem("spec.oidc", oidcMessages.adminOfOthers);
  const [first, ...others] = organizationsIn(stacks);
  const known = organization || (others.length === 0 ? first : undefined);
  return {
    ...(known && { organization: known }),
    holder: tokenHolder(given),
    ...(expirationSeconds !== undefined && { expirationSeconds }),
  };
}

function tokenHolder({ team, user, admin = false }: Oidc): OidcHolder {
  if (team) return { kind: "team", team };
  return user ? { kind: "user", user } : { kind: "organization", admin };
}

/** The distinct organizations in the names of Pulumi stacks. */
export function organizationsIn(stacks: readonly string[]): string[] {
  return [...new Set(stacks.flatMap((stack) => organizationIn(stack) ?? []))];
}

/** ORGANIZATION/STACK or ORGANIZATION/PROJECT/STACK. */
function organizationIn(stack: string): string | undefined {
  const [first = "", ...others] = stack.split("/");
  return others.length > 0 && isName(first) ? first : undefined;
}

/** Safe in a URN and in a scope. */
const isName = (text: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/.test(text);
