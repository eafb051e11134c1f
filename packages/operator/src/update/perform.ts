/** All that is done about an Update: each step can be done again, and a crash after any of them loses nothing. */
import { fieldManagers, type Update, type UpdateStatus } from "@pko/api";
import {
  again,
  builtin,
  done,
  isAlreadyExists,
  isConflict,
  isInvalid,
  isNamespaceTerminating,
  isNotFound,
  type Client,
  type EventRecorder,
  type Known,
  type ReconcileContext,
  type Result,
} from "@pko/kube";
import { assertNever } from "@pko/rpc";
import type { Secret } from "kubernetes-types/core/v1";

import type { Runs } from "../agents/agents.ts";
import { updates } from "../kinds.ts";
import { isComplete } from "./conditions.ts";
import { updateFinalizer } from "./finalizer.ts";
import { isStillReady } from "./observe.ts";
import type { Kept } from "./outcome.ts";
import type { Plan } from "./plan.ts";
import { statusOf } from "./status.ts";
import type { UpdateView } from "./view.ts";

export interface UpdateTools {
  /** Fenced: writes nothing unless this process leads. */
  readonly client: Client;
  readonly runs: Runs;
  readonly events: EventRecorder;
}

type Context = Pick<ReconcileContext, "signal" | "log">;

export interface Step {
  readonly plan: Plan;
  readonly view: UpdateView;
}

/** What was read is out of date: the watch is about to bring the rest. */
const staleMs = 250;

export async function performUpdate(step: Step, tools: UpdateTools, context: Context): Promise<Result> {
  try {
    return await new Performance(step.view, tools, context).perform(step.plan);
  } catch (error) {
    if (isConflict(error)) return again(staleMs);
    // Gone meanwhile: so is all that was to be said of it.
    if (isNotFound(error)) return done;
    throw error;
  }
}

class Performance {
  readonly #view: UpdateView;
  readonly #update: Update;
  readonly #tools: UpdateTools;
  readonly #context: Context;

  constructor(view: UpdateView, tools: UpdateTools, context: Context) {
    this.#view = view;
    this.#update = view.update;
    this.#tools = tools;
    this.#context = context;
  }

  async perform(plan: Plan): Promise<Result> {
    const { runs } = this.#tools;
    if (isComplete(this.#update)) runs.forget(this.#uid);
    switch (plan.action) {
      case "rest":
        return plan.afterMs === undefined ? done : again(plan.afterMs);
      case "report":
        await this.#report(plan.status);
        return plan.afterMs === undefined ? done : again(plan.afterMs);
      case "intend":
        return await this.#intend(plan.status);
      case "guard":
        await this.#setFinalizers([...this.#finalizers, updateFinalizer]);
        return done;
      case "follow":
        runs.ensure(plan.pod, plan.request);
        return done;
      case "cancel":
        runs.cancel(plan.pod, plan.runId);
        await this.#report(plan.status);
        return again(plan.afterMs);
      case "end":
        return await this.#end(plan);
      case "release":
        await this.#setFinalizers(this.#finalizers.filter((name) => name !== updateFinalizer));
        return done;
      case "expire":
        return await this.#expire(plan);
      default:
        return assertNever(plan);
    }
  }

  get #uid(): string {
    return this.#update.metadata.uid ?? "";
  }

  get #finalizers(): readonly string[] {
    return this.#update.metadata.finalizers ?? [];
  }

  get #ref(): { readonly namespace: string; readonly name: string } {
    const { namespace = "", name = "" } = this.#update.metadata;
    return { namespace, name };
  }

  async #intend(status: UpdateStatus): Promise<Result> {
    const { signal } = this.#context;
    if (!(await isStillReady(this.#tools.client, this.#view, signal))) return again(staleMs);
    await this.#report(status);
    return done;
  }

  /** Names the version it was decided on: which pod an Update may run in is never decided on old news. */
  async #report(status: UpdateStatus): Promise<void> {
    const { uid, resourceVersion } = this.#update.metadata;
    const { apiVersion, kind } = updates;
    const metadata = { ...this.#ref, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
    await this.#tools.client.apply(
      updates,
      { apiVersion, kind, metadata, status },
      { fieldManager: fieldManagers.updateStatus, subresource: "status", signal: this.#context.signal },
    );
  }

  async #setFinalizers(finalizers: readonly string[]): Promise<void> {
    const { uid, resourceVersion } = this.#update.metadata;
    const patch = { type: "merge", body: { metadata: { uid, resourceVersion, finalizers } } } as const;
    await this.#tools.client.patch(updates, this.#ref, {
      patch,
      fieldManager: fieldManagers.operator,
      signal: this.#context.signal,
    });
  }

  /** The Secrets, then status, then the news of it: whoever sees it complete finds all of it. */
  async #end({ ending, keep, event }: Extract<Plan, { action: "end" }>): Promise<Result> {
    const { runs, events } = this.#tools;
    // No request of ours may reach a pod that is not the recorded one.
    if (!ending.result) runs.forget(this.#uid);
    const notes = [...keep.notes];
    const kept: Kept = {
      ...(keep.outputs && (await this.#keep(keep.outputs, notes, "outputs"))),
      ...(keep.stdout && (await this.#keep(keep.stdout, notes, "stdout"))),
      notes,
    };
    await this.#report(statusOf(this.#view, { kind: "ended", ending, kept }));
    runs.forget(this.#uid);
    events.record(this.#update, event);
    this.#context.log.info("update ended", { reason: ending.reason, operation: this.#update.spec?.type });
    return done;
  }

  /** The name under which it is kept; none when it cannot be. */
  async #keep<K extends "outputs" | "stdout">(
    secret: Known<Secret>,
    notes: string[],
    what: K,
  ): Promise<Partial<Record<K, string>>> {
    const problem = await this.#createSecret(secret);
    if (problem === undefined) return { [what]: secret.metadata.name ?? "" } as Partial<Record<K, string>>;
    notes.push(`The Secret ${secret.metadata.name} could not be made: ${problem}`);
    return {};
  }

  async #createSecret(secret: Known<Secret>): Promise<string | undefined> {
    const { client } = this.#tools;
    const { signal } = this.#context;
    try {
      await client.create(builtin.secrets, secret, { fieldManager: fieldManagers.operator, signal });
      return undefined;
    } catch (error) {
      if (isAlreadyExists(error)) return await this.#settleExisting(secret);
      if (isInvalid(error) || isNamespaceTerminating(error)) return error.explanation;
      throw error;
    }
  }

  /** Made before a crash; or left by an Update of the same name that is gone; or a user's, which is not touched. */
  async #settleExisting(secret: Known<Secret>): Promise<string | undefined> {
    const { client } = this.#tools;
    const { signal } = this.#context;
    const { name = "", namespace = "" } = secret.metadata;
    const existing = await client.find(builtin.secrets, { name, namespace }, { signal });
    const owner = existing?.metadata.ownerReferences?.find(({ kind }) => kind === updates.kind);
    if (existing && owner?.uid === this.#uid) return undefined;
    if (existing && !owner) return "there is another Secret of that name";
    if (existing?.metadata.uid) {
      await client.delete(builtin.secrets, { name, namespace }, { uid: existing.metadata.uid, signal });
    }
    await client.create(builtin.secrets, secret, { fieldManager: fieldManagers.operator, signal });
    return undefined;
  }

  async #expire({ event }: Extract<Plan, { action: "expire" }>): Promise<Result> {
    const { client, events } = this.#tools;
    await client.delete(updates, this.#ref, {
      uid: this.#uid,
      propagationPolicy: "Background",
      signal: this.#context.signal,
    });
    events.record(this.#update, event);
    return done;
  }
}
