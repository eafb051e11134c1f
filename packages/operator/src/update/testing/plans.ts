/** Plans of Updates for tests: tables of sentences about views. */
import { describe, expect, test } from "bun:test";
import { isDeepStrictEqual } from "node:util";
import type { UpdateStatus } from "@pko/api";
import type { EventNote } from "@pko/kube";

import { updateEvents } from "../events.ts";
import * as messages from "../messages.ts";
import type { UpdatePlan } from "../steps.ts";
import { planUpdate } from "../rules/index.ts";
import { updateStatus } from "../status.ts";
import type { UpdateView } from "../view.ts";
import { at, startedIn, viewOf, withFinalizer, withStatus, workspaceReady, type ViewTrait } from "./views.ts";

export const minute = 60_000;
export const hour = 60 * minute;

/** With the pod recorded. */
export const started: readonly ViewTrait[] = [workspaceReady, withFinalizer, startedIn("pod-a")];

export const containing = (text: string): unknown => expect.stringContaining(text);
export const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);
export const lacking = (field: string): unknown =>
  expect.not.objectContaining({ [field]: expect.anything() as unknown });

/** A pass in which every step succeeds. */
interface Pass {
  readonly plan: UpdatePlan;
  readonly status: UpdateStatus;
  readonly isWritten: boolean;
  readonly events: readonly EventNote[];
}

export function passOver(observed: UpdateView): Pass {
  const plan = planUpdate(observed);
  const view = withFacts(observed, plan);
  const status = updateStatus(view, plan);
  const isWritten = !isDeepStrictEqual(status, view.update.status ?? {});
  return { plan, status, isWritten, events: updateEvents(view, plan) };
}

function withFacts(view: UpdateView, { steps }: UpdatePlan): UpdateView {
  const store = steps.find((step) => step.kind === "storeResult");
  if (!store) return view;
  const { outputs, unreadOutputs, stdout, plan, problems } = store.secrets;
  const outputsName = outputs?.metadata.name ?? unreadOutputs;
  const stdoutName = stdout?.metadata.name;
  const names = {
    ...(outputsName !== undefined && { outputs: outputsName }),
    ...(stdoutName !== undefined && { stdout: stdoutName }),
    ...(plan && { plan: { ...plan.summary, secretNames: plan.secrets.map(({ metadata }) => metadata.name ?? "") } }),
  };
  return { ...view, stored: { ...names, problems, failures: [] } };
}

type Case = readonly [sentence: string, traits: readonly ViewTrait[], expected: object];

export function table(title: string, cases: readonly Case[]): void {
  describe(title, () => {
    for (const [sentence, traits, expected] of cases) {
      test(sentence, () => {
        const { plan, ...rest } = passOver(viewOf(...traits));
        const { requeueAt } = plan;
        expect({ ...plan, requeueAt, ...rest, conditions: conditionsIn(rest.status) }).toMatchObject(expected);
      });
    }
  });
}

function conditionsIn({ conditions = [] }: UpdateStatus): Record<string, string> {
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status}/${reason}`]));
}

export const writesNothing = { steps: [], isWritten: false };

export const waits = (reason: string) => ({
  steps: [],
  isWritten: true,
  conditions: { Progressing: `False/${reason}`, Failed: `False/${reason}`, Complete: `False/${reason}` },
});

export const progresses = (reason: string) => ({
  steps: [],
  isWritten: true,
  conditions: { Progressing: `True/${reason}`, Failed: `False/${reason}`, Complete: `False/${reason}` },
});

const failure = (reason: string) => ({
  events: [{ type: "Warning", reason: "UpdateFailed" }],
  conditions: { Progressing: "False/Complete", Failed: `True/${reason}`, Complete: `True/${reason}` },
});

export const storesAll = [{ kind: "storeResult" }, { kind: "storeRecord" }];

/** With a result from the agent. */
export const fails = (reason: string) => ({ steps: storesAll, ...failure(reason) });

/** Without a result from the agent, once the API server has confirmed the cause. */
export const endsAs = (reason: string, ...confirmations: readonly string[]) => ({
  steps: [...confirmations.map((kind) => ({ kind })), { kind: "forgetRun" }],
  ...failure(reason),
});

/** The same after the operation may have run: then there is a record. */
export const endsRecorded = (reason: string, ...confirmations: readonly string[]) => {
  const { steps, ...rest } = endsAs(reason, ...confirmations);
  return { steps: [...steps, { kind: "storeRecord" }], ...rest };
};

export const succeeds = {
  steps: storesAll,
  events: [{ type: "Normal", reason: "UpdateSucceeded" }],
  conditions: { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" },
};

export function progressAt(offsetMs: number, created: number) {
  return { time: at(offsetMs), created, updated: 0, deleted: 0, replaced: 0, unchanged: 0, failed: 0 };
}

const running = { kind: "progressing", reason: "Progressing", message: messages.running } as const;

/** The status once the pod is recorded. */
export function startedStatus(): UpdateStatus {
  return updateStatus(viewOf(...started), { outcome: running });
}

/** The status after a progress report of a running operation. */
export function runningStatus(progress: UpdateStatus["progress"] & object): UpdateStatus {
  return updateStatus(viewOf(...started, withStatus({ progress })), { outcome: running });
}
