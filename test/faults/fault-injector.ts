/** Decides what happens to each call: a crash of the operator, a random fault, or nothing. */
import { randomForKeys, type ProxiedRequest, type SeededRandom, type Verdict } from "@pko/testkit";

import type { Fuse, Where } from "./fuse.ts";

export interface FaultOptions {
  /** The share of calls to the API server and to agents that fail. */
  readonly faultRate?: number;
  /** The maximum delay of watch events: the operator's caches are stale, and not equally so. */
  readonly lagMs?: number;
  /** Of the random faults and delays. */
  readonly seed?: number;
}

interface Parts extends FaultOptions {
  readonly fuse: Fuse;
  readonly crash: () => Promise<void>;
}

/** The share of delayed events. */
const lateShare = 0.3;

const possibleFaults: readonly [Verdict, ...Verdict[]] = [
  { status: 500 },
  { status: 503, retryAfterSeconds: 0 },
  { status: 429, retryAfterSeconds: 1 },
  { status: 409 },
  { cut: "before" },
  { cut: "after" },
];

export class FaultInjector {
  readonly #parts: Parts;
  readonly #random: (call: string) => SeededRandom;
  #count = 0;
  #lastWriteAt = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#random = randomForKeys(parts.seed ?? 0);
  }

  /** Calls that failed without a crash point. */
  get count(): number {
    return this.#count;
  }

  get lastWriteAt(): number {
    return this.#lastWriteAt;
  }

  /** For a call to the API server. */
  verdict(request: ProxiedRequest): Verdict | undefined | Promise<Verdict | undefined> {
    const call = callName(request);
    if (call === undefined) return this.#randomFault(readName(request));
    if (request.resource !== "events") this.#lastWriteAt = performance.now();
    const where = this.#parts.fuse.arrive(call);
    switch (where) {
      case undefined:
        return this.#randomFault(call);
      case "before":
        return this.#parts.crash().then(() => ({ cut: "before" }));
      case "during":
      case "after":
        return { afterwards: () => this.#parts.crash() };
      case "lost":
        return { cut: "after" };
      case "cut":
        return { cut: "before" };
    }
  }

  #randomFault(call: string): Verdict | undefined {
    return this.#isFaulty(call) ? this.#random(call).pick(possibleFaults) : undefined;
  }

  /** For a call to an agent. */
  arrive(call: string): Where | undefined {
    const where = this.#parts.fuse.arrive(call);
    if (where !== undefined) return where;
    return this.#isFaulty(call) ? this.#random(call).pick(["cut", "lost"]) : undefined;
  }

  /** For an event of a watch of this resource. */
  async delayEvent(resource: string): Promise<"pass"> {
    const { lagMs = 0 } = this.#parts;
    const random = this.#random(`event ${resource}`);
    if (random.next() < lateShare) await Bun.sleep(random.next() * lagMs);
    return "pass";
  }

  #isFaulty(call: string): boolean {
    const isFaulty = this.#random(call).next() < (this.#parts.faultRate ?? 0);
    if (isFaulty) this.#count += 1;
    return isFaulty;
  }
}

/** Of a request that changes nothing. Hashes in names differ between lifecycles. */
const readName = ({ verb, resource, name = "" }: ProxiedRequest): string => withoutHash(`${verb} ${resource} ${name}`);

const withoutHash = (name: string): string => name.replaceAll(/-[0-9a-f]{10,16}(?![0-9a-z])/g, "-HASH");

/** Undefined for requests that change nothing. */
function callName({ isWrite, query, verb, resource, subresource, name, body }: ProxiedRequest): string | undefined {
  if (!isWrite || query.get("dryRun") !== null || resource === "leases") return undefined;
  const kind = subresource === undefined ? resource : `${resource}/${subresource}`;
  if (resource === "events") {
    // The patch of a repeated event has no reason.
    const { reason = "repeated", regarding } = JSON.parse(body) as { reason?: string; regarding?: { name?: string } };
    return regarding?.name === "scout" ? undefined : `${verb} ${kind} ${reason}`;
  }
  const object = name ?? nameIn(body);
  if (object === "scout") return undefined;
  return `${verb} ${kind} ${withoutHash(object)}`;
}

function nameIn(body: string): string {
  const { metadata } = JSON.parse(body) as { metadata?: { name?: string } };
  return metadata?.name ?? "";
}
