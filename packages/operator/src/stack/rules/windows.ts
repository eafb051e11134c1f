/** Rules about update windows: when may an update that is due start? */
import { ignoreWindowsUntilAnnotation, windowAt, type WindowState } from "@pko/api";

import { parseRfc3339 } from "../../shared/parse-timestamp.ts";
import * as messages from "../messages.ts";
import { wait, type StackPlan } from "../steps.ts";
import { validSpec, type StackView, type UpdateFacts } from "../view.ts";
import { nextDue } from "./due.ts";

export function outsideUpdateWindow(view: StackView): StackPlan | undefined {
  const due = nextDue(view);
  if (due?.kind !== "now") return undefined;
  const state = windowState(view, view.now);
  if (state.kind === "open") return undefined;
  const override = overrideOf(view);
  const message = messages.outsideWindow(due, state, override.kind === "invalid" ? override.value : undefined);
  const opensAt = state.kind === "closed" ? state.opensAt : undefined;
  const what = messages.dueUpdate(due);
  return wait({ kind: "outsideWindow", message, what, ...(opensAt !== undefined && { opensAt }) }, opensAt);
}

/** The first time from `at` on when an update may start. */
export function earliestStart(view: StackView, at: number): number {
  const state = windowState(view, at);
  return state.kind === "closed" ? state.opensAt : at;
}

/** Whether the windows prevent this Update, which has not started, from starting. Drift checks start at any time. */
export const isOutsideWindow = (view: StackView, { type }: UpdateFacts): boolean =>
  type !== "refresh" && windowState(view, view.now).kind !== "open";

/** When an Update that has not started may no longer start; undefined if it always may. */
export function latestStart(view: StackView, { startedAt }: UpdateFacts): number | undefined {
  const state = startedAt === undefined ? windowState(view, view.now) : undefined;
  return state?.kind === "open" && Number.isFinite(state.until) ? state.until : undefined;
}

const alwaysOpen: WindowState = { kind: "open", until: Infinity };

function windowState(view: StackView, at: number): WindowState {
  const { windows = [] } = validSpec(view) ?? {};
  if (windows.length === 0) return alwaysOpen;
  const override = overrideOf(view);
  if (override.kind === "until" && at < override.time) return { kind: "open", until: override.time };
  return windowAt(windows, at);
}

type Override =
  | { readonly kind: "none" }
  | { readonly kind: "until"; readonly time: number }
  | { readonly kind: "invalid"; readonly value: string };

function overrideOf({ stack }: StackView): Override {
  const value = stack.metadata.annotations?.[ignoreWindowsUntilAnnotation];
  if (!value) return { kind: "none" };
  const time = parseRfc3339(value);
  return time === undefined ? { kind: "invalid", value } : { kind: "until", time };
}
