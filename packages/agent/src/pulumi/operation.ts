/** Translates an operation to CLI commands. Most need one; a refresh that must find no changes precedes its update. */
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
}

export interface RunStep {
  readonly name: string;
  readonly args: readonly string[];
}

/** Whether the operation changes neither resources nor state. It takes no lock. */
export function isPreview(operation: Operation): boolean {
  return operation.kind === "preview" || ("previewOnly" in operation && (operation.previewOnly ?? false));
}

/** Whether the operation compares the resources with the state. Differences are its result, not a failure. */
export const isDriftCheck = (operation: Operation): boolean => operation.kind === "refresh" && isPreview(operation);

export function commandsFor(operation: Operation, target: RunTarget): readonly RunStep[] {
  const flags = commonFlags(operation, target);
  const refresh = (wanted: boolean | undefined): string[] => (wanted ? ["--refresh"] : []);
  switch (operation.kind) {
    case "preview":
      return [step("preview", [...flags, ...changeFlags(operation), ...refresh(operation.refresh)])];
    case "up": {
      const up = ["--yes", "--skip-preview", ...flags, ...changeFlags(operation)];
      const keepGoing = operation.continueOnError ? ["--continue-on-error"] : [];
      if (operation.expectNoRefreshChanges) {
        const { replace: _, ...plain } = operation;
        const first = ["--yes", "--skip-preview", ...commonFlags(plain, target), "--expect-no-changes"];
        return [step("refresh", first), step("up", [...up, ...keepGoing])];
      }
      return [step("up", [...up, ...keepGoing, ...refresh(operation.refresh)])];
    }
    case "refresh": {
      // The exit code shows drift, also if the event of a resource was too large to be read.
      if (isDriftCheck(operation)) return [step("refresh", ["--preview-only", ...flags, "--expect-no-changes"])];
      const expect = operation.expectNoChanges ? ["--expect-no-changes"] : [];
      const clear = operation.clearPendingCreates ? ["--clear-pending-creates"] : [];
      return [step("refresh", ["--yes", "--skip-preview", ...flags, ...expect, ...clear])];
    }
    case "destroy": {
      const extra = [
        ...refresh(operation.refresh),
        ...(operation.continueOnError ? ["--continue-on-error"] : []),
        ...(operation.remove ? ["--remove"] : []),
      ];
      return [step("destroy", ["--yes", "--skip-preview", ...flags, ...extra])];
    }
  }
}

function step(name: string, args: readonly string[]): RunStep {
  return { name, args: [...globalFlags, name, ...args] };
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

function changeFlags(operation: Extract<Operation, { kind: "preview" | "up" }>): string[] {
  return [
    ...(operation.replace ?? []).map((urn) => `--replace=${urn}`),
    ...(operation.expectNoChanges ? ["--expect-no-changes"] : []),
  ];
}
