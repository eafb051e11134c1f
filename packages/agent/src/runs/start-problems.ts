/** What prevents the start of a run's commands: a version of the CLI that is too low, or a failed sign-in. */
import type { Operation, RunError } from "@pko/rpc";
import { cleanFailure } from "../outcome.ts";
import type { PulumiCli } from "../pulumi/cli.ts";
import { checkVersion } from "../pulumi/version.ts";

export async function versionProblem(cli: PulumiCli, operation: Operation): Promise<RunError | undefined> {
  const version = await cli.version();
  const usable = version.ok ? checkVersion(version.value, operation) : version;
  if (usable.ok) return undefined;
  const { reason, message, lines } = cleanFailure(usable.failure, cli.redactor);
  return { class: reason === "versionTooLow" ? "versionTooLow" : "other", message, lines };
}

export async function signInProblem(cli: PulumiCli, backend: string | undefined): Promise<RunError | undefined> {
  const signedIn = await cli.signIn({ backend, purpose: "run" });
  if (signedIn.ok) return undefined;
  const { reason, message, lines } = cleanFailure(signedIn.failure, cli.redactor);
  return { class: reason === "invalidToken" ? "invalidToken" : "other", message, lines };
}
