/**
 * Pushes and changes of pull requests that verified webhooks report, from the webhook endpoint to the controllers. Lost at a
 * restart: polling finds them.
 */

export interface Push {
  /** Only Stacks of this namespace are concerned. */
  readonly namespace: string;
  /** URLs of one repository. */
  readonly repositories: readonly string[];
  /** Full names; any may have changed if there is none. */
  readonly refs: readonly string[];
  /** A pull request was opened, changed or closed, and no ref was pushed. */
  readonly isPullRequest?: true;
}

/** Returns the number of Stacks that follow what was pushed. */
type PushListener = (push: Push) => number;

export interface Pushes {
  /** Returns the number of Stacks that follow what was pushed. */
  report(push: Push): number;
  /** Calls the listener for each push, until the returned function is called. */
  follow(listener: PushListener): () => void;
}

export function pushes(): Pushes {
  const listeners = new Set<PushListener>();
  return {
    report: (push) => listeners.values().reduce((count, listener) => count + listener(push), 0),
    follow(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
