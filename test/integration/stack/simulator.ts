/** Replaces the other controllers: Workspaces become ready, Updates run and end, and orphans are garbage-collected. */
import {
  outputsSecretNameOf,
  secretOutputsAnnotation,
  type JsonValue,
  type Update,
  type UpdateDrift,
  type UpdatePlan,
  type UpdateStatus,
  type Workspace,
} from "@pko/api";
import { builtin, isConflict, isNotFound, type Client, type KubeObject, type Resource } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";

import { Watches } from "../harness/watches.ts";

type Play =
  | {
      readonly end: "succeeded";
      readonly outputs?: Readonly<Record<string, JsonValue>>;
      readonly secrets?: readonly string[];
      /** Resources by operation. */
      readonly changes?: Readonly<Record<string, number>>;
      /** Of a drift check. */
      readonly drift?: UpdateDrift;
      /** Of an Update that makes one. */
      readonly plan?: Partial<UpdatePlan>;
    }
  | { readonly end: "failed"; readonly message: string; readonly errorClass?: string; readonly reason?: "Canceled" }
  | { readonly end: "never" };

type WorkspacePlay =
  | { readonly ready: true; readonly unchangedSince?: string }
  | { readonly stalled: string; readonly message: string }
  | { readonly waiting: string };

interface Script {
  update: (update: Update) => Play;
  workspace: (workspace: Workspace) => WorkspacePlay;
}

/** One for each Update object. */
interface Run {
  readonly name: string;
  readonly uid: string;
  readonly type: string;
  readonly revision: string;
  readonly spec: NonNullable<Update["spec"]>;
}

interface SimulatorOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly now: () => number;
  /** Of the namespace; its own if absent. */
  readonly watches?: Watches;
}

/** A script may depend on what a test has set since the last change of an object. */
const scriptPauseMs = 50;

export class Simulator implements AsyncDisposable {
  readonly script: Script = { update: () => ({ end: "succeeded" }), workspace: () => ({ ready: true }) };
  readonly runs: Run[] = [];
  readonly #options: SimulatorOptions;
  readonly #watches: Watches;
  readonly #running: Promise<unknown>;
  #isStopped = false;
  #changed = Promise.withResolvers<void>();

  constructor(options: SimulatorOptions) {
    this.#options = options;
    this.#watches = options.watches ?? new Watches(options);
    for (const kind of [stacks, workspaces, updates]) {
      this.#watches.store<KubeObject>(kind).subscribe(() => this.#changed.resolve());
    }
    this.#running = this.#play();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#changed.resolve();
    await this.#running;
    if (!this.#options.watches) await this.#watches[Symbol.asyncDispose]();
  }

  async #play(): Promise<void> {
    while (!this.#isStopped) {
      this.#changed = Promise.withResolvers();
      for (const workspace of this.#watches.store(workspaces).list()) {
        await ignoringRaces(this.#playWorkspace(workspace));
      }
      for (const update of this.#watches.store(updates).list()) await ignoringRaces(this.#playUpdate(update));
      if (!this.#isStopped) await Promise.race([this.#changed.promise, Bun.sleep(scriptPauseMs)]);
    }
  }

  async #playWorkspace(workspace: Workspace): Promise<void> {
    if (await this.#collect(workspaces, workspace)) return;
    const { generation = 0 } = workspace.metadata;
    const play = this.script.workspace(workspace);
    const time = text(this.#options.now());
    const condition = (type: string, status: "True" | "False", rest: { reason: string; message: string }) => ({
      type,
      status,
      lastTransitionTime: time,
      observedGeneration: generation,
      ...rest,
    });
    const conditions =
      "ready" in play
        ? [condition("Ready", "True", { reason: "Succeeded", message: "prepared" })]
        : "stalled" in play
          ? [
              condition("Ready", "False", { reason: play.stalled, message: play.message }),
              condition("Stalled", "True", { reason: play.stalled, message: play.message }),
            ]
          : [condition("Ready", "False", { reason: "Installing", message: play.waiting })];
    const comparison = "ready" in play && play.unchangedSince ? { unchangedSince: play.unchangedSince } : {};
    const before = workspace.status?.conditions?.map(({ type, status, message }) => [type, status, message]);
    const after = conditions.map(({ type, status, message }) => [type, status, message]);
    if (workspace.status?.observedGeneration === generation && Bun.deepEquals(before, after)) return;
    await this.#status(workspaces, workspace, { observedGeneration: generation, ...comparison, conditions });
  }

  async #playUpdate(update: Update): Promise<void> {
    if (await this.#collect(updates, update)) return;
    if (update.status?.conditions?.some(({ type, status }) => type === "Complete" && status === "True")) return;
    const { name = "", uid = "", annotations = {} } = update.metadata;
    if (!this.runs.some((run) => run.uid === uid)) {
      const { revision = "" } = JSON.parse(annotations["pulumi.com/trigger"] ?? "{}") as { revision?: string };
      this.runs.push({ name, uid, type: update.spec?.type ?? "", revision, spec: update.spec ?? {} });
    }
    const play: Play = update.metadata.deletionTimestamp
      ? { end: "failed", message: "deleted before it started", reason: "Canceled" }
      : this.script.update(update);
    if (play.end === "never") return;
    await this.#status(updates, update, await this.#endOf(update, play));
  }

  async #endOf(update: Update, play: Exclude<Play, { end: "never" }>): Promise<UpdateStatus> {
    const now = text(this.#options.now());
    const isSuccess = play.end === "succeeded";
    const failure = isSuccess ? "" : (play.reason ?? "UpdateFailed");
    const condition = (type: string, status: "True" | "False", reason: string) => ({
      type,
      status,
      reason,
      message: isSuccess ? "done" : play.message,
      lastTransitionTime: now,
    });
    const outputs =
      isSuccess && play.outputs && update.spec?.type !== "destroy" ? await this.#writeOutputs(update, play) : undefined;
    return {
      observedGeneration: 1,
      startTime: now,
      endTime: now,
      projectInfo: { name: "project", runtime: "yaml" },
      ...(outputs && { outputs }),
      ...resultOf(update, play),
      conditions: [
        condition("Progressing", "False", "Complete"),
        condition("Failed", isSuccess ? "False" : "True", failure || "UpdateSucceeded"),
        condition("Complete", "True", failure || "Updated"),
      ],
    };
  }

  async #writeOutputs(
    { metadata }: Update,
    { outputs = {}, secrets = [] }: Extract<Play, { end: "succeeded" }>,
  ): Promise<string> {
    const name = outputsSecretNameOf(metadata.name ?? "");
    const stringData = Object.fromEntries(Object.entries(outputs).map(([key, value]) => [key, JSON.stringify(value)]));
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name,
        namespace: this.#options.namespace,
        // Like the Go operator, without a controller.
        ownerReferences: [
          { apiVersion: updates.apiVersion, kind: updates.kind, name: metadata.name ?? "", uid: metadata.uid ?? "" },
        ],
        annotations: { [secretOutputsAnnotation]: JSON.stringify(secrets) },
      },
      stringData,
    };
    await this.#options.client.create(builtin.secrets, secret).catch(() => undefined);
    return name;
  }

  /** Deletes the object if its owner was deleted, like the garbage collector. */
  async #collect(kind: Resource, object: KubeObject): Promise<boolean> {
    if (object.metadata.deletionTimestamp) return false;
    const { namespace } = this.#options;
    const owner = object.metadata.ownerReferences?.find(({ kind }) => kind === "Stack");
    if (!owner) return false;
    const known = this.#watches.store(stacks).get(`${namespace}/${owner.name}`);
    if (known?.metadata.uid === owner.uid) return false;
    // The watch may not show it yet.
    const stack = await this.#options.client.find(stacks, { namespace, name: owner.name });
    if (stack?.metadata.uid === owner.uid) return false;
    await this.#options.client.delete(kind, { namespace, name: object.metadata.name ?? "" });
    return true;
  }

  async #status(kind: Resource, object: KubeObject, status: object): Promise<void> {
    const ref = { namespace: this.#options.namespace, name: object.metadata.name ?? "" };
    const body = { metadata: { resourceVersion: object.metadata.resourceVersion }, status };
    await this.#options.client.patch(kind, ref, { patch: { type: "merge", body }, subresource: "status" });
  }
}

function resultOf(update: Update, play: Exclude<Play, { end: "never" }>): UpdateStatus {
  if (play.end === "failed") {
    const { message, errorClass } = play;
    return { message, ...(errorClass && { errorClass }) };
  }
  return {
    changes: play.changes ?? { same: 1 },
    summary: "1 unchanged",
    ...(play.drift && { drift: play.drift }),
    ...(update.spec?.savePlan && { plan: { ...planOf(update), ...play.plan } }),
  };
}

const planOf = ({ metadata }: Update): UpdatePlan => ({
  digest: `sha256:${metadata.uid}`,
  secretNames: [`${metadata.name}-plan-0`],
  changes: true,
  destructive: false,
  unknownInputs: 0,
  summary: "+ create bucket",
});

const text = (ms: number): string => new Date(ms).toISOString();

async function ignoringRaces(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
  }
}
