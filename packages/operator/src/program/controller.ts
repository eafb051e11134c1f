/**
 * The Program controller. The operator sends the files of a Program to workspaces in its requests, so the status only reports
 * the observed generation.
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
    reconcile: reconciler<Program, Program, never, ProgramStatus, never>({
      resource: programs,
      client,
      events,
      fieldManager: fieldManagers.programStatus,
      observe: (key) => reflector.store.get(key),
      objectIn: (program) => program,
      plan: (program) => ({ steps: [], outcome: programStatus(program) }),
      perform: () => Promise.resolve({ kind: "done" }),
      status: (_, { outcome }) => outcome,
    }),
  });
}

/** Other fields that the Go operator has left in the status are removed. */
export function programStatus({ metadata, status }: Program): ProgramStatus {
  if (metadata.deletionTimestamp) return status ?? {};
  const generation = metadata.generation ?? 0;
  const { artifact } = status ?? {};
  const isCurrent = artifact?.revision === String(generation);
  return { observedGeneration: generation, ...(artifact && isCurrent && { artifact }) };
}
