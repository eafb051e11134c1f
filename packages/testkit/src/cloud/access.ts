/** Access tokens and their identities. A token is valid until a test revokes it. */

export interface Identity {
  readonly kind: "personal" | "organization" | "team";
  readonly login: string;
  /** Organizations whose stacks and environments it may use; the first is the default. */
  readonly organizations: readonly string[];
  readonly team?: string;
}

export class AccessTokens {
  readonly #issued = new Map<string, Identity>();
  readonly #revoked = new Set<string>();

  issue(identity: Identity): string {
    const token = `pul-${crypto.randomUUID().replaceAll("-", "")}`;
    this.#issued.set(token, identity);
    return token;
  }

  /** Undefined for a token that was never issued or is revoked. */
  find(token: string): Identity | undefined {
    return this.#revoked.has(token) ? undefined : this.#issued.get(token);
  }

  revoke(token: string): void {
    this.#revoked.add(token);
  }

  /** All tokens ever issued, which must not appear in any output. */
  all(): string[] {
    return [...this.#issued.keys()];
  }
}
