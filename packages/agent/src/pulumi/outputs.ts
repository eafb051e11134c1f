/** The stack's outputs: from the run's events if they are complete, otherwise from the CLI. */
import type { Output } from "@pko/rpc";
import { done, failed, type Outcome } from "../outcome.ts";
import type { PulumiCli } from "./cli.ts";
import { explainEnd } from "./explain.ts";
import { entry } from "./project/project.ts";
import { secretSignature, signatureKey, unknownValue } from "./signatures.ts";

const maskedSecret = "[secret]";

/** The outputs in a run's events. They contain no secrets, because the engine masks them. */
export interface EventOutputs {
  readonly outputs: readonly Output[];
  /** False if some values must be read from the CLI. */
  readonly complete: boolean;
}

export function outputsFromEvent(values: Readonly<Record<string, unknown>>, isPreview: boolean): EventOutputs {
  const outputs = Object.entries(values).map(([name, value]): Output => {
    const secret = contains(value, isSecret);
    const known = !secret && !contains(value, isUnknown) && !contains(value, isSigned);
    return known ? { name, secret, known, value } : { name, secret, known };
  });
  return { outputs, complete: isPreview || outputs.every(({ known }) => known) };
}

interface OutputsQuery {
  readonly cli: PulumiCli;
  readonly stack: string;
  readonly folder: string;
  /** Names of the secret outputs if the events had them; otherwise a second CLI command is needed. */
  readonly secretNames: ReadonlySet<string> | undefined;
  readonly signal: AbortSignal;
}

export async function queryOutputs(query: OutputsQuery): Promise<Outcome<readonly Output[]>> {
  const shown = await readOutputs(query, ["--show-secrets"]);
  if (!shown.ok) return shown;
  let secretNames = query.secretNames;
  if (!secretNames) {
    const masked = await readOutputs(query, []);
    if (!masked.ok) return masked;
    secretNames = new Set(
      Object.entries(masked.value).flatMap(([name, value]) => (contains(value, isMasked) ? [name] : [])),
    );
  }
  const names = secretNames;
  return done(
    Object.entries(shown.value).map(([name, value]) => ({ name, secret: names.has(name), known: true, value })),
  );
}

async function readOutputs(
  { cli, stack, folder, signal }: OutputsQuery,
  flags: readonly string[],
): Promise<Outcome<Record<string, unknown>>> {
  const args = ["stack", "output", "--json", ...flags, `--stack=${stack}`];
  const end = await cli.run({ args, cwd: folder, signal });
  if (end.kind !== "exited" || end.code !== 0) return explainEnd(end, "the outputs cannot be read", cli.redactor);
  try {
    const parsed: unknown = JSON.parse(end.stdout);
    if (typeof parsed === "object" && parsed !== null) return done({ ...parsed });
  } catch {
    // Reported below, without the text, which contains secrets.
  }
  return failed("other", "the outputs cannot be read: the CLI did not print JSON");
}

function contains(value: unknown, test: (value: unknown) => boolean): boolean {
  if (test(value)) return true;
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some((inner) => contains(inner, test));
}

function isSecret(value: unknown): boolean {
  return entry(value, signatureKey) === secretSignature || isMasked(value);
}

function isSigned(value: unknown): boolean {
  return entry(value, signatureKey) !== undefined;
}

function isMasked(value: unknown): boolean {
  return value === maskedSecret;
}

function isUnknown(value: unknown): boolean {
  return value === unknownValue;
}
