/** What the calls of a life meet: the point at which the operator dies, or some trouble, or nothing. */
import { assertNever } from "@pko/rpc";
import type { ProxiedRequest, Verdict } from "@pko/testkit";

import type { Fuse, Where } from "./fuse.ts";

export interface TroubleOptions {
  /** The share of calls, of the API server and of agents, that go wrong. */
  readonly trouble?: number;
  /** The most by which a watch is late now and then: the operator's stores are old, and not of one moment. */
  readonly lagMs?: number;
}

interface Parts extends TroubleOptions {
  readonly fuse: Fuse;
  readonly strike: () => Promise<void>;
}

/** Of all events. */
const lateShare = 0.3;

const troubles: readonly Verdict[] = [
  { status: 500 },
  { status: 503, retryAfterSeconds: 0 },
  { status: 429, retryAfterSeconds: 1 },
  { status: 409 },
  { cut: "before" },
  { cut: "after" },
];

export class Trouble {
  readonly #parts: Parts;
  #count = 0;
  #lastWriteAt = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Calls that went wrong without a point. */
  get count(): number {
    return this.#count;
  }

  get lastWriteAt(): number {
    return this.#lastWriteAt;
  }

  /** A call of the API server. */
  judge(request: ProxiedRequest): Verdict | undefined | Promise<Verdict | undefined> {
    const call = nameOf(request);
    if (call === undefined) return this.#trouble();
    if (request.resource !== "events") this.#lastWriteAt = performance.now();
    const where = this.#parts.fuse.arrive(call);
    switch (where) {
      case undefined:
        return this.#trouble();
      case "before":
        return this.#parts.strike().then(() => ({ cut: "before" }));
      case "during":
      case "after":
        return { afterwards: () => this.#parts.strike() };
      case "lost":
        return { cut: "after" };
      case "cut":
        return { cut: "before" };
      default:
        return assertNever(where);
    }
  }

  #trouble(): Verdict | undefined {
    return this.#isTroubled() ? troubles[Math.floor(Math.random() * troubles.length)] : undefined;
  }

  /** A call of an agent. */
  arrive(call: string): Where | undefined {
    const where = this.#parts.fuse.arrive(call);
    if (where !== undefined) return where;
    if (!this.#isTroubled()) return undefined;
    return Math.random() < 0.5 ? "cut" : "lost";
  }

  /** An event of a watch. */
  async lag(): Promise<"pass"> {
    const { lagMs = 0 } = this.#parts;
    if (Math.random() < lateShare) await Bun.sleep(Math.random() * lagMs);
    return "pass";
  }

  #isTroubled(): boolean {
    const isTroubled = Math.random() < (this.#parts.trouble ?? 0);
    if (isTroubled) this.#count += 1;
    return isTroubled;
  }
}

/** Undefined for what changes nothing. */
function nameOf({ isWrite, query, verb, resource, subresource, name, body }: ProxiedRequest): string | undefined {
  if (!isWrite || query.get("dryRun") !== null || resource === "leases") return undefined;
  const kind = subresource === undefined ? resource : `${resource}/${subresource}`;
  if (resource === "events") {
    // One that comes again tells only that it does.
    const { reason = "again", regarding } = JSON.parse(body) as { reason?: string; regarding?: { name?: string } };
    return regarding?.name === "scout" ? undefined : `${verb} ${kind} ${reason}`;
  }
  const object = name ?? nameIn(body);
  if (object === "scout") return undefined;
  return `${verb} ${kind} ${object.replaceAll(/-[0-9a-f]{10,16}(?![0-9a-z])/g, "-HASH")}`;
}

function nameIn(body: string): string {
  const { metadata } = JSON.parse(body) as { metadata?: { name?: string } };
  return metadata?.name ?? "";
}
