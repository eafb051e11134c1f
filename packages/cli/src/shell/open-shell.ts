/** Break glass: suspend, wake the pod, open a shell, refresh, resume. Each step is reported, and undone at the end. */
import {
  labelsOfStack,
  parseDuration,
  podNameOf,
  pulumiContainer,
  updateKind,
  wakeUntilAnnotation,
  workspaceNameOf,
  type Stack,
  type Update,
  type Workspace,
} from "@pko/api";
import { builtin, isForbidden, isNotFound, timestamp, type ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { argument, textOption, type Input, type Report } from "../command.ts";
import { actionReport } from "../commands/action.ts";
import { userName } from "../commands/approve.ts";
import { updatesOf } from "../commands/history.ts";
import { assertNothingRuns } from "../commands/unlock.ts";
import { confirm } from "../confirm.ts";
import { findNamed, type Context } from "../context.ts";
import { CliError, exitCodes, usageError } from "../errors.ts";
import { events, stacks, updates, workspaces } from "../kinds.ts";
import { blank, heading, list, text, toned, type Block } from "../output/blocks.ts";
import { render } from "../output/render.ts";
import { conditionOf, decidingCondition } from "../stacks/summary.ts";
import { timeoutIn, waitForObject, waitForStack } from "../stacks/wait.ts";
import { assertNoOpenShell, restoreStack, suspendStack } from "./suspension.ts";
import { attachTerminal } from "./terminal.ts";

const longestMs = 8 * 3_600_000;
const defaultMs = 3_600_000;

/** What the user gave. */
interface Request {
  readonly name: string;
  readonly timeoutMs: number;
  readonly keepMs: number;
  readonly refreshes: boolean;
}

export async function openShell(context: Context, input: Input): Promise<Report> {
  const request = requestIn(input);
  const { io } = context;
  if (!io.isInteractive || !io.isTerminal)
    throw new CliError("A shell needs a terminal.", { exitCode: exitCodes.usage });
  const stack = await findNamed(context, stacks, request.name);
  await findNamed(context, workspaces, workspaceNameOf(request.name));
  assertNoOpenShell(stack);
  assertNothingRuns(stack, await updatesOf(context, request.name));
  show(context, warningBlocks(stack, request));
  await confirm(io, input, `Open a shell in the workspace of Stack ${request.name}?`);
  const user = await userName(context);
  const run = async (): Promise<number> => await runShell(context, request);
  const { exitCode, suspended } = await withSuspended(context, { stack, user, run });
  return actionReport(context, {
    action: "shell",
    name: request.name,
    message: closedText(request, suspended),
    details: { user, exitCode, refreshed: request.refreshes, suspended },
  });
}

export function requestIn(input: Input): Request {
  const given = textOption(input, "for");
  const keepMs = given === undefined ? defaultMs : parseDuration(given);
  if (keepMs === undefined || keepMs <= 0 || keepMs > longestMs) {
    throw usageError(
      `--for: "${given ?? ""}" is not a duration of at most 8h.`,
      "Use numbers with units, such as 30m.",
    );
  }
  return { name: argument(input), timeoutMs: timeoutIn(input), keepMs, refreshes: input.options["refresh"] !== false };
}

export function warningBlocks({ spec, metadata }: Stack, { refreshes }: Pick<Request, "refreshes">): Block[] {
  const end = refreshes ? "refreshes the state" : "does not refresh the state";
  const resumed = spec.suspend ? "leaves the Stack suspended, as it is now" : "resumes the Stack";
  return [
    heading(`Shell for Stack ${metadata.name ?? ""} (Pulumi stack ${spec.stack})`),
    list([
      "Suspends the Stack: no update runs while the shell is open.",
      "Records your name and the time in the Stack.",
      `At the end, ${end} and ${resumed}.`,
    ]),
    text(toned("warning", "What you do in the shell is neither reviewed nor approved, and changes real resources.")),
    blank,
  ];
}

const closedText = ({ name, refreshes }: Request, isSuspended: boolean): string =>
  `The shell is closed. ${refreshes ? "The state is refreshed. " : ""}Stack ${name} ${isSuspended ? "stays suspended" : "is resumed"}.`;

interface Opening {
  readonly stack: Stack;
  readonly user: string;
  readonly run: () => Promise<number>;
}

interface Closed {
  readonly exitCode: number;
  readonly suspended: boolean;
}

/** Whatever happens, the Stack is as suspended afterwards as it was before, unless somebody else has changed it. */
export async function withSuspended(context: Context, { stack, user, run }: Opening): Promise<Closed> {
  const name = stack.metadata.name ?? "";
  const suspension = await suspendStack(context, name, user);
  let [exitCode, suspended] = [0, true];
  try {
    const at = timestamp(context.io.now());
    await recordEvent(context, stack, {
      reason: "ShellOpened",
      message: `${user} opened a shell in the workspace`,
      at,
    });
    exitCode = await run();
  } finally {
    // First, because the user may not be allowed to patch the Workspace.
    suspended = await restoreStack(context, suspension);
    await wakeWorkspace(context, name, undefined);
  }
  return { exitCode, suspended };
}

interface Note {
  readonly reason: string;
  readonly message: string;
  readonly at: string;
}

/** The annotation is the record; an event is only easier to find. Many roles may not create events. */
async function recordEvent({ client, namespace, io }: Context, stack: Stack, note: Note): Promise<void> {
  const { apiVersion, kind, metadata } = stack;
  const { name = "", uid = "" } = metadata;
  const { reason, message, at } = note;
  try {
    await client.create(events, {
      apiVersion: "v1",
      kind: "Event",
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: { apiVersion, kind, namespace, name, uid },
      type: "Warning",
      reason,
      message,
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
      source: { component: "kubectl-pulumi" },
      reportingComponent: "kubectl-pulumi",
      reportingInstance: "",
    });
  } catch (error) {
    if (!isForbidden(error)) throw error;
    io.err("You do not have permission to create events: only the annotation of the Stack records the shell.\n");
  }
}

/** Without `until`, the Workspace may become idle again. Nothing is done for one that was deleted in the meantime. */
async function wakeWorkspace({ client, namespace }: Context, stack: string, until: number | undefined): Promise<void> {
  const value = until === undefined ? null : timestamp(until);
  const body = { metadata: { annotations: { [wakeUntilAnnotation]: value } } };
  try {
    await client.patch(workspaces, { namespace, name: workspaceNameOf(stack) }, { patch: { type: "merge", body } });
  } catch (error) {
    if (until !== undefined || !isNotFound(error)) throw error;
  }
}

async function runShell(context: Context, request: Request): Promise<number> {
  const { io, namespace, credentials } = context;
  const { name, timeoutMs } = request;
  await waitForStack(context, { name, timeoutMs, what: "the Stack to be suspended", isDone: isSuspended });
  await wakeWorkspace(context, name, io.now() + request.keepMs);
  io.err("Waiting for the workspace pod.\n");
  const pod = await readyPod(context, request);
  const ref = { namespace, name: pod };
  // Not every image has bash.
  const command = ["sh", "-c", "if command -v bash >/dev/null; then exec bash; else exec sh; fi"];
  const shell = { credentials, ref, container: pulumiContainer, command, signal: io.signal };
  const attach = async (opened: () => void): Promise<number> => await attachTerminal({ ...shell, opened });
  return request.refreshes
    ? await thenRefresh(attach, async () => await refresh(context, request))
    : await attach(() => undefined);
}

/** Once the shell was open, the state may have changed, also if the connection breaks or the command is interrupted. */
export async function thenRefresh(
  attach: (opened: () => void) => Promise<number>,
  requestRefresh: () => Promise<void>,
): Promise<number> {
  let isOpened = false;
  try {
    return await attach(() => (isOpened = true));
  } finally {
    if (isOpened) await requestRefresh();
  }
}

export const isSuspended = (stack: Stack): boolean =>
  (stack.status?.observedGeneration ?? 0) >= (stack.metadata.generation ?? 0) &&
  decidingCondition(stack)?.reason === "Suspended";

/** Reasons of a workspace that cannot be prepared: a shell may be what is needed to find out why. */
const failures: ReadonlySet<string> = new Set([
  "InstallationFailed",
  "InitializationFailed",
  "IncompatibleConfiguration",
]);

export function isPreparedOrFailed({ status, metadata }: Workspace): boolean {
  const ready = conditionOf({ ...(status && { status }) }, "Ready");
  if (status?.observedGeneration !== metadata.generation) return false;
  return ready?.status === "True" ? status?.address !== undefined : failures.has(ready?.reason ?? "");
}

async function readyPod(context: Context, { name, timeoutMs }: Request): Promise<string> {
  const workspace = workspaceNameOf(name);
  const about = { stack: name, timeoutMs, what: "the workspace pod" };
  const woken = await waitForObject(context, workspaces, { ...about, name: workspace, isDone: isPreparedOrFailed });
  const pod = podNameOf(workspace);
  await waitForObject(context, builtin.pods, { ...about, name: pod, isDone: isRunning });
  const ready = conditionOf(woken, "Ready");
  if (ready?.status !== "True") context.io.err(`The workspace is not prepared: ${ready?.message ?? ""}\n`);
  return pod;
}

const isRunning = ({ metadata, status }: ApiObject<Pod>): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.containerStatuses ?? []).some((each) => each.name === pulumiContainer && each.state?.running !== undefined);

/** With the label of the Stack, so that history lists it, and nothing else runs at the same time. */
export function refreshUpdate({ metadata, spec }: Stack): Update {
  const { name = "", namespace = "" } = metadata;
  const { apiVersion, kind } = updateKind;
  return {
    apiVersion,
    kind,
    metadata: { generateName: `${name}-shell-`, namespace, labels: labelsOfStack(name) },
    spec: {
      workspaceName: workspaceNameOf(name),
      stackName: spec.stack,
      type: "refresh",
      message: `Stack ${namespace}/${name}: a refresh after a shell`,
      ttlAfterCompleted: "24h",
    },
  };
}

/** An Update of its own, while the Stack is still suspended. If the command is interrupted, it does not wait for it. */
async function refresh(context: Context, { name, timeoutMs }: Request): Promise<void> {
  const { client, namespace, io } = context;
  const created = await client.create(updates, refreshUpdate(await findNamed(context, stacks, name)));
  const update = created.metadata.name ?? "";
  io.err(`Refreshing the state (Update ${update}).\n`);
  const isDone = ({ status }: Update): boolean =>
    conditionOf({ ...(status && { status }) }, "Complete")?.status === "True";
  const done = await waitForObject(context, updates, {
    stack: name,
    name: update,
    timeoutMs,
    what: "the refresh",
    isDone,
  });
  if (conditionOf(done, "Failed")?.status === "True") {
    throw new CliError(`The refresh after the shell failed: ${done.status?.message ?? ""}`, {
      fix: `Stack ${name} is as suspended as it was before. To see more: kubectl pulumi show ${update} -n ${namespace}`,
    });
  }
}

function show({ io }: Context, blocks: readonly Block[]): void {
  io.err(render(blocks, { width: io.width, color: io.color }));
}
