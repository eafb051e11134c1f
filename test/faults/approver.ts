/** A user who approves every plan that waits for it, as a person would with `kubectl pulumi approve`. */
import { reflector, type Client, type Reflector } from "@pko/kube";
import type { Stack } from "@pko/api";
import { stacks } from "@pko/operator";

import { decide } from "../integration/approvals/decide.ts";

interface ApproverOptions {
  /** Of a user with the role of an approver. */
  readonly client: Client;
  readonly namespace: string;
}

export class Approver implements AsyncDisposable {
  readonly #options: ApproverOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  /** The UIDs of the Updates with the plans. */
  readonly #approved = new Set<string>();
  readonly #work = new Set<Promise<unknown>>();
  readonly faults: unknown[] = [];

  constructor(options: ApproverOptions) {
    this.#options = options;
    const watched: Reflector<Stack> = reflector(options.client, stacks, { namespaces: [options.namespace] });
    watched.store.subscribe(({ after }) => this.#onStack(after));
    this.#running = watched.run(this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await Promise.all(this.#work);
  }

  #onStack(stack: Stack | undefined): void {
    const request = stack?.status?.approval;
    if (request?.state !== "Pending" || this.#approved.has(request.updateUid)) return;
    this.#approved.add(request.updateUid);
    const decided = decide(this.#options, request).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.faults.push(error);
    });
    this.#work.add(decided);
  }
}
