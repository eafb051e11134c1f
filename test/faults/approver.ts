/** A user who decides about the plans that wait for it, as a person would with `kubectl pulumi approve` and `reject`. */
import { reflector, type Client, type Reflector } from "@pko/kube";
import type { Approval, ApprovalRequest, Stack } from "@pko/api";
import { stacks } from "@pko/operator";

import { decide } from "../integration/approvals/decide.ts";

interface ApproverOptions {
  /** Of a user with the role of an approver. */
  readonly client: Client;
  readonly namespace: string;
}

type Decision = Approval["spec"]["decision"];

export class Approver implements AsyncDisposable {
  readonly #options: ApproverOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  /** The UIDs of the Updates with the plans. */
  readonly #decided = new Set<string>();
  readonly #work = new Set<Promise<unknown>>();
  readonly faults: unknown[] = [];
  /** To every new request; "Wait": none. */
  answer: Decision | "Wait" = "Approve";

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

  async decide(request: ApprovalRequest, decision: Decision): Promise<Approval> {
    this.#decided.add(request.updateUid);
    return await decide(this.#options, request, { decision });
  }

  #onStack(stack: Stack | undefined): void {
    const request = stack?.status?.approval;
    if (request?.state !== "Pending" || this.answer === "Wait" || this.#decided.has(request.updateUid)) return;
    const decided = this.decide(request, this.answer).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.faults.push(error);
    });
    this.#work.add(decided);
  }
}
