/** Access tokens, and whom they stand for. They end when a test says so. */

export interface Identity {
  readonly kind: "personal" | "organization" | "team";
  readonly login: string;
  /** Those whose stacks and environments it may use; the first is the default one. */
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

  /** Undefined for one that was never issued, or is revoked. */
  find(token: string): Identity | undefined {
    return this.#revoked.has(token) ? undefined : this.#issued.get(token);
  }

  revoke(token: string): void {
    this.#revoked.add(token);
  }

  /** All that were ever issued: what must not show up anywhere. */
  all(): string[] {
    return [...this.#issued.keys()];
  }
}
