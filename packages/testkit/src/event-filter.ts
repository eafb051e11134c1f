/** Drops and delays watch events in transit. */
import type { KubeObject } from "@pko/kube";

import type { RequestInfo } from "./request-info.ts";

interface ProxiedEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

/** Later events of the same watch wait for the result too. */
export type EventRule = (event: ProxiedEvent, request: RequestInfo) => Verdict | Promise<Verdict>;
type Verdict = "pass" | "drop";

/** The stream without the events that are not allowed. */
export function filterEvents(
  body: ReadableStream<Uint8Array>,
  allows: (event: ProxiedEvent) => Promise<boolean>,
): ReadableStream<Uint8Array> {
  let open = "";
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const filter = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      const lines = (open + decoder.decode(chunk, { stream: true })).split("\n");
      open = lines.pop() ?? "";
      for (const line of lines) {
        if (await allows(JSON.parse(line) as ProxiedEvent)) controller.enqueue(encoder.encode(`${line}\n`));
      }
    },
  });
  return body.pipeThrough(filter);
}
