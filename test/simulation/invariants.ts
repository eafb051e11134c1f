/** What must hold at any time, whatever fails. */
import { leaseName, updateKind, type Stack } from "@pko/api";
import { builtin } from "@pko/kube";

import type { StartedRun } from "./agent.ts";
import { servedKind } from "./api/kinds.ts";
import type { ApiReply, ApiRequest } from "./api/server.ts";
import type { Change, Stored } from "./api/storage.ts";
import type { Backend, Write } from "./backend.ts";
import { operatorNamespace } from "./operator-process.ts";
import { namespace, type Place } from "./place.ts";

/** What they are checked with. */
interface Observed {
  readonly seed: number;
  readonly time: { readonly elapsed: number };
  readonly backend: Pick<Backend, "state">;
  readonly head: string;
  readonly places: readonly Place[];
  stacks(place: Place): readonly Stack[];
  tell(text: string): void;
}

interface ProcessedRequest {
  readonly request: ApiRequest;
  readonly reply: ApiReply;
  /** The replica. */
  readonly sender: string;
}

/** What replicas write that do not lead: their Lease, the CA, and reviews, which store nothing. */
const unfenced = /\/(leases|events|selfsubjectaccessreviews)|-operator-ca\b|\/pulumi-kubernetes-operator\/secrets$/;

const leases = servedKind(builtin.leases);

interface Start {
  readonly where: string;
  readonly digest: string | undefined;
  /** How often users had requested to deploy the stack again. */
  readonly requests: number;
}

/** Far more than the operator ever needs, and far less than a loop without a pause makes. */
const maxRequestsPerMinute = 2000;

export class Invariants {
  readonly violations: string[] = [];
  readonly #world: Observed;
  /** The starts of each run, by its ID. */
  readonly #starts = new Map<string, Start>();
  /** The plans that users have approved. */
  readonly #approved = new Set<string>();
  /** The run that applied each plan. */
  readonly #applied = new Map<string, string>();
  /** Objects of others that have names which the operator needs, by UID. */
  readonly #foreign = new Map<string, string>();
  /** The last change of each stack, by workspace. */
  readonly #deployed = new Map<string, { readonly content: string | undefined; readonly requests: number }>();
  /** How often users have requested that a stack is deployed again. */
  readonly #requested = new Map<string, number>();
  readonly #requests = new Map<number, number>();
  requestCount = 0;
  /** Writes of operators, except Leases and Events. */
  writeCount = 0;
  lastWrite = "";
  /** Some findings are no violations after certain faults. */
  readonly excuses = new Set<"restored" | "podLost" | "clockStep">();
  readonly secrets: { readonly password: string; readonly output: string };

  constructor(world: Observed) {
    this.#world = world;
    this.secrets = { password: `canary-password-${world.seed}-x`, output: `canary-output-${world.seed}-x` };
  }

  violate(what: string): void {
    if (this.violations.includes(what)) return;
    this.violations.push(what);
    this.#world.tell(`VIOLATION: ${what}`);
  }

  approve(digest: string): void {
    this.#approved.add(digest);
  }

  protect(object: Stored): void {
    this.#foreign.set(object.metadata.uid ?? "", JSON.stringify(object));
  }

  unprotect(uid: string): void {
    this.#foreign.delete(uid);
  }

  /** A process of the CLI starts. */
  onStart(place: Place, { where, request, stack, content }: StartedRun): void {
    const { runId, operation } = request;
    this.#world.tell(`${where}: ${operation.kind} of ${stack} starts (run ${runId}): ${content.slice(0, 8)}`);
    const known = this.#starts.get(runId);
    if (known && !this.excuses.has("restored")) {
      this.violate(`run ${runId} (${operation.kind} of ${stack}) started twice: ${known.where}, then ${where}`);
    }
    const digest = "applyPlan" in operation ? operation.applyPlan?.digest : undefined;
    this.#starts.set(runId, { where, digest, requests: this.#requested.get(stack) ?? 0 });
    const isPreview = operation.kind === "preview" || ("previewOnly" in operation && operation.previewOnly);
    if (isPreview || operation.kind === "refresh") return;
    const owner = this.#world.stacks(place).find(({ spec }) => spec?.stack === stack);
    if (operation.kind === "destroy") this.#checkDestroy(stack, owner);
    if (isApproved(stack)) this.#checkApproval(stack, runId, digest);
  }

  /** The state of a stack changes. */
  onWrite({ where, stack, operation, content, runId }: Write): void {
    this.#world.tell(`${where}: ${operation} of ${stack} succeeds (run ${runId})`);
    const key = `${where} ${stack}`;
    const last = this.#deployed.get(key);
    // A request during a run is for the next one.
    const requests = this.#starts.get(runId)?.requests ?? 0;
    this.#deployed.set(key, { content, requests });
    const isRequested = last?.requests !== requests;
    if (!last || last.content !== content || isRequested) return;
    if (this.excuses.has("restored") || this.excuses.has("podLost")) return;
    this.violate(`${operation} of ${stack} in ${where} ran twice for the same content`);
  }

  /** A user wants it to be deployed again, although nothing has changed. */
  request(stack: string): void {
    this.#requested.set(stack, (this.#requested.get(stack) ?? 0) + 1);
  }

  #checkDestroy(stack: string, owner: Stack | undefined): void {
    if (this.excuses.has("restored")) return;
    const isWanted = owner?.metadata.deletionTimestamp !== undefined && owner.spec?.destroyOnFinalize === true;
    if (!isWanted) this.violate(`${stack} is destroyed, although nobody requested it`);
  }

  #checkApproval(stack: string, runId: string, digest: string | undefined): void {
    if (digest === undefined || !this.#approved.has(digest)) {
      this.violate(`run ${runId} changes ${stack} without an approval`);
      return;
    }
    const other = this.#applied.get(digest) ?? runId;
    this.#applied.set(digest, runId);
    if (other !== runId && !this.excuses.has("restored")) {
      this.violate(`runs ${other} and ${runId} apply the same plan of ${stack}`);
    }
  }

  onChange(place: Place, { kind, before, after, last }: Change): void {
    const object = after ?? last;
    if (object && kind.kind !== "Secret") this.onText(`${kind.kind} ${object.metadata.name}`, JSON.stringify(object));
    const foreign = before && this.#foreign.get(before.metadata.uid ?? "");
    if (foreign !== undefined && before)
      this.violate(`${kind.kind} ${before.metadata.name} of another owner was ${after ? "changed" : "deleted"}`);
    if (kind.kind === "Stack" && !after && before) this.#stackDeleted(place, before as unknown as Stack);
    if (kind.kind === updateKind.kind && !before && after)
      this.#world.tell(`${place.cluster.name}: Update ${after.metadata.name} created`);
  }

  #stackDeleted(place: Place, stack: Stack): void {
    const { stack: name, destroyOnFinalize = false } = stack.spec ?? { stack: "" };
    const { content } = this.#world.backend.state(name);
    this.#world.tell(`${place.cluster.name}: Stack ${stack.metadata.name} is gone`);
    if (destroyOnFinalize && content !== undefined && !this.excuses.has("restored")) {
      this.violate(`Stack ${stack.metadata.name} was deleted before ${name} was destroyed`);
    }
  }

  /** A server has processed a request of an operator. */
  onRequest({ cluster }: Place, { request, reply, sender }: ProcessedRequest): void {
    const { method, path } = request;
    this.requestCount++;
    const minute = Math.floor(this.#world.time.elapsed / 60_000);
    const count = (this.#requests.get(minute) ?? 0) + 1;
    this.#requests.set(minute, count);
    if (count === maxRequestsPerMinute * this.#world.places.length)
      this.violate(`more than ${count} requests in a minute`);
    const isRead = method === "GET" || path.includes("dryRun=All") || unfenced.test(path);
    if (isRead || reply.status >= 300) return;
    this.writeCount++;
    this.lastWrite = `${method} ${path}`;
    const lease = cluster.storage.find({ kind: leases, namespace: operatorNamespace, name: leaseName });
    const { holderIdentity = "" } = (lease?.["spec"] as { holderIdentity?: string } | undefined) ?? {};
    const isLeader = holderIdentity === "" || holderIdentity.startsWith(`${sender}_`);
    if (!isLeader && !this.excuses.has("restored")) {
      this.violate(`${sender} writes although ${holderIdentity.split("_")[0]} leads: ${method} ${path}`);
    }
  }

  onText(where: string, text: string): void {
    for (const secret of Object.values(this.secrets)) {
      if (text.includes(secret) || text.includes(base64(secret)))
        this.violate(`${where} contains a secret: ${text.slice(0, 300)}`);
    }
  }

  /** What every Stack must have become once nothing fails any more. */
  unconverged(place: Place): string[] {
    return this.#world.stacks(place).flatMap((stack) => {
      const why = this.#whyUnconverged(stack);
      return why === undefined ? [] : [`${place.cluster.name}: Stack ${stack.metadata.name} ${why}`];
    });
  }

  #whyUnconverged({ metadata, spec, status }: Stack): string | undefined {
    if (metadata.deletionTimestamp !== undefined) return "is being deleted";
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.status !== "True") return `is not ready: ${ready?.reason} ${ready?.message}`;
    if (ready.observedGeneration !== metadata.generation) return "is ready for an earlier generation";
    const { lastSuccessfulCommit } = status?.lastUpdate ?? {};
    if (lastSuccessfulCommit !== this.#world.head) return `has commit ${lastSuccessfulCommit}`;
    const { content } = this.#world.backend.state(spec?.stack ?? "");
    const wanted = expectedContent(this.#world.head, spec?.config);
    return content === wanted ? undefined : `is ready, but ${content} is deployed instead of ${wanted}`;
  }

  /** What is left of Stacks that no longer exist. */
  leftovers({ cluster }: Place): string[] {
    const names = new Set(
      cluster.storage.list().flatMap(({ kind, metadata }) => (kind === "Stack" ? [metadata.name] : [])),
    );
    return cluster.storage.list().flatMap(({ kind, metadata }) => {
      const { name = "", uid = "" } = metadata;
      const isOperators = ["Workspace", "Update", "StatefulSet", "Pod", "Service", "UpdateRecord"].includes(kind);
      const owner = name.split("-")[0] ?? "";
      const isLeft = isOperators && metadata.namespace === namespace && !names.has(owner) && !this.#foreign.has(uid);
      return isLeft ? [`${cluster.name}: ${kind} ${name} is left over`] : [];
    });
  }
}

/** Such a Pulumi stack needs an approval for each change. */
export const isApproved = (stack: string): boolean => stack.startsWith("approved-");

export function expectedContent(commit: string, config: unknown): string {
  const values = Object.entries((config ?? {}) as Record<string, string>).map(([key, value]) => `${key}=${value}`);
  return [commit, ...values.toSorted()].join(" ");
}

const base64 = (text: string): string => Buffer.from(text).toString("base64").replaceAll("=", "").slice(0, -2);
