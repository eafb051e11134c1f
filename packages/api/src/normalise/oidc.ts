/** How a workspace signs in to Pulumi Cloud without a stored token. */
import { oidcWording, type Oidc } from "../shared/oidc.ts";
import type { Findings } from "./findings.ts";

export interface NormalOidc {
  /** The operator decides when undefined. */
  readonly organization?: string;
  readonly holder: OidcHolder;
  /** The operator decides when undefined. */
  readonly expirationSeconds?: number;
}

/** Whose token it is. */
export type OidcHolder =
  | { readonly kind: "organization"; readonly admin: boolean }
  | { readonly kind: "team"; readonly team: string }
  | { readonly kind: "user"; readonly user: string };

/** The names of the Pulumi stacks may name the organization. */
export function oidcOf(given: Oidc | undefined, stacks: readonly string[], findings: Findings): NormalOidc | undefined {
  if (!given) return undefined;
  const { organization, team, user, admin, expirationSeconds } = given;
  for (const [name, value] of Object.entries({ organization, team, user })) {
    if (value && !isName(value)) {
      findings.problem(`spec.oidc.${name}`, { message: `is not the name of a Pulumi ${name}`, remedy: "correct it" });
    }
  }
  if (team && user) findings.problem("spec.oidc", oidcWording.teamAndUser);
  if (admin && (team || user)) findings.problem("spec.oidc", oidcWording.adminOfOthers);
  const [first, ...others] = organizationsIn(stacks);
  const known = organization || (others.length === 0 ? first : undefined);
  return {
    ...(known && { organization: known }),
    holder: holderOf(given),
    ...(expirationSeconds !== undefined && { expirationSeconds }),
  };
}

function holderOf({ team, user, admin = false }: Oidc): OidcHolder {
  if (team) return { kind: "team", team };
  return user ? { kind: "user", user } : { kind: "organization", admin };
}

/** The organizations, each once, that the names of Pulumi stacks begin with. */
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
