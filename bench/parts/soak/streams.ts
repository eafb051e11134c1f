/** An mTLS server that sends a line per second to 200 streams; the readers are in another process (streams-client.ts). */
import { join } from "node:path";

import { createCa } from "@pko/cluster";

import type { Load } from "./load.ts";

export async function streamServer(streams: number, end: AbortSignal): Promise<Load> {
  const authority = await createCa("soak");
  const serving = await authority.issue({ commonName: "server", ips: ["127.0.0.1"] });
  const client = await authority.issue({ commonName: "client" });
  const counts = { open: 0, opened: 0, lines: 0 };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    tls: { ca: authority.cert, ...serving, requestCert: true, rejectUnauthorized: true },
    fetch: () => new Response(feed(counts, end)),
  });
  const settings = { url: `https://127.0.0.1:${server.port}/`, streams, tls: { ca: authority.cert, ...client } };
  const reader = Bun.spawn([process.execPath, join(import.meta.dir, "streams-client.ts")], {
    stdin: new TextEncoder().encode(JSON.stringify(settings)),
    stdout: "pipe",
    stderr: "inherit",
  });
  const report = new Response(reader.stdout).text();
  const unauthorized = await fetch(settings.url, { tls: { ca: authority.cert } }).then(
    () => true,
    () => false,
  );
  let broken = "";
  const done = (async () => {
    broken = (await report).trim();
    await reader.exited;
    await server.stop(true);
  })();
  return {
    done,
    summary: () => `streams: ${counts.open} open of ${counts.opened}, ${counts.lines} lines`,
    faults: () => [
      ...(broken ? broken.split("\n") : []),
      ...(unauthorized ? ["a client without a certificate was served"] : []),
    ],
  };
}

function feed(counts: { open: number; opened: number; lines: number }, end: AbortSignal): ReadableStream<string> {
  let timer: Timer | undefined;
  let sequence = 0;
  return new ReadableStream({
    start(controller) {
      counts.open++;
      counts.opened++;
      timer = setInterval(() => {
        controller.enqueue(`${JSON.stringify({ sequence: sequence++, pad: "x".repeat(200) })}\n`);
        counts.lines++;
        if (!end.aborted) return;
        clearInterval(timer);
        counts.open--;
        controller.close();
      }, 1000);
    },
    cancel() {
      clearInterval(timer);
      counts.open--;
    },
  });
}
