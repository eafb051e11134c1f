/** A run on disk: /share/runs/<runId> contains its request, events, output and result. */
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RecordedResource, RunProcess, type RunEvent } from "@pko/records";
import { checkValue, LostRun, Operation, RunId, RunResult, SealedPlan, StartRequest } from "@pko/rpc";
import { Type, type Static, type TSchema } from "typebox";
import { readIfExists, removeFolder, syncFolder, writeAtomically } from "../system/files.ts";
import { Bindings } from "../plans/sealed-plan.ts";
import { RunTarget } from "../workspace/state.ts";

/** A command of the run. Locks contain its PID. */
const Launch = Type.Object({
  /** The index of the operation's step; a step may be launched again. */
  step: Type.Integer(),
  pid: Type.Integer(),
  startTicks: Type.String(),
  startedAt: Type.Optional(Type.String()),
  /** Set when the process is known to have held the stack's lock. */
  holder: Type.Optional(RunProcess),
});
export type Launch = Static<typeof Launch>;

/** Written before the first command starts, and again for each process. */
export const RunRecord = Type.Object({
  runId: RunId,
  operation: Operation,
  lostRuns: Type.Optional(Type.Array(LostRun)),
  timeouts: StartRequest.properties.timeouts,
  origin: StartRequest.properties.origin,
  ready: RunTarget,
  /** Digests of its inputs; absent in a run of an earlier agent version. */
  inputs: Type.Optional(Type.Record(Type.String(), Type.String())),
  startedAt: Type.String(),
  launches: Type.Array(Launch),
  /** Why the run was cancelled. Stored, so the values must not change. */
  cancelled: Type.Optional(
    Type.Union([
      /** By a request. */
      Type.Literal("asked"),
      Type.Literal("stopping"),
      /** It exceeded this timeout. */
      Type.Literal("total"),
      Type.Literal("silence"),
    ]),
  ),
});
export type Cancellation = NonNullable<Static<typeof RunRecord>["cancelled"]>;
export type RunRecord = Static<typeof RunRecord>;

/** The outputs in the events, without the values of secrets. */
const KnownOutputs = Type.Object({
  complete: Type.Boolean(),
  outputs: Type.Array(
    Type.Object({
      name: Type.String(),
      secret: Type.Boolean(),
      known: Type.Boolean(),
      value: Type.Optional(Type.Unknown()),
    }),
  ),
});
type KnownOutputs = Static<typeof KnownOutputs>;

/** What a plan that a run makes depends on, read before its first command. */
const PlanBasis = Type.Object({ key: Type.String(), bindings: Bindings });
export type PlanBasis = Static<typeof PlanBasis>;

/** A line of events.ndjson. */
export interface StoredEvent {
  readonly type: "event";
  readonly seq: number;
  readonly time: string;
  readonly event: RunEvent;
  /** The engine event that it came from, so that a restarted agent continues there. */
  readonly origin?: { readonly launch: number; readonly sequence: number };
}

const appliedPlan = "applied-plan.json";
const planBasis = "plan-basis.json";

export class RunFolder {
  readonly path: string;
  readonly runId: RunId;

  constructor(runs: string, runId: RunId) {
    this.runId = runId;
    this.path = join(runs, runId);
  }

  get events(): string {
    return join(this.path, "events.ndjson");
  }

  stdout(launch: number): string {
    return join(this.path, `stdout-${launch}.log`);
  }

  stderr(launch: number): string {
    return join(this.path, `stderr-${launch}.log`);
  }

  /** Exists only while the state is read. */
  get state(): string {
    return join(this.path, "state.json");
  }

  engineLog(launch: number): string {
    return join(this.path, `engine-${launch}.log`);
  }

  /** The file of a plan that the CLI writes or applies. */
  get planFile(): string {
    return join(this.path, "plan.json");
  }

  /** The stack's state while a plan is compared with it. */
  get stateFile(): string {
    return join(this.path, "state.json");
  }

  /** `plan` is stored apart from the record, which is written again for each process. */
  async create(record: RunRecord, plan?: SealedPlan): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    try {
      if (plan) await writeAtomically(join(this.path, appliedPlan), JSON.stringify(plan));
      await this.writeRecord(record);
      await syncFolder(dirname(this.path));
    } catch (error) {
      // The run is not started. With its record, another request could not start it either.
      await removeFolder(this.path);
      throw error;
    }
  }

  /** The plan that this run applies. */
  async readAppliedPlan(): Promise<SealedPlan | undefined> {
    return await readJson(SealedPlan, join(this.path, appliedPlan));
  }

  /** The plan that this run made. */
  async writePlan(plan: SealedPlan): Promise<void> {
    await writeAtomically(join(this.path, "sealed-plan.json"), JSON.stringify(plan));
  }

  async readPlan(): Promise<SealedPlan | undefined> {
    return await readJson(SealedPlan, join(this.path, "sealed-plan.json"));
  }

  async writePlanBasis(basis: PlanBasis): Promise<void> {
    await writeAtomically(join(this.path, planBasis), JSON.stringify(basis));
  }

  async readPlanBasis(): Promise<PlanBasis | undefined> {
    return await readJson(PlanBasis, join(this.path, planBasis));
  }

  /** Creates the file for the CLI, which keeps its mode. */
  async writePlanFile(text: string): Promise<void> {
    await writeFile(this.planFile, text, { mode: 0o600 });
  }

  /** What is needed only while the run is active. */
  async removePlanFiles(): Promise<void> {
    for (const path of [this.planFile, this.stateFile, join(this.path, appliedPlan), join(this.path, planBasis)]) {
      await rm(path, { force: true });
    }
  }

  /**
   * It is on disk when this returns. If the node lost it with its power, the operation would be started again; without its processes,
   * their command would be.
   */
  async writeRecord(record: RunRecord): Promise<void> {
    await writeAtomically(join(this.path, "run.json"), JSON.stringify(record));
    await syncFolder(this.path);
  }

  async readRecord(): Promise<RunRecord | undefined> {
    return await readJson(RunRecord, join(this.path, "run.json"));
  }

  async writeResult(result: RunResult): Promise<void> {
    await writeAtomically(join(this.path, "result.json"), JSON.stringify(result));
  }

  async readResult(): Promise<RunResult | undefined> {
    return await readJson(RunResult, join(this.path, "result.json"));
  }

  async writeOutputs(outputs: KnownOutputs): Promise<void> {
    await writeAtomically(join(this.path, "outputs.json"), JSON.stringify(outputs));
  }

  async readOutputs(): Promise<KnownOutputs | undefined> {
    return await readJson(KnownOutputs, join(this.path, "outputs.json"));
  }

  /** The resources in the state after the run, if it was read. */
  async writeResources(resources: RecordedResource[]): Promise<void> {
    await writeAtomically(join(this.path, "resources.json"), JSON.stringify(resources));
  }

  async readResources(): Promise<RecordedResource[] | undefined> {
    return await readJson(Type.Array(RecordedResource), join(this.path, "resources.json"));
  }

  /** The engine logs contain the state of resources, so they are deleted after the run. */
  async removeEngineLogs(): Promise<void> {
    for (const name of await readdir(this.path)) {
      if (/^engine-\d+\.log$/.test(name)) await rm(join(this.path, name), { force: true });
    }
  }
}

async function readJson<S extends TSchema>(schema: S, path: string): Promise<Static<S> | undefined> {
  const text = await readIfExists(path);
  if (text === undefined) return undefined;
  try {
    const parsed = checkValue(schema, JSON.parse(text));
    return parsed.ok ? parsed.value : undefined;
  } catch {
    return undefined;
  }
}

/** The folders of runs, oldest first. */
export async function listRuns(runs: string): Promise<readonly RunFolder[]> {
  await mkdir(runs, { recursive: true });
  const found: { readonly folder: RunFolder; readonly time: number }[] = [];
  for (const name of await readdir(runs)) {
    if (!checkValue(RunId, name).ok) continue;
    const folder = new RunFolder(runs, name);
    found.push({ folder, time: (await stat(folder.path)).birthtimeMs });
  }
  return found.toSorted((a, b) => a.time - b.time).map(({ folder }) => folder);
}
