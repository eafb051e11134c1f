/**
 * Operations on resources that were interrupted: the state lists them, because Pulumi does not know their results. An up or a
 * refresh removes all of them except creates, which stay until a user clears them.
 */
import { readFile, rm, stat } from "node:fs/promises";
import { checkValue, type PendingOperation } from "@pko/rpc";
import { Type } from "typebox";
import { truncate, truncateName } from "../system/clean-text.ts";
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

const State = Type.Object({
  deployment: Type.Object({
    pending_operations: Type.Optional(
      Type.Array(Type.Object({ type: Type.String(), resource: Type.Object({ urn: Type.String() }) })),
    ),
  }),
});

/** The pending operations in the state; undefined if it cannot be read. */
export async function readPendingOperations(query: StateQuery): Promise<PendingOperation[] | undefined> {
  const { cli, stack, folder, file } = query;
  try {
    const args = ["stack", "export", `--stack=${stack}`, `--file=${file}`];
    const end = await cli.run({ args, cwd: folder, timeoutMs: exportTimeoutMs });
    if (end.kind !== "exited" || end.code !== 0 || (await stat(file)).size > maxStateBytes) return undefined;
    return operationsIn(await readFile(file, "utf8"), (text) => cli.redactor.clean(text));
  } finally {
    await rm(file, { force: true });
  }
}

export function operationsIn(state: string, clean: Cleaner): PendingOperation[] | undefined {
  const parsed = checkValue(State, JSON.parse(state));
  if (!parsed.ok) return undefined;
  const { pending_operations: pending = [] } = parsed.value.deployment;
  return pending.slice(0, maxOperations).map(({ type, resource }) => ({
    urn: truncate(clean(resource.urn), 4096),
    operation: truncateName(type, 64),
  }));
}

/** Whether a diagnostic is the CLI's warning about pending operations, which it prints unless it refreshes. */
export function warnsOfPendingOperations(message: string): boolean {
  return /^Attempting to deploy or update resources with \d+ pending operations/.test(message);
}
