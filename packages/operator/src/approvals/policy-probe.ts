/**
 * Checks whether the admission policies that make approvals trustworthy are in force: each must deny a dry run. Without the first,
 * users could approve in the name of others, so an Approval with a wrong `decidedBy` is created. Without the second, everyone
 * who may edit a Stack could remove `approval` from it, so that is tried, too. Nothing is checked unless a Stack requires
 * approvals.
 *
 * A namespace in which something may start is checked immediately, and then once a minute. Of all others together, one is checked
 * at a time: every few minutes, or once a minute while a policy is missing. The requests are few, however many namespaces there are.
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
import { jittered } from "../shared/pauses.ts";

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
  /** As last checked; unknown if the policies were in force too long ago for anything to start. Only reads. */
  state(namespace: string): PolicyState;
  /** Keeps the namespace checked. */
  follow(user: string, followed: FollowedStack): void;
  /** Something may start in the namespace: keeps it up to date for a while. `wake` is called after a check that is necessary now. */
  need(namespace: string, wake?: () => void): void;
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

/** How often a namespace is checked in which nothing may start, while all policies are in force. */
const sampleEveryMs = 6 * 60_000;

/** Longer than an Update waits before it needs the policies again. */
const neededMs = 15 * 60_000;

/** Times are on the monotonic clock. */
interface Entry {
  state: PolicyState;
  /** When the last check began. */
  checkedAt: number;
  /** When the check began that has found `state`. */
  foundAt: number;
  neededUntil: number;
  /** A pass waits for a check: it cannot rely on what was found before. */
  isAwaited: boolean;
  /** Called once, after that check. */
  readonly waiting: (() => void)[];
  /** Of the next check, if this namespace has checks of its own. */
  cancelTimer: (() => void) | undefined;
  readonly followers: Map<string, FollowedStack>;
  /** Whether a Stack has required approvals itself when the policies were checked. */
  hasCheckedSafeguards: boolean;
}

interface Finding {
  /** Undefined if there was no answer. */
  readonly state?: PolicyState;
  readonly startedAt: number;
}

const unknown: PolicyState = { kind: "unknown" };

const lacksSafeguards = ({ hasCheckedSafeguards, followers }: Entry): boolean =>
  !hasCheckedSafeguards && followers.values().some(({ required }) => required !== undefined);

const newEntry = (): Entry => ({
  state: unknown,
  checkedAt: -Infinity,
  foundAt: -Infinity,
  neededUntil: -Infinity,
  isAwaited: false,
  waiting: [],
  cancelTimer: undefined,
  followers: new Map(),
  hasCheckedSafeguards: false,
});

const isSettled = ({ state }: Entry): boolean => state.kind === "inForce" || state.kind === "namespaceTerminating";

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
  #cancelRound: (() => void) | undefined;
  #sampledAt = -Infinity;

  constructor(options: PolicyProbeOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
  }

  state(namespace: string): PolicyState {
    const entry = this.#entries.get(namespace);
    return !entry || (entry.state.kind === "inForce" && !this.#isCurrent(entry)) ? unknown : entry.state;
  }

  follow(user: string, followed: FollowedStack): void {
    const { namespace } = followed;
    if (this.#namespaceOf.get(user) !== namespace) this.forget(user);
    this.#namespaceOf.set(user, namespace);
    const entry = this.#entries.get(namespace) ?? newEntry();
    this.#entries.set(namespace, entry);
    // Nobody followed it for a while: what was found then may no longer be true.
    const isOutdated = entry.followers.size === 0 && !this.#isCurrent(entry);
    if (isOutdated) entry.state = unknown;
    entry.followers.set(user, followed);
    const isEnough = entry.state.kind !== "inForce" || !lacksSafeguards(entry);
    if (isOutdated || !isEnough) this.#checkNow(namespace, entry);
    if (this.#cancelRound) return;
    this.#sampledAt = this.#clock.monotonic();
    this.#scheduleRound();
  }

  need(namespace: string, wake?: () => void): void {
    const entry = this.#entries.get(namespace);
    // Its Stacks follow it soon.
    if (!entry || entry.followers.size === 0) return;
    const isCurrent = this.#isCurrent(entry);
    entry.neededUntil = this.#clock.monotonic() + neededMs;
    if (!isCurrent) this.#checkNow(namespace, entry);
    else if (!entry.cancelTimer) this.#schedule(namespace, entry);
    if (wake && entry.isAwaited) entry.waiting.push(wake);
  }

  forget(user: string): void {
    const entry = this.#entries.get(this.#namespaceOf.get(user) ?? "");
    this.#namespaceOf.delete(user);
    if (this.#namespaceOf.size === 0) this.#stopRounds();
    entry?.followers.delete(user);
    if (!entry || entry.followers.size > 0) return;
    // The time of the check is kept, so that the next follower does not repeat it too soon. Nothing is repeated until then.
    entry.cancelTimer?.();
    Object.assign(entry, { cancelTimer: undefined, isAwaited: false, neededUntil: -Infinity });
  }

  stop(): void {
    this.#lifetime.abort();
    this.#lifetime = new AbortController();
    this.#stopRounds();
    for (const { cancelTimer } of this.#entries.values()) cancelTimer?.();
    this.#entries.clear();
    this.#namespaceOf.clear();
  }

  get #everyMs(): number {
    return this.#options.everyMs ?? defaultEveryMs;
  }

  #isNeeded({ neededUntil }: Entry): boolean {
    return this.#clock.monotonic() < neededUntil;
  }

  /** While a namespace is needed, its checks are repeated, and one without an answer does not count. */
  #isCurrent(entry: Entry): boolean {
    const isRecent = this.#clock.monotonic() - entry.foundAt < this.#everyMs;
    return !entry.isAwaited && (isRecent || this.#isNeeded(entry));
  }

  /** What was found so far is not enough. */
  #checkNow(namespace: string, entry: Entry): void {
    if (entry.isAwaited) return;
    entry.isAwaited = true;
    entry.cancelTimer?.();
    this.#schedule(namespace, entry, 0);
  }

  #schedule(namespace: string, entry: Entry, pause = jittered(this.#everyMs, namespace)): void {
    entry.cancelTimer = this.#clock.after(pause, () => {
      entry.cancelTimer = undefined;
      void this.#checkNeeded(namespace, entry);
    });
  }

  async #checkNeeded(namespace: string, entry: Entry): Promise<void> {
    const { signal } = this.#lifetime;
    await this.#check(namespace, entry);
    if (signal.aborted || entry.cancelTimer || entry.followers.size === 0) return;
    if (this.#isNeeded(entry)) this.#schedule(namespace, entry);
  }

  #scheduleRound(): void {
    this.#cancelRound = this.#clock.after(this.#everyMs, () => void this.#round());
  }

  #stopRounds(): void {
    this.#cancelRound?.();
    this.#cancelRound = undefined;
  }

  async #round(): Promise<void> {
    const cancelRound = this.#cancelRound;
    for (const [namespace, entry] of this.#dueInRound()) {
      // The policies are objects of the cluster: what has changed in one namespace has probably changed in others.
      if (!(await this.#check(namespace, entry))) break;
    }
    if (this.#cancelRound === cancelRound) this.#scheduleRound();
  }

  /** Those without checks of their own: one to check, and then the others, in case that it has changed. */
  #dueInRound(): readonly (readonly [string, Entry])[] {
    const others = [...this.#entries]
      .filter(([, { followers, cancelTimer }]) => followers.size > 0 && !cancelTimer)
      .toSorted(([, a], [, b]) => a.checkedAt - b.checkedAt);
    const first = others.find(([, entry]) => !isSettled(entry)) ?? this.#sampleOf(others);
    return first ? [first, ...others.filter((each) => each !== first)] : [];
  }

  #sampleOf<T>(oldestFirst: readonly T[]): T | undefined {
    const now = this.#clock.monotonic();
    if (now - this.#sampledAt < sampleEveryMs) return undefined;
    this.#sampledAt = now;
    return oldestFirst[0];
  }

  /** Whether something has changed. */
  async #check(namespace: string, entry: Entry): Promise<boolean> {
    const { signal } = this.#lifetime;
    const startedAt = this.#clock.monotonic();
    entry.checkedAt = startedAt;
    let state = await this.#stateNow(namespace, entry, signal);
    // A Stack that requires approvals itself came in the meantime.
    if (state?.kind === "inForce" && lacksSafeguards(entry)) state = await this.#stateNow(namespace, entry, signal);
    if (signal.aborted) return false;
    return this.#found(namespace, entry, { startedAt, ...(state && { state }) });
  }

  #found(namespace: string, entry: Entry, { state, startedAt }: Finding): boolean {
    // A check of a round and one of the namespace may overtake each other.
    if (startedAt < entry.foundAt) return false;
    const { state: before, isAwaited } = entry;
    const hasChanged = state !== undefined && (state.kind !== before.kind || policyIn(state) !== policyIn(before));
    if (state) Object.assign(entry, { state, foundAt: startedAt, isAwaited: false });
    if (hasChanged) {
      this.#log.info("the admission policies for approvals were checked", { namespace, state: state.kind });
    }
    if (hasChanged || isAwaited) wakeAll(entry);
    return hasChanged;
  }

  /** Undefined if there is no answer, and what was found before still counts. */
  async #stateNow(namespace: string, entry: Entry, signal: AbortSignal): Promise<PolicyState | undefined> {
    try {
      if (!(await this.#isApprovalDenied(namespace, signal))) return { kind: "missing", policy: "approvals" };
      const followed = [...entry.followers.values()].filter(({ required }) => required !== undefined);
      entry.hasCheckedSafeguards = followed.length > 0;
      if (followed.length === 0) return { kind: "inForce" };
      const isDenied = await this.#isWeakeningDenied(namespace, followed, signal);
      if (isDenied === undefined) return unknown;
      return isDenied ? { kind: "inForce" } : { kind: "missing", policy: "safeguards" };
    } catch (error) {
      if (signal.aborted) return undefined;
      const isTerminating = isNamespaceTerminating(error);
      const isKept = entry.state.kind === "inForce" && !entry.isAwaited;
      if ((isTransient(error) || isTerminating) && isKept) return undefined;
      return isTerminating ? { kind: "namespaceTerminating" } : { kind: "unverified", why: explain(error) };
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

function wakeAll(entry: Entry): void {
  for (const wake of entry.waiting.splice(0)) wake();
  for (const { wake } of entry.followers.values()) wake();
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
