/**
 * The plan of a run: one that it makes and keeps, or one that it applies.
 *
 *   makes:   read what the plan depends on → the CLI's preview → seal both
 *   applies: unseal → compare what it depends on → the CLI checks the plan, then applies it
 *            for a destroy: the CLI's preview → compare its steps → destroy
 */
import { readFile } from "node:fs/promises";
import { type Progress } from "@pko/records";
import { errorMessage, maxPlanChars, type Operation, type PlanSummary, type RunError } from "@pko/rpc";
import { cleanFailure } from "../outcome.ts";
import { changedBindings, isStale, readBindings, type BindingContext } from "../plans/bindings.ts";
import { destroyChanges, differingUrns, readDestroySteps } from "../plans/destroy-steps.ts";
import {
  planChanged,
  planDamaged,
  planMismatch,
  planStale,
  planStopped,
  planTooLarge,
  planUndecryptable,
  planUnsaved,
} from "../plans/messages.ts";
import { plannedChanges, unknownInputs, withoutOutputs } from "../plans/plan-file.ts";
import { isUndecryptable } from "../plans/refusal.ts";
import { newKey, planDigest, seal, unseal, type Plan, type PlanContent } from "../plans/sealed-plan.ts";
import { summarize } from "../plans/summary.ts";
import type { Followed } from "./follow.ts";
import type { RunFolder } from "./run-folder.ts";

type Kept = { readonly ok: true; readonly summary: PlanSummary } | { readonly ok: false; readonly error: RunError };

/** The digest of the plan that an operation applies. */
export function appliedDigest(operation: Operation): string | undefined {
  return operation.kind === "up" || operation.kind === "destroy" ? operation.applyPlan?.digest : undefined;
}

function makesPlan(operation: Operation): boolean {
  if (operation.kind === "preview") return operation.savePlan === true;
  return operation.kind === "destroy" && operation.previewOnly === true && operation.savePlan === true;
}

export class RunPlan {
  readonly #folder: RunFolder;
  readonly #context: BindingContext;
  readonly #makes: boolean;
  readonly #applies: string | undefined;

  constructor(folder: RunFolder, context: Omit<BindingContext, "stateFile">) {
    this.#folder = folder;
    this.#context = { ...context, stateFile: folder.stateFile };
    this.#makes = makesPlan(context.operation);
    this.#applies = appliedDigest(context.operation);
  }

  get isUsed(): boolean {
    return this.#makes || this.#applies !== undefined;
  }

  /** Before the first command. Returns why the run must not start. */
  async begin(): Promise<RunError | undefined> {
    if (this.#makes) return await this.#readBasis();
    return this.#applies === undefined ? undefined : await this.#checkApplied(this.#applies);
  }

  async #readBasis(): Promise<RunError | undefined> {
    const key = newKey();
    const read = await readBindings(key, this.#context);
    switch (read.kind) {
      case "undecryptable":
        return planUnsaved("the stack's key does not decrypt its configuration");
      case "failed":
        return planUnsaved(cleanFailure(read.failure, this.#context.cli.redactor).message);
      case "read":
        await this.#folder.writePlanBasis({ key, bindings: read.bindings });
        await this.#folder.writePlanFile("");
        return undefined;
    }
  }

  async #checkApplied(digest: string): Promise<RunError | undefined> {
    const content = await this.#unseal();
    if (!content || planDigest(content) !== digest) return planDamaged(digest);
    const read = await readBindings(content.key, this.#context);
    if (read.kind === "undecryptable") return planUndecryptable(digest);
    if (read.kind === "failed") {
      const { message, lines } = cleanFailure(read.failure, this.#context.cli.redactor);
      return { class: "other", message, lines };
    }
    const { bindings } = read;
    const changed = changedBindings(content.bindings, bindings);
    if (changed.includes("stackKey")) return planUndecryptable(digest);
    if (changed.length > 0) return planChanged(digest, planDigest({ ...content, bindings }), changed);
    if (isStale(content.bindings, bindings)) return planStale(digest, content.bindings, bindings);
    if (content.plan.kind === "up") await this.#folder.writePlanFile(JSON.stringify(content.plan.file));
    return undefined;
  }

  async #unseal(): Promise<PlanContent | undefined> {
    const sealed = await this.#folder.readAppliedPlan();
    return sealed && unseal(sealed);
  }

  /** After the preview of a destroy: whether it would delete what the plan deletes. */
  async checkDestroy(launch: number): Promise<RunError | undefined> {
    const digest = this.#applies ?? "";
    const content = await this.#unseal();
    if (content?.plan.kind !== "destroy") return planDamaged(digest);
    const urns = differingUrns(content.plan.steps, await readDestroySteps(this.#folder.engineLog(launch)));
    return urns.length === 0 ? undefined : planMismatch(digest, urns);
  }

  /** Why a command that applies the plan failed; undefined if the plan is not the reason. */
  explain({ refusedUrns, hasOnlyChecked }: Followed, printed: string, progress: Progress): RunError | undefined {
    const digest = this.#applies;
    if (digest === undefined) return undefined;
    if (refusedUrns.length > 0) {
      return hasOnlyChecked ? planMismatch(digest, refusedUrns) : planStopped(digest, refusedUrns, changesOf(progress));
    }
    return hasOnlyChecked && isUndecryptable(printed) ? planUndecryptable(digest) : undefined;
  }

  /** After the last command succeeded: seals the plan. Undefined if the run makes none. */
  async keep(launch: number): Promise<Kept | undefined> {
    if (!this.#makes) return undefined;
    try {
      return await this.#seal(launch);
    } catch (error) {
      const message = this.#context.cli.redactor.clean(errorMessage(error));
      return { ok: false, error: planUnsaved(message) };
    }
  }

  async #seal(launch: number): Promise<Kept> {
    const basis = await this.#folder.readPlanBasis();
    if (!basis) throw new Error("what it depends on is unknown");
    const { plan, ...described } = await this.#readPlan(launch);
    const sealed = seal({ version: 1, ...basis, plan });
    if (!sealed) return { ok: false, error: planTooLarge(maxPlanChars) };
    await this.#folder.writePlan(sealed);
    const { redactor } = this.#context.cli;
    const summary = summarize({ digest: sealed.digest, ...described }, (text) => redactor.clean(text));
    return { ok: true, summary };
  }

  async #readPlan(launch: number): Promise<PlanParts> {
    if (this.#context.operation.kind === "destroy") {
      const steps = await readDestroySteps(this.#folder.engineLog(launch));
      return { plan: { kind: "destroy", steps }, changes: destroyChanges(steps), unknownInputs: 0 };
    }
    const file: unknown = JSON.parse(await readFile(this.#folder.planFile, "utf8"));
    return {
      plan: { kind: "up", file: withoutOutputs(file) },
      changes: plannedChanges(file),
      unknownInputs: unknownInputs(file),
    };
  }
}

interface PlanParts {
  readonly plan: Plan;
  readonly changes: ReturnType<typeof plannedChanges>;
  readonly unknownInputs: number;
}

function changesOf({ created, updated, deleted, replaced }: Progress): number {
  return created + updated + deleted + replaced;
}
