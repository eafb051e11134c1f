/** Free ports for test servers. */
import { createServer } from "node:net";

// Below Linux's ephemeral range: while a server is down for a restart, no outgoing connection can take its port, and
// no client can connect to itself on it.
const first = 20_000;
const last = 32_000;
const used = new Set<number>();

/** Never the same port twice in one process, even if nothing listens on the first one yet. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = first + Math.floor(Math.random() * (last - first));
    if (used.has(port)) continue;
    // Before the check, during which another caller may choose the same port.
    used.add(port);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${first} and ${last}`);
}

async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1" }, () => server.close(() => resolve(true)));
  });
}
