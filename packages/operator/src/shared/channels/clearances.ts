/**
 * Which Updates may start. Secrets and ConfigMaps are not watched: an Update that started immediately could run with their
 * former content. So each Update waits until its Workspace has read them, after the Update was created, found the pod up to date,
 * and had its agent prepare them.
 *
 * In memory only, and for one leadership term: the next leader, even the same process, reconciles every Workspace again.
 */
import type { Key } from "@pko/kube";

export interface Clearances {
  /** Replaces the Updates that may start in a Workspace. */
  set(workspace: Key, updates: readonly Key[]): void;
  has(workspace: Key, update: Key): boolean;
  /** From now on none may start. */
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
