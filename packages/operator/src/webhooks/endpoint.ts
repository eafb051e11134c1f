/** What happens to a request, in each replica: checked, limited and read, and then handled by the replica that leads. */
import type { Receiver } from "@pko/api";
import { keyOf, systemClock, type Clock, type Registry, type Store } from "@pko/kube";

import type { Pushes } from "../shared/channels/pushes.ts";
import type { ActiveReceivers } from "./active-receivers.ts";
import { forwardedHeader, forwardHook } from "./forward.ts";
import { intake, recordRejection, type Intake } from "./intake.ts";
import type { LeaderAddress } from "./leader-address.ts";
import { bodyTimeoutMs, maxBodyBytes, RequestLimits } from "./limits.ts";
import { pathOf, pathPrefix, receiverPathIndex } from "./paths.ts";
import { readBody } from "./read-body.ts";
import { countResults, responseTo, type HookResult } from "./results.ts";

export interface EndpointOptions {
  /** With `receiverIndexers`. */
  readonly store: Store<Receiver>;
  readonly receivers: ActiveReceivers;
  readonly pushes: Pushes;
  readonly metrics: Registry;
  /** Whether this replica leads. */
  readonly isLeading: () => boolean;
  /** Of another replica that leads. */
  readonly leader: () => LeaderAddress | undefined;
  readonly clock?: Clock;
}

export class WebhookEndpoint {
  readonly #options: EndpointOptions;
  readonly #clock: Clock;
  readonly #limits: RequestLimits;
  readonly #count: (result: HookResult) => void;
  readonly #intake: Intake;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#limits = new RequestLimits(this.#clock);
    this.#count = countResults(options.metrics);
    this.#intake = intake({ ...options, clock: this.#clock });
  }

  async handle(request: Request): Promise<Response> {
    try {
      const result = await this.#resultOf(request);
      this.#count(result);
      return responseTo(result);
    } catch (error) {
      this.#count("failed");
      throw error;
    }
  }

  async #resultOf(request: Request): Promise<HookResult> {
    // The URL contains the Host header, which may be anything.
    const { pathname = "" } = URL.parse(request.url, "https://host") ?? {};
    const [receiver] = pathname.startsWith(pathPrefix) ? this.#options.store.byIndex(receiverPathIndex, pathname) : [];
    // Before anything is read: only who knows the path of a Receiver can use up the limits of its namespace.
    if (!receiver) return "unknownPath";
    if (request.method !== "POST") return "notPost";
    const admission = this.#limits.admit(receiver.metadata.namespace ?? "");
    if (admission.kind !== "admitted") return this.#rejected(receiver, admission.kind);
    try {
      const limits = { maxBytes: maxBodyBytes, timeoutMs: bodyTimeoutMs, clock: this.#clock, signal: admission.signal };
      const read = await readBody(request, limits);
      admission.bodyIsRead();
      if (read.kind !== "read") return this.#rejected(receiver, read.kind);
      return await this.#handleBody(receiver, request, read.body);
    } finally {
      admission.end();
    }
  }

  async #handleBody(receiver: Receiver, request: Request, body: Buffer): Promise<HookResult> {
    if (!this.#options.isLeading()) return await this.#forward(receiver, request, body);
    const header = (name: string): string | undefined => request.headers.get(name) ?? undefined;
    return this.#rejected(receiver, this.#intake(receiver, { header, body }));
  }

  #rejected(receiver: Receiver, reason: HookResult): HookResult {
    recordRejection(this.#options.receivers, keyOf(receiver), { at: this.#clock.now(), reason });
    return reason;
  }

  async #forward(receiver: Receiver, { headers }: Request, body: Buffer): Promise<HookResult> {
    const leader = headers.has(forwardedHeader) ? undefined : this.#options.leader();
    const status = leader && (await forwardHook(leader, { path: pathOf(receiver), headers, body }, this.#clock));
    return status === undefined ? "noLeader" : forwardedResult(status);
  }
}

/** The sender gets the leader's status: forges show it to their users. */
function forwardedResult(status: number): HookResult {
  switch (status) {
    case 400:
      return "malformed";
    case 401:
      return "badSignature";
    case 404:
      return "unknownPath";
    case 408:
      return "tooSlow";
    case 413:
      return "tooLarge";
    case 429:
      return "rateLimited";
    case 500:
      return "failed";
    default:
      return status < 300 ? "forwarded" : "noLeader";
  }
}
