/** What time it is at the API server: the `Date` header of an answer that costs the server nothing. */
import type { CallOptions } from "./client.ts";
import { isForbidden } from "./errors.ts";
import { sendDated, type RequestSettings } from "./request.ts";

/** Every authenticated user may read it, by a role that Kubernetes itself brings. */
const path = "/version";

export async function serverTime(settings: RequestSettings, options?: CallOptions): Promise<Date | undefined> {
  try {
    const { date } = await sendDated(settings, { method: "GET", path, repeatable: true, options });
    const time = Date.parse(date ?? "");
    return Number.isNaN(time) ? undefined : new Date(time);
  } catch (error) {
    // Somebody has removed that role.
    if (isForbidden(error)) return undefined;
    throw error;
  }
}
