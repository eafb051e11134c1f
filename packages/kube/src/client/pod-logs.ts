/** The log of a container, as text in the order in which it was written. */
import { builtin } from "./builtin.ts";
import type { CallOptions } from "./client.ts";
import { requestSettings } from "./connection/connection.ts";
import type { Credentials } from "./connection/credentials.ts";
import { objectPath } from "./requests/paths.ts";
import { explain, open, type Call } from "./requests/request.ts";
import type { ObjectRef } from "../resource.ts";

export interface PodLogOptions extends CallOptions {
  readonly container?: string;
  /** Continue with what the container writes, until it ends or the signal aborts. */
  readonly follow?: boolean;
  /** The log of the container before its last restart. */
  readonly previous?: boolean;
  /** Only what was written since then, in RFC 3339. */
  readonly sinceTime?: string;
  /** Only what was written in the last seconds. */
  readonly sinceSeconds?: number;
  /** Begin each line with the time at which it was written, in RFC 3339 with nanoseconds, and a space. */
  readonly timestamps?: boolean;
  readonly tailLines?: number;
}

export async function* podLogs(
  credentials: Credentials,
  ref: ObjectRef,
  options: PodLogOptions = {},
): AsyncGenerator<string> {
  const { container, follow, previous, sinceTime, sinceSeconds, timestamps, tailLines } = options;
  const call: Call = {
    method: "GET",
    path: objectPath(builtin.pods, ref, "log"),
    query: { container, follow, previous, sinceTime, sinceSeconds, timestamps, tailLines },
    accept: "*/*",
    repeatable: true,
    options,
  };
  const stream = await open(requestSettings(credentials), call);
  const decoder = new TextDecoder();
  try {
    for await (const chunk of stream.body) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    throw explain(call, error);
  } finally {
    stream.close();
  }
}
