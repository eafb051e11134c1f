/** Versions of the CLI, and which of them each feature needs. */
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

/** A build before a release counts as that release: it is what people who build the CLI themselves have. */
export function isAtLeast({ parsed }: Version, minimum: string): boolean {
  return parsed.compareMain(minimum) >= 0;
}

/** The oldest CLI that knows every flag a run is given; features may ask for more. */
const oldest = "3.105.0";

/** From the CLI's changelog. */
function minimumFor(operation: Operation): readonly [minimum: string, feature: string] {
  if (operation.runProgram) {
    if (operation.kind === "up" || operation.kind === "preview") return ["3.169.0", "runProgram before an update"];
    return ["3.160.0", `runProgram for ${operation.kind}`];
  }
  return [oldest, "the operator"];
}

export function checkVersion(version: Version, operation?: Operation): Outcome<undefined> {
  const [minimum, feature] = operation ? minimumFor(operation) : [oldest, "the operator"];
  if (isAtLeast(version, minimum)) return done(undefined);
  return failed("versionTooLow", tooLow(version, minimum, feature));
}

/** Which version is needed, and how to get it. */
function tooLow(version: Version, minimum: string, feature: string): string {
  return (
    `the workspace's Pulumi CLI is ${version.text}; ${feature} needs ${minimum} or later: ` +
    `set the workspace's image to pulumi/pulumi:${minimum}-nonroot or a later one (spec.workspaceTemplate.spec.image)`
  );
}
