/**
 * The Program controller. A Program's files travel to workspaces with the operator's own requests, so all there is to
 * say of one is which generation has been seen.
 *
 * An archive that another operator made is kept in status as long as it is of the present generation: Stacks that ran it
 * under its digest are recognised by it.
 */
import { isDeepStrictEqual } from "node:util";

import { fieldManagers, type Program, type ProgramStatus } from "@pko/api";
import {
  controller,
  done,
  isNotFound,
  metricsRegistry,
  silentLogger,
  type Client,
  type Clock,
  type Controller,
  type Logger,
  type Reflector,
  type Registry,
} from "@pko/kube";

import { programs } from "../kinds.ts";

interface ProgramControllerOptions {
  /** A fenced one. */
  readonly client: Client;
  readonly reflector: Reflector<Program>;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function programController(options: ProgramControllerOptions): Controller {
  const { client, reflector, log = silentLogger, metrics = metricsRegistry(), clock } = options;
  const active = metrics.gauge({ name: "programs_active", help: "Programs that exist." });
  metrics.onCollect(() => active.set({}, reflector.store.size));
  return controller({
    name: "program-controller",
    reflector,
    concurrency: 2,
    log,
    metrics,
    ...(clock && { clock }),
    async reconcile(key, { signal }) {
      const program = reflector.store.get(key);
      if (!program || program.metadata.deletionTimestamp) return done;
      const status = programStatus(program);
      if (!isDeepStrictEqual(status, program.status)) await writeStatus(client, program, { status, signal });
      return done;
    },
  });
}

export function programStatus({ metadata, status }: Program): ProgramStatus {
  const generation = metadata.generation ?? 0;
  const { artifact } = status ?? {};
  const isPresent = artifact?.revision === String(generation);
  return { observedGeneration: generation, ...(artifact && isPresent && { artifact }) };
}

interface Write {
  readonly status: ProgramStatus;
  readonly signal: AbortSignal;
}

/** Whole: what another operator has left in it goes. */
async function writeStatus(client: Client, { metadata }: Program, { status, signal }: Write): Promise<void> {
  const body = [
    { op: "replace", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
    { op: "add", path: "/status", value: status },
  ];
  const ref = { namespace: metadata.namespace ?? "", name: metadata.name ?? "" };
  const fieldManager = fieldManagers.programStatus;
  try {
    await client.patch(programs, ref, { patch: { type: "json", body }, subresource: "status", fieldManager, signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
