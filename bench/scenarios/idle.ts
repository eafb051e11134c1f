/**
 * Stacks with nothing to do: what the operator costs with none, a few hundred, a thousand of them, and how soon it has caught
 * up after a restart. They are copies, status and all, of a Stack that the operator itself has brought to success, made
 * while it is away: it finds them up to date, as after an upgrade of its own.
 */
import { isDeepStrictEqual } from "node:util";

import { isNotFound, type KubeObject, type Resource } from "@pko/kube";

import { stacks, statefulSets, updates, workspaces, type Stack } from "../bed/kinds.ts";
import { inParallel } from "../bed/wait.ts";
import { figure, type Curve, type Figure, type Point } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

const writers = 16;
/** Changed while the operator is away, and spread among the others: when it has seen them all, it has caught up. */
const probes = 10;
const patienceMs = 300_000;
/** Some operators keep a pod for a while, some for ever. */
const podPatienceMs = 15 * 60_000;
/** For what the operator writes last of all. */
const restMs = 3000;

export const idle: Scenario = {
  name: "idle",
  title: "idle Stacks",
  async run(context) {
    const { bed, operator, sizes, say } = context;
    const template = await makeTemplate(context);
    await bed.requests.begin(operator);
    say("the operator as it is by now");
    const figures: Figure[] = [...(await usedSoFar(context))];
    const memory: Point[] = [];
    const present: string[] = [];
    for (const count of sizes.idle) {
      const restarts: Restart[] = [];
      for (let round = 0; round < sizes.restarts; round += 1) {
        say(`${count}: restart ${round + 1} of ${sizes.restarts}`);
        await operator.sendAway(bed.signal);
        await addCopies(context, { template, present, count });
        restarts.push(await restart(context, template));
      }
      say(`${count}: at rest`);
      const cost = await measure(context, restarts.at(-1)?.requestsBefore ?? 0);
      memory.push({ x: count, y: cost.residentMb });
      figures.push(...figuresOf({ count, restarts, cost, sizes }));
    }
    await operator.sendAway(bed.signal);
    await inParallel([...present, template.stack.metadata.name ?? ""], writers, (name) => removeUnseen(context, name));
    await operator.callBack();
    await operator.pod(bed.signal);
    return { figures, curves: [curveOf(memory)] };
  },
};

/** After whatever this run has asked of it: a process that has worked is larger than one that has just begun. */
async function usedSoFar({ bed, operator }: Context): Promise<Figure[]> {
  const pods = await operator.pods();
  const processes = await bed.processesOf(pods);
  const resident = processes.reduce((sum, { residentMb }) => sum + residentMb, 0);
  return figure({ id: "worked.resident", title: "operator resident after the scenarios above", unit: "MB" }, [
    resident,
  ]);
}

/** A Stack at rest, and all that the operator keeps for it. */
interface Template {
  readonly stack: Stack;
  /** Owners before what they own. */
  readonly kept: readonly KubeObject[];
}

/** With the policy under which an idle Stack keeps nothing but itself, unless the operator is to be seen with all it keeps. */
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
    timeoutMs: podPatienceMs,
    what: "the end of the template's pod",
  });
  await Bun.sleep(restMs);
  const stack = bed.watch.stack(name);
  if (!stack) throw new Error(`Stack ${name} is gone`);
  return { stack, kept: bed.watch.keptFor(stack) };
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

/** Names and owners are those of the copy; all the rest is as the operator wrote it. */
async function copy(context: Context, { stack, kept }: Template, name: string): Promise<void> {
  const renamed = new Map([[stack.metadata.name ?? "", name]]);
  for (const object of [stack, ...kept]) {
    const { metadata } = await write(context, rewritten(object, renamed));
    renamed.set(object.metadata.uid ?? "", metadata.uid ?? "");
  }
}

/** Pure. */
export function rewritten<T extends KubeObject>(object: T, replacements: ReadonlyMap<string, string>): T {
  const { apiVersion, kind, metadata, ...rest } = object;
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata;
  const kept = { name, namespace, labels, annotations, finalizers, ownerReferences };
  let text = JSON.stringify({ apiVersion, kind, metadata: kept, ...rest });
  for (const [from, to] of replacements) text = text.replaceAll(from, to);
  return JSON.parse(text) as T;
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

async function removeUnseen({ bed }: Context, name: string): Promise<void> {
  try {
    await bed.patch(name, { metadata: { finalizers: null } });
    await bed.client.delete(stacks, { namespace: bed.namespace, name });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

interface Restart {
  /** From the word to the Deployment. */
  readonly readyMs: number;
  readonly caughtUpMs: number;
  /** What the API server had counted until then. */
  readonly requestsBefore: number;
}

/** The operator is away. */
async function restart(context: Context, template: Template): Promise<Restart> {
  const { bed, operator } = context;
  const names = Array.from({ length: probes }, (_, index) => `idle-${String(index * 100).padStart(5, "0")}-probe`);
  for (const name of names) {
    await copy(context, { ...template, kept: [] }, name);
    // A source that is not there: the answer is a status, and no pod.
    await bed.patch(name, { spec: { programRef: { name: "nowhere" } } });
  }
  await bed.watch.until(() => names.every((name) => bed.watch.stack(name)?.metadata.generation === 2), {
    timeoutMs: patienceMs,
    what: "the copies",
  });
  const before = new Map(names.map((name) => [name, bed.watch.stack(name)?.status]));
  const isSeen = (name: string): boolean => !isDeepStrictEqual(bed.watch.stack(name)?.status, before.get(name));
  const requestsBefore = await bed.requests.total();
  const begin = performance.now();
  await operator.callBack();
  const caughtUp = bed.watch.until(() => names.every(isSeen), {
    timeoutMs: patienceMs,
    what: "the operator's answers",
  });
  await operator.pod(bed.signal);
  const readyMs = performance.now() - begin;
  const caughtUpMs = (await caughtUp).at - begin;
  await inParallel(names, writers, (name) => removeUnseen(context, name));
  return { readyMs, caughtUpMs, requestsBefore };
}

interface Cost {
  readonly residentMb: number;
  readonly anonymousMb: number;
  /** Of one core. */
  readonly cpuMillis: number;
  readonly requestsAnHour: number;
  /** From its start until it was at rest. */
  readonly startCpuMs: number;
  readonly startRequests: number;
}

async function measure({ bed, operator, sizes }: Context, requestsBefore: number): Promise<Cost> {
  await Bun.sleep(sizes.settleMs);
  const pods = await operator.pods();
  const look = async () => {
    const at = performance.now();
    const processes = await bed.processesOf(pods);
    const sum = (field: "residentMb" | "anonymousMb" | "cpuMs"): number =>
      processes.reduce((total, each) => total + each[field], 0);
    return { at, requests: await bed.requests.total(), sum };
  };
  const first = await look();
  await Bun.sleep(sizes.windowMs);
  const second = await look();
  const ms = second.at - first.at;
  return {
    residentMb: second.sum("residentMb"),
    anonymousMb: second.sum("anonymousMb"),
    cpuMillis: ((second.sum("cpuMs") - first.sum("cpuMs")) / ms) * 1000,
    requestsAnHour: ((second.requests - first.requests) / ms) * 3_600_000,
    startCpuMs: first.sum("cpuMs"),
    startRequests: first.requests - requestsBefore,
  };
}

interface Found {
  readonly count: number;
  readonly restarts: readonly Restart[];
  readonly cost: Cost;
  readonly sizes: Context["sizes"];
}

function figuresOf({ count, restarts, cost, sizes }: Found): Figure[] {
  const id = `idle.${count}`;
  const title = (what: string): string => `${count} idle Stacks: ${what}`;
  const note = `over ${sizes.windowMs / 1000} s`;
  return [
    ...figure(
      { id: `${id}.ready`, title: title("operator called → ready"), unit: "ms" },
      restarts.map(({ readyMs }) => readyMs),
    ),
    ...figure(
      { id: `${id}.caught-up`, title: title("operator called → caught up"), unit: "ms" },
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

function curveOf(points: readonly Point[]): Curve {
  return { id: "memory", title: "Operator: resident memory", x: "idle Stacks", y: "MB", points };
}
