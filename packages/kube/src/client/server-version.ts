/** The version of the API server. */
import type { CallOptions } from "./client.ts";
import { requestSettings } from "./connection/connection.ts";
import type { Credentials } from "./connection/credentials.ts";
import { parseJson, textAt } from "./requests/json.ts";
import { send } from "./requests/request.ts";

/** For example `v1.35.0`. */
export async function serverVersion(credentials: Credentials, options?: CallOptions): Promise<string> {
  const call = { method: "GET", path: "/version", repeatable: true, options } as const;
  return textAt(parseJson(await send(requestSettings(credentials), call)), "gitVersion") ?? "unknown";
}
