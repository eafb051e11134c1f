/** Access tokens, whom they stand for, and how long. */

export interface Identity {
  readonly kind: "personal" | "organization" | "team";
  readonly login: string;
  /** Those whose stacks and environments it may use; the first is the default one. */
  readonly organizations: readonly string[];
  readonly team?: string;
}

interface Issued {
  readonly identity: Identity;
  /** When it ends, in milliseconds. */
  readonly endsAt: number;
}

export class AccessTokens {
  readonly #issued = new Map<string, Issued>();

  issue(identity: Identity, lifetimeMs = Infinity): string {
    const token = `pul-${crypto.randomUUID().replaceAll("-", "")}`;
    this.#issued.set(token, { identity, endsAt: Date.now() + lifetimeMs });
    return token;
  }

  /** Undefined for one that was never issued, is revoked or has ended. */
  find(token: string): Identity | undefined {
    const issued = this.#issued.get(token);
    return issued && issued.endsAt > Date.now() ? issued.identity : undefined;
  }

  revoke(token: string): void {
    this.#issued.delete(token);
  }

  /** All that were ever issued and not revoked: what must not show up anywhere. */
  all(): string[] {
    return [...this.#issued.keys()];
  }
}
