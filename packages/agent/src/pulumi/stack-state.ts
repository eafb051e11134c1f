/**
 * What the state of a stack says after a run: its resources, and operations that were interrupted, because Pulumi does not
 * know their results. An up or a refresh removes all of them except creates, which stay until a user clears them.
 */
import { readFile, rm, stat } from "node:fs/promises";
import { maxIdChars, maxUrnChars, providerUrn, type RecordedResource } from "@pko/records";
import { checkValue, type PendingOperation } from "@pko/rpc";
import { Type, type Static } from "typebox";
import { truncate, type Clean } from "../system/clean-text.ts";
import type { PulumiCli } from "./cli.ts";
import type { Cleaner } from "./engine-events.ts";

interface StateQuery {
  readonly cli: PulumiCli;
  readonly stack: string;
  readonly folder: string;
  /** For the exported state, which is too large for a pipe. It is deleted again. */
  readonly file: string;
}

/** As many as a result may have. */
const maxOperations = 100;
/** A larger state would need too much memory. */
const maxStateBytes = 64 * 1024 * 1024;
const exportTimeoutMs = 60_000;

const text = Type.Optional(Type.String());

const Resource = Type.Object({
  urn: Type.String(),
  id: text,
  parent: text,
  /** Its URN and its ID. */
  provider: text,
  dependencies: Type.Optional(Type.Array(Type.String())),
  /** True for a resource that has been replaced and will be deleted. */
  delete: Type.Optional(Type.Boolean()),
});
type Resource = Static<typeof Resource>;

const State = Type.Object({
  deployment: Type.Object({
    resources: Type.Optional(Type.Array(Resource)),
    pending_operations: Type.Optional(
      Type.Array(Type.Object({ type: Type.String(), resource: Type.Object({ urn: Type.String() }) })),
    ),
  }),
});

export interface StackState {
  readonly pending: PendingOperation[];
  /** Without their properties. */
  readonly resources: RecordedResource[];
}

/** Undefined if the state cannot be read. */
export async function readStackState(query: StateQuery): Promise<StackState | undefined> {
  const { cli, stack, folder, file } = query;
  try {
    const args = ["stack", "export", `--stack=${stack}`, `--file=${file}`];
    const end = await cli.run({ args, cwd: folder, timeoutMs: exportTimeoutMs });
    if (end.kind !== "exited" || end.code !== 0 || (await stat(file)).size > maxStateBytes) return undefined;
    return parseState(await readFile(file, "utf8"), (text) => cli.redactor.clean(text));
  } finally {
    await rm(file, { force: true });
  }
}

export function parseState(state: string, clean: Cleaner): StackState | undefined {
  const parsed = checkValue(State, JSON.parse(state));
  if (!parsed.ok) return undefined;
  const { pending_operations: pending = [], resources = [] } = parsed.value.deployment;
  const shown = onceEach((urn: string) => truncate(clean(urn), maxUrnChars));
  return {
    pending: pending.slice(0, maxOperations).map(({ type, resource }) => ({
      urn: shown(resource.urn),
      operation: truncate(clean(type), 64),
    })),
    resources: resources.filter((resource) => !resource.delete).map((resource) => recorded(resource, shown, clean)),
  };
}

/** Most URNs occur often in a state, and masking takes time. */
function onceEach(convert: Cleaner): Cleaner {
  const known = new Map<string, Clean>();
  return (from) => {
    const converted = known.get(from) ?? convert(from);
    known.set(from, converted);
    return converted;
  };
}

function recorded(resource: Resource, shown: Cleaner, clean: Cleaner): RecordedResource {
  const { urn, id = "", parent = "", provider = "", dependencies = [] } = resource;
  return {
    urn: shown(urn),
    ...(parent !== "" && { parent: shown(parent) }),
    ...(provider !== "" && { provider: shown(providerUrn(provider)) }),
    ...(id !== "" && { id: truncate(clean(id), maxIdChars) }),
    dependencies: dependencies.map(shown),
  };
}

/** Whether a diagnostic is the CLI's warning about pending operations, which it prints unless it refreshes. */
export function warnsOfPendingOperations(message: string): boolean {
  return /^Attempting to deploy or update resources with \d+ pending operations/.test(message);
}
