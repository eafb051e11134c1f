/**
 * Checks whether the admission policy for Approvals is in force: without it, users could approve in the name of others. A dry
 * run creates an Approval with a wrong `decidedBy`, which the policy must deny. Nothing is checked unless a Stack requires
 * approvals, and each namespace at most once a minute.
 */
import {
  ApiError,
  isNamespaceTerminating,
  isTransient,
  missingPermission,
  silentLogger,
  systemClock,
  type Client,
  type Clock,
  type Logger,
} from "@pko/kube";
import { approvalKind, type Approval } from "@pko/api";

import { approvals } from "../kinds.ts";

export type PolicyState =
  /** Not checked yet. */
  | { readonly kind: "unknown" }
  | { readonly kind: "inForce" }
  | { readonly kind: "missing" }
  /** Nothing can be created in the namespace, so nothing can be checked, and nothing can start. */
  | { readonly kind: "namespaceTerminating" }
  /** The check failed. */
  | { readonly kind: "unverified"; readonly why: string };

export interface PolicyProbe {
  /** As last checked. Only reads. */
  state(namespace: string): PolicyState;
  /** Keeps the namespace checked. `wake` is called when the state has changed. */
  follow(user: string, followed: { readonly namespace: string; readonly wake: () => void }): void;
  forget(user: string): void;
  stop(): void;
}

interface PolicyProbeOptions {
  readonly client: Pick<Client, "create">;
  readonly everyMs?: number;
  readonly clock?: Clock;
  readonly log?: Logger;
}

const defaultEveryMs = 60_000;

interface Entry {
  state: PolicyState;
  /** On the monotonic clock. */
  checkedAt: number;
  cancelTimer: (() => void) | undefined;
  readonly followers: Map<string, () => void>;
}

const unknown: PolicyState = { kind: "unknown" };

export function policyProbe(options: PolicyProbeOptions): PolicyProbe {
  return new Probe(options);
}

class Probe implements PolicyProbe {
  readonly #options: PolicyProbeOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  readonly #namespaceOf = new Map<string, string>();
  #lifetime = new AbortController();

  constructor(options: PolicyProbeOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
  }

  state(namespace: string): PolicyState {
    return this.#entries.get(namespace)?.state ?? unknown;
  }

  follow(user: string, { namespace, wake }: { readonly namespace: string; readonly wake: () => void }): void {
    if (this.#namespaceOf.get(user) !== namespace) this.forget(user);
    this.#namespaceOf.set(user, namespace);
    const entry = this.#entryFor(namespace);
    entry.followers.set(user, wake);
    if (!entry.cancelTimer) this.#schedule(namespace, entry);
  }

  forget(user: string): void {
    const entry = this.#entries.get(this.#namespaceOf.get(user) ?? "");
    this.#namespaceOf.delete(user);
    entry?.followers.delete(user);
    if (!entry || entry.followers.size > 0) return;
    // The time of the check is kept, so that the next follower does not repeat it too soon.
    entry.cancelTimer?.();
    entry.cancelTimer = undefined;
  }

  stop(): void {
    this.#lifetime.abort();
    this.#lifetime = new AbortController();
    for (const { cancelTimer } of this.#entries.values()) cancelTimer?.();
    this.#entries.clear();
    this.#namespaceOf.clear();
  }

  #entryFor(namespace: string): Entry {
    const known = this.#entries.get(namespace);
    const entry = known ?? { state: unknown, checkedAt: -Infinity, cancelTimer: undefined, followers: new Map() };
    // Nobody followed it for a while: what was found then may no longer be true.
    if (!entry.cancelTimer && this.#clock.monotonic() - entry.checkedAt >= this.#everyMs) entry.state = unknown;
    this.#entries.set(namespace, entry);
    return entry;
  }

  get #everyMs(): number {
    return this.#options.everyMs ?? defaultEveryMs;
  }

  #schedule(namespace: string, entry: Entry): void {
    const pause = Math.max(0, entry.checkedAt + this.#everyMs - this.#clock.monotonic());
    entry.cancelTimer = this.#clock.after(pause, () => void this.#check(namespace, entry));
  }

  async #check(namespace: string, entry: Entry): Promise<void> {
    const { signal } = this.#lifetime;
    const timer = entry.cancelTimer;
    entry.checkedAt = this.#clock.monotonic();
    const state = await this.#stateNow(namespace, entry.state, signal);
    if (signal.aborted) return;
    const isNews = state.kind !== entry.state.kind;
    entry.state = state;
    // Unless the last follower has left and another one has come meanwhile.
    if (entry.cancelTimer === timer && entry.followers.size > 0) this.#schedule(namespace, entry);
    if (!isNews) return;
    this.#log.info("the admission policy for Approvals was checked", { namespace, state: state.kind });
    for (const wake of entry.followers.values()) wake();
  }

  async #stateNow(namespace: string, before: PolicyState, signal: AbortSignal): Promise<PolicyState> {
    try {
      await this.#options.client.create(approvals, probeObject(namespace), { dryRun: true, signal });
      return { kind: "missing" };
    } catch (error) {
      if (isDenial(error)) return { kind: "inForce" };
      const isTerminating = isNamespaceTerminating(error);
      if (signal.aborted || ((isTransient(error) || isTerminating) && before.kind === "inForce")) return before;
      if (isTerminating) return { kind: "namespaceTerminating" };
      return { kind: "unverified", why: explain(error) };
    }
  }
}

/** Never stored. Valid, except that the operator is not the user who decides. */
function probeObject(namespace: string): Approval {
  const name = "approval-policy-probe";
  const { apiVersion, kind } = approvalKind;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace },
    spec: { updateName: name, updateUid: name, digest: name, decision: "Reject", decidedBy: name },
  };
}

/** By the policy, or by an admission webhook that does the same; not by RBAC. */
function isDenial(error: unknown): boolean {
  if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 422)) return false;
  const { explanation } = error;
  return (
    missingPermission(error) === undefined &&
    /denied (the )?request/.test(explanation) &&
    explanation.includes("decidedBy")
  );
}

function explain(error: unknown): string {
  if (error instanceof ApiError) return error.explanation;
  return error instanceof Error ? error.message : String(error);
}
