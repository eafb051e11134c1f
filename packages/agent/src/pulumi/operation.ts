/**
 * Translates an operation to CLI commands. Most need one; a refresh that must find no changes precedes its update, and a
 * preview that must match the plan precedes a planned destroy.
 */
import type { Operation } from "@pko/rpc";
import { globalFlags } from "./cli.ts";

/** From 11 on the CLI logs request headers, including its access token. */
const maxVerbosity = 10;
/** From here on the CLI and providers log credentials that the agent does not know and cannot mask. */
const minUnsafeVerbosity = 9;

/** Whether the CLI's log may be written to the pod's log. */
export function isLogShown({ logLevel = 0 }: Operation): boolean {
  return logLevel < minUnsafeVerbosity;
}

/** Whether the stack may no longer exist afterwards. */
export function isStackRemoved(operation: Operation): boolean {
  return operation.kind === "destroy" && (operation.remove ?? false);
}

interface RunTarget {
  readonly stack: string;
  readonly settings: string;
  readonly eventLog: string;
  /** The file of a plan that the CLI writes or applies. */
  readonly planFile: string;
  /** Folders of policy packs that every preview and update must satisfy. */
  readonly policyPacks?: readonly string[];
}

/**
 * What a command does: it previews changes; it makes them; it checks what the next command would change; or, with a plan,
 * it checks first and then makes the changes.
 */
export type StepKind = "preview" | "change" | "check" | "planned";

export interface RunStep {
  readonly name: string;
  readonly kind: StepKind;
  readonly args: readonly string[];
}

/** Whether the operation changes neither resources nor state. It takes no lock. */
export function isPreview(operation: Operation): boolean {
  return operation.kind === "preview" || ("previewOnly" in operation && (operation.previewOnly ?? false));
}

/** Whether the operation compares the resources with the state. Differences are its result, not a failure. */
export const isDriftCheck = (operation: Operation): boolean => operation.kind === "refresh" && isPreview(operation);

/** The options of one kind of operation. */
type Of<K extends Operation["kind"]> = Extract<Operation, { kind: K }>;

export function commandsFor(operation: Operation, target: RunTarget): readonly RunStep[] {
  switch (operation.kind) {
    case "preview":
      return previewCommands(operation, target);
    case "up":
      return upCommands(operation, target);
    case "refresh":
      return refreshCommands(operation, target);
    case "destroy":
      return destroyCommands(operation, target);
  }
}

function previewCommands(operation: Of<"preview">, target: RunTarget): RunStep[] {
  const savePlan = operation.savePlan ? [`--save-plan=${target.planFile}`] : [];
  const flags = [
    ...commonFlags(operation, target),
    ...policyFlags(target),
    ...changeFlags(operation),
    ...refreshFlag(operation),
  ];
  return [step("preview", [...flags, ...savePlan], "preview")];
}

function upCommands(operation: Of<"up">, target: RunTarget): RunStep[] {
  // The preview of an update with a plan is the check that the plan still matches.
  const check = operation.applyPlan ? [`--plan=${target.planFile}`] : ["--skip-preview"];
  const flags = [
    ...commonFlags(operation, target),
    ...policyFlags(target),
    ...changeFlags(operation),
    ...continueFlag(operation),
  ];
  const up = ["--yes", ...check, ...flags];
  const kind = operation.applyPlan ? "planned" : "change";
  if (!operation.expectNoRefreshChanges) return [step("up", [...up, ...refreshFlag(operation)], kind)];
  // A plan that was made with a refresh is applied with one, or it would skip what the refresh found.
  const again = operation.applyPlan ? refreshFlag(operation) : [];
  return [expectedRefresh(operation, target), step("up", [...up, ...again], kind)];
}

/** Precedes an update that must not start if the refresh finds changes. */
function expectedRefresh(operation: Of<"up">, target: RunTarget): RunStep {
  return step("refresh", ["--yes", "--skip-preview", ...commonFlags(operation, target), "--expect-no-changes"]);
}

function refreshCommands(operation: Of<"refresh">, target: RunTarget): RunStep[] {
  const flags = commonFlags(operation, target);
  // The exit code shows drift, even if the event of a resource was too large to be read.
  if (isDriftCheck(operation)) {
    return [step("refresh", ["--preview-only", ...flags, "--expect-no-changes"], "preview")];
  }
  const expect = operation.expectNoChanges ? ["--expect-no-changes"] : [];
  const clear = operation.clearPendingCreates ? ["--clear-pending-creates"] : [];
  return [step("refresh", ["--yes", "--skip-preview", ...flags, ...expect, ...clear])];
}

function destroyCommands(operation: Of<"destroy">, target: RunTarget): RunStep[] {
  const flags = [...commonFlags(operation, target), ...refreshFlag(operation)];
  const preview = ["--preview-only", ...flags];
  if (operation.previewOnly) return [step("destroy", preview, "preview")];
  const remove = operation.remove ? ["--remove"] : [];
  const destroy = step("destroy", ["--yes", "--skip-preview", ...flags, ...continueFlag(operation), ...remove]);
  return operation.applyPlan ? [step("destroy", preview, "check"), destroy] : [destroy];
}

function step(command: string, args: readonly string[], kind: StepKind = "change"): RunStep {
  const name = kind === "check" ? "preview" : command;
  return { name, kind, args: [...globalFlags, command, ...args] };
}

function commonFlags(operation: Operation, target: RunTarget): string[] {
  return [
    `--stack=${target.stack}`,
    `--config-file=${target.settings}`,
    `--event-log=${target.eventLog}`,
    "--suppress-progress",
    "--exec-agent=pulumi-kubernetes-operator",
    ...(operation.message === undefined ? [] : [`--message=${operation.message}`]),
    ...(operation.parallel === undefined ? [] : [`--parallel=${operation.parallel}`]),
    ...(operation.targets ?? []).map((urn) => `--target=${urn}`),
    ...(operation.targetDependents ? ["--target-dependents"] : []),
    ...(operation.runProgram ? ["--run-program"] : []),
    ...(operation.logLevel ? ["--logtostderr", `--verbose=${Math.min(operation.logLevel, maxVerbosity)}`] : []),
  ];
}

/** Neither a refresh nor a destroy accepts them: they change nothing that a policy could reject. */
const policyFlags = ({ policyPacks = [] }: RunTarget): string[] =>
  policyPacks.map((folder) => `--policy-pack=${folder}`);

function refreshFlag({ refresh }: Of<"preview" | "up" | "destroy">): string[] {
  return refresh ? ["--refresh"] : [];
}

function continueFlag({ continueOnError }: Of<"up" | "destroy">): string[] {
  return continueOnError ? ["--continue-on-error"] : [];
}

function changeFlags(operation: Of<"preview" | "up">): string[] {
  return [
    ...(operation.replace ?? []).map((urn) => `--replace=${urn}`),
    ...(operation.expectNoChanges ? ["--expect-no-changes"] : []),
  ];
}
