/**
 * Checks whether the admission policies that make approvals trustworthy are in force: each must deny a dry run. Without the first,
 * users could approve in the name of others, so an Approval with a wrong `decidedBy` is created. Without the second, everyone
 * who may edit a Stack could remove `approval` from it, so that is tried, too. Nothing is checked unless a Stack requires
 * approvals, and each namespace at most once a minute.
 */
import {
  ApiError,
  isNamespaceTerminating,
  isInvalid,
  isNotFound,
  isTransient,
  missingPermission,
  silentLogger,
  systemClock,
  type Client,
  type Clock,
  type Logger,
  type Patch,
} from "@pko/kube";
import { approvalKind, policyProbeAnnotation, type Approval } from "@pko/api";

import { approvals, stacks } from "../kinds.ts";

/** `approvals`: an Approval names the user who creates it. `safeguards`: only users who may approve weaken `approval`. */
export type ProbedPolicy = "approvals" | "safeguards";

export type PolicyState =
  /** Not checked yet. */
  | { readonly kind: "unknown" }
  | { readonly kind: "inForce" }
  | { readonly kind: "missing"; readonly policy: ProbedPolicy }
  /** Nothing can be created in the namespace, so nothing can be checked, and nothing can start. */
  | { readonly kind: "namespaceTerminating" }
  /** The check failed. */
  | { readonly kind: "unverified"; readonly why: string };

export interface PolicyProbe {
  /** As last checked. Only reads. */
  state(namespace: string): PolicyState;
  /** Keeps the namespace checked. */
  follow(user: string, followed: FollowedStack): void;
  forget(user: string): void;
  stop(): void;
}

/** A Stack that requires approvals. */
export interface FollowedStack {
  readonly namespace: string;
  readonly name: string;
  /** As in its spec; absent if only the WorkspaceClass requires approvals, which no user of the namespace can change. */
  readonly required?: string;
  /** Called when the state has changed. */
  readonly wake: () => void;
}

interface PolicyProbeOptions {
  readonly client: Pick<Client, "create" | "patch">;
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
  readonly followers: Map<string, FollowedStack>;
  /** Whether a Stack has required approvals itself when the policies were checked. */
  hasCheckedSafeguards: boolean;
}

const unknown: PolicyState = { kind: "unknown" };

const lacksSafeguards = ({ hasCheckedSafeguards, followers }: Entry): boolean =>
  !hasCheckedSafeguards && followers.values().some(({ required }) => required !== undefined);

const newEntry = (): Entry => ({
  state: unknown,
  checkedAt: -Infinity,
  cancelTimer: undefined,
  followers: new Map(),
  hasCheckedSafeguards: false,
});

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

  follow(user: string, followed: FollowedStack): void {
    const { namespace } = followed;
    if (this.#namespaceOf.get(user) !== namespace) this.forget(user);
    this.#namespaceOf.set(user, namespace);
    const entry = this.#entryFor(namespace);
    entry.followers.set(user, followed);
    if (lacksSafeguards(entry)) this.#checkNow(entry);
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
    const entry = known ?? newEntry();
    // Nobody followed it for a while: what was found then may no longer be true.
    if (!entry.cancelTimer && this.#clock.monotonic() - entry.checkedAt >= this.#everyMs) entry.state = unknown;
    this.#entries.set(namespace, entry);
    return entry;
  }

  /** What was found so far is not enough. */
  #checkNow(entry: Entry): void {
    if (entry.state.kind !== "inForce") return;
    entry.state = unknown;
    entry.checkedAt = -Infinity;
    entry.cancelTimer?.();
    entry.cancelTimer = undefined;
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
    let state = await this.#stateNow(namespace, entry, signal);
    // A Stack that requires approvals itself came in the meantime.
    if (lacksSafeguards(entry)) state = await this.#stateNow(namespace, entry, signal);
    if (signal.aborted) return;
    const hasChanged = state.kind !== entry.state.kind || policyIn(state) !== policyIn(entry.state);
    entry.state = state;
    // Unless the last follower has left and another one has come in the meantime.
    if (entry.cancelTimer === timer && entry.followers.size > 0) this.#schedule(namespace, entry);
    if (!hasChanged) return;
    this.#log.info("the admission policies for approvals were checked", { namespace, state: state.kind });
    for (const { wake } of entry.followers.values()) wake();
  }

  async #stateNow(namespace: string, entry: Entry, signal: AbortSignal): Promise<PolicyState> {
    const { state: before, followers } = entry;
    try {
      if (!(await this.#isApprovalDenied(namespace, signal))) return { kind: "missing", policy: "approvals" };
      const followed = [...followers.values()].filter(({ required }) => required !== undefined);
      entry.hasCheckedSafeguards = followed.length > 0;
      if (followed.length === 0) return { kind: "inForce" };
      const isDenied = await this.#isWeakeningDenied(namespace, followed, signal);
      if (isDenied === undefined) return unknown;
      return isDenied ? { kind: "inForce" } : { kind: "missing", policy: "safeguards" };
    } catch (error) {
      const isTerminating = isNamespaceTerminating(error);
      if (signal.aborted || ((isTransient(error) || isTerminating) && before.kind === "inForce")) return before;
      if (isTerminating) return { kind: "namespaceTerminating" };
      return { kind: "unverified", why: explain(error) };
    }
  }

  async #isApprovalDenied(namespace: string, signal: AbortSignal): Promise<boolean> {
    const { client } = this.#options;
    const dryRun = client.create(approvals, probeObject(namespace), { dryRun: true, expectDenial: true, signal });
    return await isDenied(dryRun, "decidedBy");
  }

  /**
   * The first Stack that can answer does so for all. One that was deleted or changed in the meantime, or is invalid, cannot. Undefined
   * if all of them were deleted.
   */
  async #isWeakeningDenied(
    namespace: string,
    followed: readonly FollowedStack[],
    signal: AbortSignal,
  ): Promise<boolean | undefined> {
    let reason: unknown;
    for (const { name, required = "" } of followed) {
      try {
        const change = { patch: weakening(required), dryRun: true, expectDenial: true, signal };
        return await isDenied(this.#options.client.patch(stacks, { namespace, name }, change), "approval.required");
      } catch (error) {
        if (!isNotFound(error) && !isInvalid(error)) throw error;
        reason = error;
      }
    }
    if (reason !== undefined && !isNotFound(reason)) throw reason;
    return undefined;
  }
}

/** Removes `approval`, only while it is as observed. */
function weakening(required: string): Patch {
  return {
    type: "json",
    body: [
      { op: "test", path: "/spec/approval/required", value: required },
      { op: "remove", path: "/spec/approval" },
      { op: "add", path: "/metadata/annotations", value: { [policyProbeAnnotation]: "true" } },
    ],
  };
}

const policyIn = (state: PolicyState): ProbedPolicy | undefined => ("policy" in state ? state.policy : undefined);

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

/** Whether the policy denies it, or an admission webhook that does the same. RBAC and other rules say nothing about it. */
async function isDenied(dryRun: Promise<unknown>, field: string): Promise<boolean> {
  try {
    await dryRun;
    return false;
  } catch (error) {
    if (isDenial(error, field)) return true;
    throw error;
  }
}

function isDenial(error: unknown, field: string): boolean {
  if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 422)) return false;
  const { explanation } = error;
  return (
    missingPermission(error) === undefined && /denied (the )?request/.test(explanation) && explanation.includes(field)
  );
}

function explain(error: unknown): string {
  if (error instanceof ApiError) return error.explanation;
  return error instanceof Error ? error.message : String(error);
}
