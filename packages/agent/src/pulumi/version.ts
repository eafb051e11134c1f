/** CLI versions, and the minimum that each feature needs. */
import type { Operation } from "@pko/rpc";
import { parse, type SemVer } from "semver";
import { done, failed, type Outcome } from "../outcome.ts";

export interface Version {
  readonly text: string;
  readonly parsed: SemVer;
}

/** The first line that is a version: the CLI may print warnings before it. */
export function parseVersion(output: string): Version | undefined {
  for (const line of output.split("\n")) {
    const [text = ""] = line.trim().replace(/^v/, "").split(/\s/);
    const parsed = parse(text);
    if (parsed) return { text, parsed };
  }
  return undefined;
}

/** A pre-release counts as its release, because builds from source have pre-release versions. */
export function isAtLeast({ parsed }: Version, minimum: string): boolean {
  return parsed.compareMain(minimum) >= 0;
}

/** The oldest CLI that the operator supports; features may need a newer one. */
const minimumVersion = "3.105.0";

interface Requirement {
  readonly minimum: string;
  readonly feature: string;
  readonly applies: (operation: Operation) => boolean | undefined;
}

/** From the CLI's changelog and sources, the newest first: the first one that applies is the highest. */
const requirements: readonly Requirement[] = [
  {
    minimum: "3.169.0",
    feature: "runProgram before an update",
    applies: ({ kind, runProgram }) => runProgram && (kind === "up" || kind === "preview"),
  },
  { minimum: "3.160.0", feature: "runProgram", applies: ({ runProgram }) => runProgram },
  {
    minimum: "3.158.0",
    feature: "targetDependents for a refresh",
    applies: (operation) => operation.targetDependents && hasRefreshCommand(operation),
  },
  {
    minimum: "3.114.0",
    feature: "continueOnError for an update",
    applies: (operation) => operation.kind === "up" && operation.continueOnError,
  },
  {
    minimum: "3.112.0",
    feature: "continueOnError for a destroy",
    applies: (operation) => operation.kind === "destroy" && operation.continueOnError,
  },
  // The plan contains a digest of the configuration, which is read without opening its environments.
  { minimum: "3.107.0", feature: "a plan for an approval", applies: hasPlan },
];

/** Whether it runs `pulumi refresh`, which has other flags than `pulumi up --refresh`. */
function hasRefreshCommand(operation: Operation): boolean | undefined {
  return operation.kind === "refresh" || (operation.kind === "up" && operation.expectNoRefreshChanges);
}

function hasPlan(operation: Operation): boolean | undefined {
  const saves = "savePlan" in operation && operation.savePlan;
  return saves || ("applyPlan" in operation && operation.applyPlan !== undefined);
}

export function checkVersion(version: Version, operation?: Operation): Outcome<undefined> {
  const required = operation && requirements.find(({ applies }) => applies(operation));
  const { minimum, feature } = required ?? { minimum: minimumVersion, feature: "the operator" };
  if (isAtLeast(version, minimum)) return done(undefined);
  return failed("versionTooLow", tooLow(version, minimum, feature));
}

function tooLow(version: Version, minimum: string, feature: string): string {
  return (
    `the workspace's Pulumi CLI is ${version.text}, but ${feature} needs ${minimum} or later; ` +
    `set the workspace's image to pulumi/pulumi:${minimum}-nonroot or later (spec.workspaceTemplate.spec.image)`
  );
}
