import type { ConnectOptions } from "@pko/kube";

/**
 * For clients of tests themselves. The API server shares two cores with everything that runs at the same time, so a response may take
 * longer than an operator would wait before it tries again.
 */
export const patience = { timeoutMs: 120_000, attemptTimeoutMs: 60_000 } as const satisfies ConnectOptions;
