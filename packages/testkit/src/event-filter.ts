/** Losing and delaying watch events on their way. */
import type { KubeObject } from "@pko/kube";

import type { RequestInfo } from "./request-info.ts";

interface ProxiedEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

/** Whatever follows in the same watch waits for its answer, too. */
export type EventRule = (event: ProxiedEvent, request: RequestInfo) => Fate | Promise<Fate>;
type Fate = "pass" | "drop";

/** The stream without the lines whose events are not allowed. */
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
