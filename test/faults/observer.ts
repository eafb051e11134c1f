/** Observes all objects of one namespace and describes their state so that it is the same in every lifecycle. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { builtin, reflector, type Client, type KubeObject, type Reflector, type Resource } from "@pko/kube";
import type { Approval, Update, UpdateRecord } from "@pko/api";
import { approvals, stacks, updateRecords, updates, workspaces } from "@pko/operator";

import type { SeenApproval, SeenPlan } from "./audit.ts";

const kinds: readonly Resource[] = [
  stacks,
  workspaces,
  updates,
  updateRecords,
  approvals,
  builtin.statefulSets,
  builtin.services,
  builtin.pods,
  builtin.secrets,
];

interface ObserverOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly folder: string;
  /** The commits of the repository, in order. */
  readonly commits: readonly string[];
}

interface MarkedApproval extends SeenApproval {
  /** The UID of the Update that its status names now. */
  readonly user: string | undefined;
}

function seenApproval(
  { name, spec, user }: Pick<MarkedApproval, "name" | "spec" | "user">,
  before?: MarkedApproval,
): MarkedApproval {
  const isOther = user !== undefined && before?.user !== undefined && before.user !== user;
  const usedBy = new Set([...(before?.usedBy ?? []), ...(user === undefined ? [] : [user])]);
  return { name, spec, user, usedBy, isTaken: isOther || (before?.isTaken ?? false) };
}

export class Observer implements AsyncDisposable {
  readonly #options: ObserverOptions;
  readonly #stop = new AbortController();
  readonly #reflectors: readonly Reflector<KubeObject>[];
  readonly #running: Promise<unknown>;
  #changes = new Map<string, number>();
  readonly #approvals = new Map<string, MarkedApproval>();
  readonly #plans = new Map<string, SeenPlan>();

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.#reflectors = kinds.map((kind) => reflector(options.client, kind, { namespaces: [options.namespace] }));
    for (const { store } of this.#reflectors) {
      store.subscribe(({ before, after }) => {
        const object = after ?? before;
        if (after) this.#remember(after);
        const isReplaced = before?.metadata.uid !== after?.metadata.uid;
        if (!object || !isReplaced) return;
        if (before) this.#count(`deleted ${before.kind} ${this.named(before)}`);
        if (after) this.#count(`created ${after.kind} ${this.named(after)}`);
      });
    }
    this.#running = Promise.all(this.#reflectors.map((each) => each.run(this.#stop.signal)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  get synced(): Promise<unknown> {
    return Promise.all(this.#reflectors.map((each) => each.waitForSync()));
  }

  objects(kind: string): KubeObject[] {
    return this.#reflectors.flatMap(({ store }) => store.list()).filter((object) => object.kind === kind);
  }

  /** Creations and deletions since the last call, by object. */
  takeChanges(): Record<string, number> {
    const taken = Object.fromEntries([...this.#changes].toSorted(([a], [b]) => (a < b ? -1 : 1)));
    this.#changes = new Map();
    return taken;
  }

  /** Every Approval that ever existed. */
  get approvals(): readonly SeenApproval[] {
    return [...this.#approvals.values()];
  }

  /** Every plan that was ever made, by the UID of its Update. */
  get plans(): ReadonlyMap<string, SeenPlan> {
    return this.#plans;
  }

  #remember(object: KubeObject): void {
    const { name = "", uid = "" } = object.metadata;
    if (object.kind === approvals.kind) {
      const { spec, status } = object as Approval;
      this.#approvals.set(uid, seenApproval({ name, spec, user: status?.usedBy?.updateUid }, this.#approvals.get(uid)));
    }
    const plan = object.kind === updates.kind ? (object as Update).status?.plan : undefined;
    if (plan) this.#plans.set(uid, plan);
  }

  #count(change: string): void {
    this.#changes.set(change, (this.#changes.get(change) ?? 0) + 1);
  }

  /** Without the hash in the name of an Update. */
  named({ metadata }: KubeObject): string {
    return withoutHash(metadata.name ?? "");
  }

  /** The state of all objects and of the backend. */
  snapshot(): string[] {
    const seen = this.#reflectors
      .flatMap(({ store }) => store.list())
      .map((object) => `${object.kind} ${this.#plain(ownedParts(object))}`);
    return [...seen, ...this.#backend()].toSorted();
  }

  /** The stacks in the backend with their number of resources. */
  #backend(): string[] {
    const folder = join(this.#options.folder, "backend/.pulumi/stacks/shop");
    if (!existsSync(folder)) return [];
    return readdirSync(folder)
      .filter((name) => name.endsWith(".json"))
      .map((name) => {
        const { checkpoint } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Checkpoint;
        return `backend ${name} ${checkpoint.latest?.resources?.length ?? 0}`;
      });
  }

  /** Without what differs between lifecycles. */
  #plain(value: unknown): string {
    const { namespace, folder, commits } = this.#options;
    let text = JSON.stringify(value)
      .replaceAll(namespace, "NAMESPACE")
      .replaceAll(folder, "FOLDER")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
      .replaceAll(/sha256:[0-9a-f]{64}/g, "DIGEST")
      // In a trigger: a digest of a spec with addresses of this lifecycle.
      .replaceAll(/(run\\*":\\*")[0-9a-f]{32}/g, "$1DIGEST")
      .replaceAll(/127\.(?!0\.0\.1)\d+\.\d+\.\d+/g, "IP")
      .replaceAll(/127\.0\.0\.1:\d+/g, "GIT")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID");
    for (const [index, commit] of commits.entries()) text = text.replaceAll(commit, `COMMIT${index + 1}`);
    return withoutHash(text.replaceAll(timedOut, "TIMEOUT"));
  }
}

/** How a run that timed out was stopped depends on the machine. */
const timedOut =
  /the run was \w+ because it exceeded its timeout of \d+ s(, did not stop [^"\\]* and was killed)?(\\n[^"]*)?/g;

interface Checkpoint {
  readonly checkpoint: { readonly latest?: { readonly resources?: readonly unknown[] } };
}

const withoutHash = (text: string): string => text.replaceAll(/-[0-9a-f]{10,16}(?![0-9a-z])/g, "-HASH");

interface Parts extends KubeObject {
  readonly spec?: object;
  readonly status?: { readonly conditions?: readonly object[]; readonly [field: string]: unknown };
  readonly data?: Readonly<Record<string, string>>;
}

/** The parts of an object that the operator is responsible for. */
function ownedParts(object: KubeObject): object {
  const { kind, metadata, spec, status = {}, data } = object as Parts;
  const { name, labels, finalizers, ownerReferences = [] } = metadata;
  // Each name once: a repeated phase adds an Update, which shares the Secret with the outputs of those before it.
  const owners = new Set(ownerReferences.map((owner) => withoutHash(`${owner.kind} ${owner.name}`)));
  const identity = { name, labels, finalizers, owners: [...owners] };
  // Without the last reported progress of a run and its process.
  const { progress: _, process: __, conditions = [], ...stableStatus } = withoutPartialRun(status);
  switch (kind) {
    case "Pod":
      return { name };
    case "StatefulSet":
      return { ...identity, spec: { ...spec, template: undefined } };
    case "UpdateRecord": {
      const { type, result } = (object as UpdateRecord).record;
      return { ...identity, type, result };
    }
    case "Secret":
      return { ...identity, keys: Object.keys(data ?? {}), ...(isOutputs(name) && { data }) };
    case "Service":
      return { ...identity, spec: { ...spec, clusterIP: undefined, clusterIPs: undefined } };
    default:
      return { ...identity, spec, stableStatus, conditions };
  }
}

/** How far a run came before it timed out depends on the machine. */
function withoutPartialRun(status: NonNullable<Parts["status"]>): NonNullable<Parts["status"]> {
  const partial = { changes: undefined, stdout: undefined, summary: undefined };
  const last = status["lastUpdate"] as { readonly failure?: string } | undefined;
  return {
    ...status,
    ...(status["errorClass"] === "timedOut" && partial),
    ...(last?.failure === "timedOut" && { lastUpdate: { ...last, ...partial } }),
  };
}

const isOutputs = (name = ""): boolean => name.endsWith("-outputs");
