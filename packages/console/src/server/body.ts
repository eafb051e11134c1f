/** The body of a request, limited in size and time. */
import type { Clock } from "@pko/kube";

import { limits } from "../shared/contract.ts";
import { messages } from "./messages.ts";
import type { Refusal } from "./origin.ts";

const bodyMs = 10_000;

export const isRefusal = (value: string | Refusal): value is Refusal => typeof value !== "string";

/** `types` are the accepted content types. */
export async function readBody(request: Request, types: readonly string[], clock: Clock): Promise<string | Refusal> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (!types.includes(type)) return { status: 415, message: messages.notJson };
  const reader = request.body?.getReader();
  if (!reader) return "";
  const late = Promise.withResolvers<"late">();
  const cancel = clock.after(bodyMs, () => late.resolve("late"));
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const next = await Promise.race([reader.read(), late.promise]);
      if (next === "late") {
        void reader.cancel();
        return { status: 408, message: messages.bodyTooSlow };
      }
      if (next.done) return new TextDecoder().decode(Buffer.concat(chunks));
      size += next.value.byteLength;
      if (size > limits.bodyBytes) return { status: 413, message: messages.bodyTooLarge };
      chunks.push(next.value);
    }
  } finally {
    cancel();
  }
}
