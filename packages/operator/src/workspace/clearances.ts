/**
 * Which Updates may begin. Secrets and ConfigMaps are not watched: an Update that began at once could run with what they
 * held before. So each waits until its Workspace has read them, after the Update came, and found the pod up to date.
 *
 * In memory alone, and for one term: whoever leads next looks at every Workspace anew, be it the same process.
 */
import { refKey, type Key } from "@pko/kube";

import type { Outcome } from "./outcome.ts";
import type { Plan } from "./plan.ts";
import type { WorkspaceView } from "./view.ts";

export interface Clearances {
  /** Those that may begin in a Workspace; no others may. */
  set(workspace: Key, updates: readonly Key[]): void;
  has(workspace: Key, update: Key): boolean;
  /** None may begin. */
  clear(): void;
}

export function clearances(wake: (update: Key) => void): Clearances {
  const cleared = new Map<Key, ReadonlySet<Key>>();
  const has = (workspace: Key, update: Key): boolean => cleared.get(workspace)?.has(update) ?? false;
  return {
    has,
    clear: () => cleared.clear(),
    set(workspace, updates) {
      const news = updates.filter((update) => !has(workspace, update));
      if (updates.length > 0) cleared.set(workspace, new Set(updates));
      else cleared.delete(workspace);
      for (const update of news) wake(update);
    },
  };
}

/** What a pass over a Workspace clears: the Updates that it saw before it read the inputs, where all stays as it is. */
export function clearedBy(view: WorkspaceView, { steps }: Plan, outcome: Outcome): Key[] {
  const isSettled = outcome.kind === "ready" || outcome.kind === "unchanged";
  if (!view.inputs || !isSettled || steps.some(({ kind }) => kind === "applyObjects")) return [];
  const { namespace = "" } = view.workspace.metadata;
  return view.updates.filter(({ phase }) => phase === "waiting").map(({ name }) => refKey({ namespace, name }));
}
