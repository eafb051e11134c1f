/** The parts of built-in kinds that are calls of their own: tokens of service accounts, logs of pods. */
import type { LogOptions, TokenRequest } from "./client.ts";
import { DeadlineError } from "./deadline.ts";
import { objectAt, parseJson, textAt } from "./json.ts";
import { objectPath } from "./paths.ts";
import { describe, explain, open, send, type Call, type OpenStream, type RequestSettings } from "./request.ts";
import type { ObjectRef } from "../resource.ts";

const core = { apiVersion: "v1", namespaced: true } as const;

export async function createToken(
  settings: RequestSettings,
  serviceAccount: ObjectRef,
  request: TokenRequest,
): Promise<{ token: string; expiresAt: Date }> {
  const { audiences, expirationSeconds } = request;
  const call: Call = {
    method: "POST",
    path: objectPath({ ...core, plural: "serviceaccounts" }, serviceAccount, "token"),
    body: {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { audiences, expirationSeconds },
    },
    // A token that nobody got expires like any other.
    repeatable: true,
    options: request,
  };
  const status = objectAt(parseJson(await send(settings, call)), "status");
  const token = textAt(status, "token");
  if (token === undefined) throw new Error(`${describe(call)}: the answer holds no token`);
  return { token, expiresAt: new Date(textAt(status, "expirationTimestamp") ?? "") };
}

export async function podLogs(
  settings: RequestSettings,
  pod: ObjectRef,
  options: LogOptions = {},
): Promise<ReadableStream<Uint8Array>> {
  const { container, follow = false, tailLines, limitBytes, previous } = options;
  const call: Call = {
    method: "GET",
    path: objectPath({ ...core, plural: "pods" }, pod, "log"),
    query: { container, follow, tailLines, limitBytes, previous },
    repeatable: true,
    options,
  };
  const stream = await open(settings, call);
  const ms = options.timeoutMs ?? settings.timeoutMs;
  const stopClock = follow ? undefined : settings.clock.after(ms, () => stream.close(new DeadlineError(ms)));
  return selfClosing(call, {
    body: stream.body,
    close() {
      stopClock?.();
      stream.close();
    },
  });
}

/** Readers of a plain stream read to its end or cancel it; either closes the connection. */
function selfClosing(call: Call, stream: OpenStream): ReadableStream<Uint8Array> {
  const reader = stream.body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        stream.close();
        controller.close();
      } catch (error) {
        stream.close();
        controller.error(explain(call, error));
      }
    },
    cancel: () => stream.close(),
  });
}
