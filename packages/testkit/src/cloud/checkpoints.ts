/** Checkpoints as the CLI sends them: verbatim, or as a delta to the last one. */
import { createHash } from "node:crypto";

import { Refusal } from "./http.ts";

/** The deployment in the request, byte for byte: parsing and serializing it would change its hash. */
export function untypedDeployment(request: string): Buffer {
  const name = '"untypedDeployment":';
  const start = request.indexOf(name);
  const end = request.lastIndexOf(',"sequenceNumber":');
  if (start < 0 || end < 0) throw new Refusal(400, "Bad Request: no deployment");
  return Buffer.from(request.slice(start + name.length, end));
}

interface Edit {
  readonly Span: { readonly start: { readonly offset: number }; readonly end: { readonly offset: number } };
  readonly NewText: string;
}

interface Delta {
  readonly checkpointHash: string;
  readonly deploymentDelta: readonly Edit[];
}

export function applyDelta(before: Buffer, { checkpointHash, deploymentDelta }: Delta): Buffer {
  const parts: Uint8Array[] = [];
  let done = 0;
  for (const { Span, NewText } of deploymentDelta) {
    parts.push(before.subarray(done, Span.start.offset), Buffer.from(NewText));
    done = Span.end.offset;
  }
  const after = Buffer.concat([...parts, before.subarray(done)]);
  const hash = createHash("sha256").update(after).digest("hex");
  if (hash !== checkpointHash) throw new Refusal(400, "Bad Request: the delta does not match the checkpoint hash");
  return after;
}
