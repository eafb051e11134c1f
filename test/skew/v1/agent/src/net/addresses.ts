/** The safe addresses of a host, in the agent's own terms. */
import { resolveHost as resolve, type NetworkPolicy } from "../../../git/src/index.ts";
import { assertNever } from "../../../rpc/src/index.ts";
import { done, failed, type Outcome } from "../outcome.ts";

export async function resolveHost(host: string, policy: NetworkPolicy): Promise<Outcome<readonly string[]>> {
  const resolved = await resolve(host, policy);
  switch (resolved.kind) {
    case "resolved":
      return done(resolved.addresses);
    case "unknown":
      return failed("sourceUnavailable", resolved.message);
    case "forbidden":
      return failed("sourceInvalid", resolved.message);
    default:
      return assertNever(resolved);
  }
}
