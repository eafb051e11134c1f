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

/** The oldest CLI that supports every flag of a run; features may need a newer one. */
const minimumVersion = "3.105.0";

/** From the CLI's changelog. */
function minimumFor(operation: Operation): readonly [minimum: string, feature: string] {
  if (operation.runProgram) {
    if (operation.kind === "up" || operation.kind === "preview") return ["3.169.0", "runProgram before an update"];
    return ["3.160.0", `runProgram for ${operation.kind}`];
  }
  return [minimumVersion, "the operator"];
}

export function checkVersion(version: Version, operation?: Operation): Outcome<undefined> {
  const [minimum, feature] = operation ? minimumFor(operation) : [minimumVersion, "the operator"];
  if (isAtLeast(version, minimum)) return done(undefined);
  return failed("versionTooLow", tooLow(version, minimum, feature));
}

function tooLow(version: Version, minimum: string, feature: string): string {
  return (
    `the workspace's Pulumi CLI is ${version.text}, but ${feature} needs ${minimum} or later; ` +
    `set the workspace's image to pulumi/pulumi:${minimum}-nonroot or later (spec.workspaceTemplate.spec.image)`
  );
}
