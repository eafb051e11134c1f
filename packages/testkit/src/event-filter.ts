/** Losing watch events on their way. */
import type { KubeObject } from "@pko/kube";

import type { RequestInfo } from "./request-info.ts";

export interface ProxiedEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

export type EventRule = (event: ProxiedEvent, request: RequestInfo) => "pass" | "drop";

/** The stream without the lines whose events are not allowed. */
export function filterEvents(
  body: ReadableStream<Uint8Array>,
  allows: (event: ProxiedEvent) => boolean,
): ReadableStream<Uint8Array> {
  let open = "";
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const filter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const lines = (open + decoder.decode(chunk, { stream: true })).split("\n");
      open = lines.pop() ?? "";
      const passed = lines.filter((line) => allows(JSON.parse(line) as ProxiedEvent));
      if (passed.length > 0) controller.enqueue(encoder.encode(passed.map((line) => `${line}\n`).join("")));
    },
  });
  return body.pipeThrough(filter);
}
