/**
 * The Program controller. The operator sends the files of a Program to workspaces in its requests, so the status only reports
 * that it was observed.
 *
 * An artifact of the Go operator stays in the status as long as it belongs to the current generation: its digest identifies
 * the Program in the status of Stacks that have run it.
 */
import { fieldManagers, type Program, type ProgramStatus } from "@pko/api";
import {
  controller,
  metricsRegistry,
  reconciler,
  silentLogger,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type Logger,
  type Reflector,
  type Registry,
} from "@pko/kube";

import { programs } from "../kinds.ts";
import { conditionAt } from "../shared/objects/conditions.ts";

interface ProgramView {
  readonly program: Program;
  readonly now: number;
}

interface ProgramControllerOptions {
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
  readonly events: EventRecorder;
  readonly reflector: Reflector<Program>;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function programController(options: ProgramControllerOptions): Controller {
  const { client, events, reflector, log = silentLogger, metrics = metricsRegistry(), clock } = options;
  const active = metrics.gauge({ name: "programs_active", help: "Programs that exist." });
  metrics.onCollect(() => active.set({}, reflector.store.size));
  return controller({
    name: "program-controller",
    reflector,
    concurrency: 2,
    log,
    metrics,
    ...(clock && { clock }),
    reconcile: reconciler<Program, ProgramView, never, ProgramStatus, never>({
      resource: programs,
      client,
      events,
      fieldManager: fieldManagers.programStatus,
      observe(key, { now }) {
        const program = reflector.store.get(key);
        return program && { program, now };
      },
      objectIn: ({ program }) => program,
      plan: ({ program, now }) => ({ steps: [], outcome: programStatus(program, now) }),
      perform: () => Promise.resolve({ kind: "done" }),
      status: (_, { outcome }) => outcome,
    }),
  });
}

const observed = {
  type: "Ready",
  status: "True",
  reason: "Observed",
  message: "The program is ready for its Stacks.",
} as const;

/** Other fields that the Go operator has left in the status are removed. */
export function programStatus(program: Program, now: number): ProgramStatus {
  const { metadata, status } = program;
  if (metadata.deletionTimestamp) return status ?? {};
  const generation = metadata.generation ?? 0;
  const { artifact } = status ?? {};
  const isCurrent = artifact?.revision === String(generation);
  const conditions = [conditionAt(program, observed, now)];
  return { observedGeneration: generation, conditions, ...(artifact && isCurrent && { artifact }) };
}
