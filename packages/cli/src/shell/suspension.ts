/** Suspends a Stack while a shell is open, and restores what was there, unless somebody has decided otherwise meanwhile. */
import { openShellAnnotation, shellAnnotation, type Stack } from "@pko/api";
import { isConflict, timestamp } from "@pko/kube";

import { findNamed, type Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { stacks } from "../kinds.ts";

/** Of its own, so that the API server records whether somebody else has set `spec.suspend` since. */
const fieldManager = "kubectl-pulumi-shell";

export interface Suspension {
  readonly stack: string;
  /** The value of the annotation that marks this shell as open. */
  readonly mark: string;
  /** `spec.suspend` before the shell. */
  readonly before: boolean | undefined;
}

/** Only one shell can be open: the second one would not know what to restore. */
export function assertNoOpenShell({ metadata }: Pick<Stack, "metadata">): void {
  const { name = "", namespace = "", annotations = {} } = metadata;
  const open = annotations[openShellAnnotation];
  if (open === undefined) return;
  const [time = "", ...user] = open.split(" ");
  throw new CliError(`A shell of Stack ${name} is open already: ${user.join(" ")} opened it at ${time}.`, {
    fix: `Wait until it is closed. If its command was killed, resume the Stack, and try again: kubectl pulumi resume ${name} -n ${namespace}`,
  });
}

export async function suspendStack(context: Context, name: string, user: string): Promise<Suspension> {
  const mark = `${timestamp(context.io.now())} ${user}`;
  const annotations = { [shellAnnotation]: mark, [openShellAnnotation]: mark };
  let before: boolean | undefined;
  await changeStack(context, name, (stack) => {
    // The response to our own patch was lost.
    if (stack.metadata.annotations?.[openShellAnnotation] === mark) return undefined;
    assertNoOpenShell(stack);
    before = stack.spec.suspend;
    return { metadata: { annotations }, spec: { suspend: true } };
  });
  return { stack: name, mark, before };
}

/** Whether the Stack is suspended afterwards. */
export async function restoreStack(context: Context, suspension: Suspension): Promise<boolean> {
  const { stack: name, mark, before } = suspension;
  let isResumed = false;
  const last = await changeStack(context, name, (stack) => {
    // Somebody has resumed the Stack, and maybe another shell is open.
    if (stack.metadata.annotations?.[openShellAnnotation] !== mark) return undefined;
    isResumed = !before && stack.spec.suspend === true && isOnlyOurs(stack);
    const metadata = { annotations: { [openShellAnnotation]: null } };
    return { metadata, ...(isResumed && { spec: { suspend: before ?? null } }) };
  });
  return !isResumed && last.spec.suspend === true;
}

function isOnlyOurs({ metadata }: Stack): boolean {
  const managers = (metadata.managedFields ?? []).filter(({ fieldsV1 }) => hasSuspend(fieldsV1));
  return managers.every(({ manager }) => manager === fieldManager);
}

const hasSuspend = (fields: unknown): boolean =>
  "f:suspend" in ((fields as Readonly<Record<string, object>> | undefined)?.["f:spec"] ?? {});

type Change = { readonly metadata: object; readonly spec?: object };

/** Based on the Stack as it is: if it changes in between, `change` is called again. Returns the Stack before the change. */
async function changeStack(
  context: Context,
  name: string,
  change: (stack: Stack) => Change | undefined,
): Promise<Stack> {
  const { client, namespace } = context;
  for (;;) {
    const stack = await findNamed(context, stacks, name);
    const changed = change(stack);
    if (!changed) return stack;
    const { resourceVersion } = stack.metadata;
    const body = { ...changed, metadata: { ...changed.metadata, resourceVersion } };
    try {
      await client.patch(stacks, { namespace, name }, { patch: { type: "merge", body }, fieldManager });
      return stack;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}
