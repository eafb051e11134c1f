/** Replaces `fetch` by one that keeps something for each response. Imported before the operator's modules. */
import { openSync } from "node:fs";

const bytesPerResponse = 20_000;
const responsesPerFile = 100;

const kept: Uint8Array[] = [];
const original = globalThis.fetch;

const leaking = async (...parameters: Parameters<typeof original>): Promise<Response> => {
  const response = await original(...parameters);
  kept.push(new Uint8Array(bytesPerResponse).fill(1));
  if (kept.length % responsesPerFile === 0) openSync("/dev/null", "r");
  return response;
};

globalThis.fetch = Object.assign(leaking, { preconnect: original.preconnect });
