/** Versions of the CLI, and which of them each feature needs. */
import type { Operation } from "../../../rpc/src/index.ts";
import { done, failed, type Outcome } from "../outcome.ts";

export interface Version {
  readonly text: string;
  readonly parts: readonly [number, number, number];
}

export function parseVersion(text: string): Version | undefined {
  const match = /^v?((\d+)\.(\d+)\.(\d+)\S*)/m.exec(text.trim());
  if (!match) return undefined;
  return { text: match[1] ?? "", parts: [Number(match[2]), Number(match[3]), Number(match[4])] };
}

export function isAtLeast(version: Version, minimum: string): boolean {
  const wanted = minimum.split(".").map(Number);
  for (const [index, part] of version.parts.entries()) {
    const other = wanted[index] ?? 0;
    if (part !== other) return part > other;
  }
  return true;
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
