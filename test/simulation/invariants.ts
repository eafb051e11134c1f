/** What must hold at any time, whatever fails. */
import {
  isComplete,
  leaseName,
  reconcileRequestAnnotation,
  triggerAnnotation,
  updateKind,
  workspaceKind,
  type Stack,
  type Update,
  type Workspace,
} from "@pko/api";
import { builtin } from "@pko/kube";

import type { StartedRun } from "./agent.ts";
import { servedKind } from "./api/kinds.ts";
import { isEvent, type ApiReply, type ApiRequest } from "./api/server.ts";
import { textOf, type Change, type Stored } from "./api/storage.ts";
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
  /** It was on its way for long. Its sender may have led when it sent it, so only preconditions protect from it. */
  readonly isLate?: boolean;
}

/** What replicas write that do not lead: their Lease, the CA, and reviews, which store nothing. */
const unfenced = /\/(leases|events|selfsubjectaccessreviews)|-operator-ca\b|\/pulumi-kubernetes-operator\/secrets$/;

const leases = servedKind(builtin.leases);
const workspaces = servedKind(workspaceKind);
const updates = servedKind(updateKind);

/** The last change of a stack. */
interface Deployment {
  readonly content: string | undefined;
  readonly request: string | undefined;
  readonly runId: string;
}

/** Far more than the operator ever needs, and far less than a loop without a pause makes. */
const maxRequestsPerMinute = 2000;

export class Invariants {
  readonly violations: string[] = [];
  readonly #world: Observed;
  /** Where each run started, by its ID. */
  readonly #starts = new Map<string, string>();
  /** The plans that users have approved. */
  readonly #approved = new Set<string>();
  /** The run that applied each plan. */
  readonly #applied = new Map<string, string>();
  /** Objects of others that have names which the operator needs, by UID. */
  readonly #foreign = new Map<string, string>();
  /** The last change of each stack, by workspace. */
  readonly #deployed = new Map<string, Deployment>();
  /** What users requested each Update with: a generation of a Stack, and a reconciliation request. By UID, which is that of the run. */
  readonly #requested = new Map<string, string>();
  readonly #requests = new Map<number, number>();
  /** Runs that were lost with their pod or its files: nobody can read their result. By ID. */
  readonly #lost = new Set<string>();
  /** The runs whose Updates have succeeded, so that nothing needs to be repeated. By ID. */
  readonly #recorded = new Set<string>();
  /** Where etcd was restored. What operators did after the snapshot is known to nobody there. */
  readonly #restored = new Set<Place>();
  /** The Pulumi stacks whose Stack was deleted with destroyOnFinalize, and does not exist again; and where it was deleted. */
  readonly #destroyed = new Map<string, Place>();
  requestCount = 0;
  /** Writes of operators, except Leases and Events. */
  writeCount = 0;
  lastWrite = "";
  /** The replica. */
  lastWriter = "";
  readonly secrets: { readonly password: string; readonly output: string };
  /** The texts that reveal a secret. */
  readonly #revealing: readonly string[];

  constructor(world: Observed) {
    this.#world = world;
    this.secrets = { password: `canary-password-${world.seed}-x`, output: `canary-output-${world.seed}-x` };
    this.#revealing = Object.values(this.secrets).flatMap((secret) => [secret, base64(secret)]);
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
    this.#foreign.set(object.metadata.uid ?? "", ownedText(object));
  }

  unprotect(uid: string): void {
    this.#foreign.delete(uid);
  }

  /** They end with their pod, or with the files in it. */
  runsLost(runIds: Iterable<string>): void {
    for (const runId of runIds) this.#lost.add(runId);
  }

  /** Runs whose Updates are unfinished again, or do not exist, are lost, too: the cluster does not know that they ran. */
  restored(place: Place): void {
    this.#restored.add(place);
    const known = new Set(
      place.cluster.storage.list(updates).flatMap((update) => (hasSucceeded(update) ? update.metadata.uid : [])),
    );
    const forgotten = [...this.#starts].filter(([runId, where]) => isIn(place, where) && !known.has(runId));
    for (const [runId] of forgotten) this.#recorded.delete(runId);
    this.runsLost(forgotten.map(([runId]) => runId));
  }

  get wasRestored(): boolean {
    return this.#restored.size > 0;
  }

  /** A process of the CLI starts. */
  onStart(place: Place, { where, request, stack, content }: StartedRun): void {
    const { runId, operation } = request;
    this.#world.tell(`${where}: ${operation.kind} of ${stack} starts (run ${runId}): ${content.slice(0, 8)}`);
    const known = this.#starts.get(runId);
    if (known !== undefined && !this.#restored.has(place)) {
      this.violate(`run ${runId} (${operation.kind} of ${stack}) started twice: ${known}, then ${where}`);
    }
    const digest = "applyPlan" in operation ? operation.applyPlan?.digest : undefined;
    this.#starts.set(runId, where);
    this.#checkFollowed(place, runId);
    const isPreview = operation.kind === "preview" || ("previewOnly" in operation && operation.previewOnly);
    if (isPreview || operation.kind === "refresh") return;
    const owner = this.#world.stacks(place).find(({ spec }) => spec?.stack === stack);
    if (operation.kind === "destroy" && !this.#restored.has(place)) this.#checkDestroy(stack, owner);
    if (isApproved(stack)) this.#checkApproval(place, { stack, runId, digest });
  }

  /** The state of a stack changes. */
  onWrite({ where, stack, operation, content, runId }: Write): void {
    this.#world.tell(`${where}: ${operation} of ${stack} succeeds (run ${runId})`);
    const key = `${where} ${stack}`;
    const last = this.#deployed.get(key);
    const request = this.#requested.get(runId);
    this.#deployed.set(key, { content, request, runId });
    if (!last || last.content !== content || last.request !== request) return;
    if (this.#lost.has(last.runId) && !this.#recorded.has(last.runId)) return;
    this.violate(`${operation} of ${stack} in ${where} ran twice for the same content`);
  }

  /** Nobody reads the result of a run whose Update has ended, and nobody cancels it. */
  #checkFollowed(place: Place, runId: string): void {
    if (this.#restored.has(place)) return;
    const update = place.cluster.storage.list(updates).find(({ metadata }) => metadata.uid === runId);
    if (!update) this.violate(`run ${runId} starts, although its Update does not exist`);
    else if (isComplete(update as unknown as Update))
      this.violate(`run ${runId} starts, although its Update ${update.metadata.name} has ended`);
  }

  #checkDestroy(stack: string, owner: Stack | undefined): void {
    const isWanted = owner?.metadata.deletionTimestamp !== undefined && owner.spec?.destroyOnFinalize === true;
    if (!isWanted) this.violate(`${stack} is destroyed, although nobody requested it`);
  }

  #checkApproval(
    place: Place,
    { stack, runId, digest }: { readonly stack: string; readonly runId: string; readonly digest: string | undefined },
  ): void {
    if (digest === undefined || !this.#approved.has(digest)) {
      this.violate(`run ${runId} changes ${stack} without an approval`);
      return;
    }
    const other = this.#applied.get(digest) ?? runId;
    this.#applied.set(digest, runId);
    if (other !== runId && !this.#restored.has(place)) {
      this.violate(`runs ${other} and ${runId} apply the same plan of ${stack}`);
    }
  }

  onChange(place: Place, { kind, before, after, last }: Change): void {
    const object = after ?? last;
    if (object && kind.kind !== "Secret") this.onText(`${kind.kind} ${object.metadata.name}`, textOf(object));
    if (before) this.#checkForeign(before, after);
    if (kind.kind === "Stack" && !after && before) this.#stackDeleted(place, before as unknown as Stack);
    if (!before && after) this.#created(place, after);
    if (after && kind === updates && hasSucceeded(after)) this.#recorded.add(after.metadata.uid ?? "");
  }

  #checkForeign({ kind, metadata }: Stored, after: Stored | undefined): void {
    const wanted = this.#foreign.get(metadata.uid ?? "");
    if (wanted === undefined || (after && wanted === ownedText(after))) return;
    this.violate(`${kind} ${metadata.name} of another owner was ${after ? "changed" : "deleted"}`);
  }

  #created({ cluster }: Place, object: Stored): void {
    const { name, uid = "" } = object.metadata;
    if (object.kind === "Stack") this.#destroyed.delete((object as unknown as Stack).spec?.stack ?? "");
    if (object.kind !== updateKind.kind) return;
    this.#requested.set(uid, requestOf(object));
    this.#world.tell(`${cluster.name}: Update ${name} created`);
  }

  #stackDeleted(place: Place, stack: Stack): void {
    const { stack: name, destroyOnFinalize = false } = stack.spec ?? { stack: "" };
    const { content } = this.#world.backend.state(name);
    this.#world.tell(`${place.cluster.name}: Stack ${stack.metadata.name} is gone`);
    if (destroyOnFinalize) this.#destroyed.set(name, place);
    if (destroyOnFinalize && content !== undefined && !this.#restored.has(place)) {
      this.violate(`Stack ${stack.metadata.name} was deleted before ${name} was destroyed`);
    }
  }

  /** A server has processed a request of an operator. */
  onRequest(place: Place, { request, reply, sender, isLate = false }: ProcessedRequest): void {
    const { method, path } = request;
    this.requestCount++;
    const minute = Math.floor(this.#world.time.elapsed / 60_000);
    const count = (this.#requests.get(minute) ?? 0) + 1;
    this.#requests.set(minute, count);
    if (count === maxRequestsPerMinute * this.#world.places.length)
      this.violate(`more than ${count} requests in a minute`);
    if (isEvent(request)) this.onText("an Event", request.body ?? "");
    const isRead = method === "GET" || path.includes("dryRun=All") || unfenced.test(path);
    if (isRead) return;
    if (!isLate) this.#checkLeader(place, sender, `${method} ${path}`);
    if (reply.status >= 300) return;
    this.writeCount++;
    this.lastWrite = `${method} ${path}`;
    this.lastWriter = sender;
  }

  /** Also for a request that is rejected, because the next one may not be. */
  #checkLeader(place: Place, sender: string, write: string): void {
    const lease = place.cluster.storage.find({ kind: leases, namespace: operatorNamespace, name: leaseName });
    const { holderIdentity = "" } = (lease?.["spec"] as { holderIdentity?: string } | undefined) ?? {};
    const isLeader = holderIdentity === "" || holderIdentity.startsWith(`${sender}_`);
    if (!isLeader && !this.#restored.has(place)) {
      this.violate(`${sender} writes although ${holderIdentity.split("_")[0]} leads: ${write}`);
    }
  }

  onText(where: string, text: string): void {
    if (this.#revealing.some((secret) => text.includes(secret)))
      this.violate(`${where} contains a secret: ${text.slice(0, 300)}`);
  }

  /** What every Stack and its Workspace must have become once nothing fails any more. */
  unconverged(place: Place): string[] {
    const { name: cluster, storage } = place.cluster;
    const unready = storage.list(workspaces).filter((workspace) => !isReady(workspace as unknown as Workspace));
    const whys = this.#world.stacks(place).map((stack) => [stack.metadata.name, this.#whyUnconverged(stack)]);
    return [
      ...whys.flatMap(([name, why]) => (why === undefined ? [] : [`${cluster}: Stack ${name} ${why}`])),
      // Its preparation is retried, although no Stack may be waiting for it.
      ...unready.map(({ metadata }) => `${cluster}: Workspace ${metadata.name} is not ready`),
    ];
  }

  #whyUnconverged(stack: Stack): string | undefined {
    const unready = whyUnready(stack);
    if (unready !== undefined) return unready;
    const { spec, status } = stack;
    const { lastSuccessfulCommit } = status?.lastUpdate ?? {};
    if (lastSuccessfulCommit !== this.#world.head) return `has commit ${lastSuccessfulCommit}`;
    const { content } = this.#world.backend.state(spec?.stack ?? "");
    const wanted = expectedContent(this.#world.head, spec?.config);
    return content === wanted ? undefined : `is ready, but ${content} is deployed instead of ${wanted}`;
  }

  /** Resources that a run has left, although they were to be destroyed with their Stack. */
  abandoned(): string[] {
    const left = [...this.#destroyed].filter(
      ([stack, place]) => !this.#restored.has(place) && this.#world.backend.state(stack).content !== undefined,
    );
    return left.map(([stack]) => `${stack} is deployed, and its Stack does not exist`);
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

/** Why the status does not say that everything the user requested is done. */
function whyUnready({ metadata, status }: Stack): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return "is being deleted";
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status !== "True") return `is not ready: ${ready?.reason} ${ready?.message}`;
  if (ready.observedGeneration !== metadata.generation) return "is ready for an earlier generation";
  const requested = metadata.annotations?.[reconcileRequestAnnotation];
  const isRequestDone = requested === undefined || status?.observedReconcileRequest === requested;
  return isRequestDone ? undefined : "has not completed the requested reconciliation";
}

const isReady = ({ status }: Workspace): boolean =>
  status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";

function requestOf({ metadata }: Stored): string {
  const { generation, reconcileRequest } = JSON.parse(metadata.annotations?.[triggerAnnotation] ?? "{}") as {
    readonly generation?: number;
    readonly reconcileRequest?: string;
  };
  return JSON.stringify([metadata.ownerReferences?.[0]?.uid, generation, reconcileRequest]);
}

/** A run that ended in another way may have changed the stack nevertheless. */
const hasSucceeded = (update: Stored): boolean => {
  const { conditions = [] } = (update as unknown as Update).status ?? {};
  const holds = (type: string, status: string): boolean =>
    conditions.some((each) => each.type === type && each.status === status);
  return holds("Complete", "True") && holds("Failed", "False");
};

const isIn = ({ cluster }: Place, where: string): boolean => where.startsWith(`${cluster.name} `);

/** What belongs to the owner of an object: not its status, and not the finalizers of a Workspace, which any Workspace gets. */
function ownedText(object: Stored): string {
  const { status: _, metadata, ...rest } = object;
  const { resourceVersion: __, generation: ___, managedFields: ____, finalizers, ...kept } = metadata;
  return JSON.stringify([rest, kept, object.kind === workspaceKind.kind ? [] : finalizers]);
}

/** Such a Pulumi stack needs an approval for each change. */
export const isApproved = (stack: string): boolean => stack.startsWith("approved-");

export function expectedContent(commit: string, config: unknown): string {
  const values = Object.entries((config ?? {}) as Record<string, string>).map(([key, value]) => `${key}=${value}`);
  return [commit, ...values.toSorted()].join(" ");
}

const base64 = (text: string): string => Buffer.from(text).toString("base64").replaceAll("=", "").slice(0, -2);
