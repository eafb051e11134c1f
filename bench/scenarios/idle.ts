/**
 * Idle Stacks: what the operator costs with none, a few hundred or a thousand of them, and how soon it has caught up after a
 * restart. They are copies, including the status, of a Stack that the operator has deployed, created while the operator is
 * scaled down: it finds them up to date, as after an upgrade.
 */
import { isDeepStrictEqual } from "node:util";

import { isNotFound, type KubeObject, type Resource } from "@pko/kube";

import { stacks, statefulSets, updates, workspaces, type Stack } from "../bed/kinds.ts";
import { inParallel } from "../bed/wait.ts";
import { figure, type Curve, type Figure, type Point, type Unit } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

const writers = 16;
/** Changed while the operator is scaled down, and distributed among the others: when all are reconciled, it has caught up. */
const probes = 10;
const timeoutMs = 300_000;
/** Some operators keep a pod for a while, some forever. */
const podTimeoutMs = 15 * 60_000;
/** For the last writes of the operator. */
const restMs = 3000;

export const idle: Scenario = {
  name: "idle",
  title: "idle Stacks",
  async run(context) {
    const { bed, operator, sizes, report } = context;
    const template = await makeTemplate(context);
    report("the operator after the scenarios before");
    const figures = workedFigures({ id: "worked", title: "after the scenarios above" }, await measure(context));
    const memory: Point[] = [];
    const present: string[] = [];
    for (const count of sizes.idle) {
      const restarts: Restart[] = [];
      for (let round = 0; round < sizes.restarts; round += 1) {
        report(`${count}: restart ${round + 1} of ${sizes.restarts}`);
        await operator.scaleDown(bed.signal);
        await addCopies(context, { template, present, count });
        restarts.push(await restart(context, template));
      }
      report(`${count}: idle`);
      const cost = await measure(context, restarts.at(-1)?.requestsBefore ?? 0);
      memory.push({ x: count, y: cost.residentMb });
      figures.push(...idleFigures({ count, restarts, cost, sizes }));
    }
    report("the operator after work");
    await work(context);
    const title = `${present.length} idle Stacks, after ${sizes.worked} others were created and deleted`;
    figures.push(...workedFigures({ id: `idle.${present.length}.worked`, title }, await measure(context)));
    await operator.scaleDown(bed.signal);
    await inParallel([...present, template.stack.metadata.name ?? ""], writers, (name) =>
      deleteDirectly(context, name),
    );
    await operator.scaleUp();
    await operator.pod(bed.signal);
    return { figures, curves: [memoryCurve(memory)] };
  },
};

/** A process that has worked uses more memory than a new one. */
async function work({ bed, sizes }: Context): Promise<void> {
  const names = Array.from({ length: sizes.worked }, () => bed.newName("worked"));
  for (const name of names) {
    await bed.create({ name, destroyOnFinalize: true, source: { programRef: { name: "idle" } }, value: "red" });
    await bed.succeeded(name, { text: "one", value: "red" });
  }
  await bed.remove(...names);
}

function workedFigures({ id, title }: { readonly id: string; readonly title: string }, cost: Cost): Figure[] {
  const one = (what: string, unit: Unit, value: number): Figure[] =>
    figure({ id: `${id}.${what.toLowerCase()}`, title: `${title}: ${what}`, unit }, [value]);
  return [
    ...one("resident", "MB", cost.residentMb),
    ...one("anonymous", "MB", cost.anonymousMb),
    ...one("CPU", "m", cost.cpuMillis),
    ...one("requests", "/h", cost.requestsAnHour),
  ];
}

/** An idle Stack, and all objects that the operator keeps for it. */
interface Template {
  readonly stack: Stack;
  /** Owners come before their dependents. */
  readonly kept: readonly KubeObject[];
}

/** With the reclaim policy Delete, so that an idle Stack has no other objects, unless RETAIN is set. */
async function makeTemplate({ bed, options }: Context): Promise<Template> {
  const name = bed.newName("idle-template");
  await bed.program({ name: "idle", text: "one" });
  await bed.create({
    name,
    source: { programRef: { name: "idle" } },
    value: "red",
    reclaim: options.retain ? "Retain" : "Delete",
    ...(options.workspace && { workspace: options.workspace }),
  });
  await bed.succeeded(name, { text: "one", value: "red" });
  await bed.watch.until(() => bed.watch.pods().every(({ metadata }) => !metadata.name?.startsWith(name)), {
    timeoutMs: podTimeoutMs,
    what: "the template's pod to end",
  });
  await Bun.sleep(restMs);
  const stack = bed.watch.stack(name);
  if (!stack) throw new Error(`Stack ${name} was deleted`);
  return { stack, kept: bed.watch.dependentsOf(stack) };
}

interface Copies {
  readonly template: Template;
  readonly present: string[];
  readonly count: number;
}

async function addCopies(context: Context, { template, present, count }: Copies): Promise<void> {
  const names = Array.from({ length: count }, (_, index) => `idle-${String(index).padStart(5, "0")}`);
  const missing = names.slice(present.length);
  await inParallel(missing, writers, (name) => copy(context, template, name));
  present.push(...missing);
}

/** Changes names and owners; everything else is as the operator wrote it. */
async function copy(context: Context, { stack, kept }: Template, name: string): Promise<void> {
  const renamed = new Map([[stack.metadata.name ?? "", name]]);
  for (const object of [stack, ...kept]) {
    const { metadata } = await write(context, rewriteCopy(object, renamed));
    renamed.set(object.metadata.uid ?? "", metadata.uid ?? "");
  }
}

/** A field of the status with the generation that the operator has seen. */
const generationFields: ReadonlySet<string> = new Set(["generation", "observedGeneration"]);

/**
 * The copy's generation is 1, and that of the object may be higher: some operators write the spec of a Stack. Pure.
 */
export function rewriteCopy<T extends KubeObject>(object: T, replacements: ReadonlyMap<string, string>): T {
  const { apiVersion, kind, metadata, ...rest } = object;
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata;
  const kept = { name, namespace, labels, annotations, finalizers, ownerReferences };
  let text = JSON.stringify({ apiVersion, kind, metadata: kept, ...rest });
  for (const [from, to] of replacements) text = text.replaceAll(from, to);
  const isCurrent = (key: string, value: unknown): boolean =>
    generationFields.has(key) && value === metadata.generation;
  return JSON.parse(text, (key, value: unknown) => (isCurrent(key, value) ? 1 : value)) as T;
}

async function write({ bed }: Context, object: KubeObject): Promise<KubeObject> {
  const kind = copied.find((each) => each.kind === object.kind);
  if (!kind) throw new Error(`${object.kind} is not copied`);
  const made = await bed.client.create(kind, object);
  const status = (object as { readonly status?: object }).status;
  if (status === undefined) return made;
  const ref = { namespace: bed.namespace, name: object.metadata.name ?? "" };
  const patch = { type: "merge", body: { status } } as const;
  await bed.client.patch(kind, ref, { patch, subresource: "status" });
  return made;
}

const copied: readonly Resource[] = [stacks, workspaces, updates, statefulSets];

async function deleteDirectly({ bed }: Context, name: string): Promise<void> {
  try {
    await bed.patch(name, { metadata: { finalizers: null } });
    await bed.client.delete(stacks, { namespace: bed.namespace, name });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

interface Restart {
  /** From scaling up the Deployment. */
  readonly readyMs: number;
  readonly caughtUpMs: number;
  /** The number of requests before the restart. */
  readonly requestsBefore: number;
}

/** Called while the operator is scaled down. */
async function restart(context: Context, template: Template): Promise<Restart> {
  const { bed, operator } = context;
  const names = Array.from({ length: probes }, (_, index) => `idle-${String(index * 100).padStart(5, "0")}-probe`);
  for (const name of names) {
    await copy(context, { ...template, kept: [] }, name);
    // With a missing source, the operator writes a status and creates no pod.
    await bed.patch(name, { spec: { programRef: { name: "nowhere" } } });
  }
  await bed.watch.until(() => names.every((name) => bed.watch.stack(name)?.metadata.generation === 2), {
    timeoutMs,
    what: "the copies to appear",
  });
  const before = new Map(names.map((name) => [name, bed.watch.stack(name)?.status]));
  const isReconciled = (name: string): boolean => !isDeepStrictEqual(bed.watch.stack(name)?.status, before.get(name));
  const requestsBefore = await bed.requests.total();
  const start = performance.now();
  await operator.scaleUp();
  const caughtUp = bed.watch.until(() => names.every(isReconciled), {
    timeoutMs,
    what: "the operator to reconcile the probes",
  });
  await operator.pod(bed.signal);
  const readyMs = performance.now() - start;
  const caughtUpMs = (await caughtUp).at - start;
  await inParallel(names, writers, (name) => deleteDirectly(context, name));
  return { readyMs, caughtUpMs, requestsBefore };
}

interface Cost {
  readonly residentMb: number;
  readonly anonymousMb: number;
  /** Millicores. */
  readonly cpuMillis: number;
  readonly requestsAnHour: number;
  /** From its start until it was idle. */
  readonly startCpuMs: number;
  readonly startRequests: number;
}

async function measure({ bed, operator, sizes }: Context, requestsBefore = 0): Promise<Cost> {
  await Bun.sleep(sizes.settleMs);
  const first = await bed.usage(operator);
  await Bun.sleep(sizes.windowMs);
  const second = await bed.usage(operator);
  const ms = second.at - first.at;
  return {
    residentMb: second.residentMb,
    anonymousMb: second.anonymousMb,
    cpuMillis: ((second.cpuMs - first.cpuMs) / ms) * 1000,
    requestsAnHour: ((second.requests - first.requests) / ms) * 3_600_000,
    startCpuMs: first.cpuMs,
    startRequests: first.requests - requestsBefore,
  };
}

interface Found {
  readonly count: number;
  readonly restarts: readonly Restart[];
  readonly cost: Cost;
  readonly sizes: Context["sizes"];
}

function idleFigures({ count, restarts, cost, sizes }: Found): Figure[] {
  const id = `idle.${count}`;
  const title = (what: string): string => `${count} idle Stacks: ${what}`;
  const note = `over ${sizes.windowMs / 1000} s`;
  return [
    ...figure(
      { id: `${id}.ready`, title: title("operator started → ready"), unit: "ms" },
      restarts.map(({ readyMs }) => readyMs),
    ),
    ...figure(
      { id: `${id}.caught-up`, title: title("operator started → caught up"), unit: "ms" },
      restarts.map(({ caughtUpMs }) => caughtUpMs),
    ),
    ...figure({ id: `${id}.start-cpu`, title: title("CPU time to catch up"), unit: "ms" }, [cost.startCpuMs]),
    ...figure({ id: `${id}.start-requests`, title: title("API requests to catch up"), unit: "count" }, [
      cost.startRequests,
    ]),
    ...figure({ id: `${id}.resident`, title: title("operator resident"), unit: "MB" }, [cost.residentMb]),
    ...figure({ id: `${id}.anonymous`, title: title("of that anonymous"), unit: "MB" }, [cost.anonymousMb]),
    ...figure({ id: `${id}.cpu`, title: title("operator CPU"), unit: "m", note }, [cost.cpuMillis]),
    ...figure({ id: `${id}.requests`, title: title("API requests"), unit: "/h", note }, [cost.requestsAnHour]),
  ];
}

function memoryCurve(points: readonly Point[]): Curve {
  return { id: "memory", title: "Operator: resident memory", x: "idle Stacks", y: "MB", points };
}
