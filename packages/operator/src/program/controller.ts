/**
 * The Program controller. A Program's files travel to workspaces with the operator's own requests, so its status only says
 * which generation was observed.
 *
 * An archive that another operator made is kept in status as long as it is of the present generation: Stacks that ran it
 * under its digest are recognised by it.
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
  /** A fenced one. */
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

/** Nothing else of what another operator has left in the status is kept. */
export function programStatus({ metadata, status }: Program): ProgramStatus {
  if (metadata.deletionTimestamp) return status ?? {};
  const generation = metadata.generation ?? 0;
  const { artifact } = status ?? {};
  const isPresent = artifact?.revision === String(generation);
  return { observedGeneration: generation, ...(artifact && isPresent && { artifact }) };
}
