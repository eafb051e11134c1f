/** The API server's clock: the `Date` header of a response that costs the server nothing. */
import type { CallOptions } from "../client.ts";
import { isForbidden } from "../errors.ts";
import { sendDated, type RequestSettings } from "./request.ts";

/** Every authenticated user may read it, because of a default ClusterRole of Kubernetes. */
const path = "/version";

export async function serverTime(settings: RequestSettings, options?: CallOptions): Promise<Date | undefined> {
  try {
    const { date } = await sendDated(settings, { method: "GET", path, repeatable: true, options });
    const time = Date.parse(date ?? "");
    return Number.isNaN(time) ? undefined : new Date(time);
  } catch (error) {
    // The default ClusterRole was removed.
    if (isForbidden(error)) return undefined;
    throw error;
  }
}
