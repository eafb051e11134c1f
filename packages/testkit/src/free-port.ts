/** Free ports for test servers. */
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:net";

// Below Linux's ephemeral range: while a server is down for a restart, no outgoing connection can take its port, and
// no client can connect to itself on it.
const first = 20_000;
const last = 32_000;
const claims: Socket[] = [];

/** Never the same port twice, in one process or in several at the same time, even if nothing listens on the first one yet. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = first + Math.floor(Math.random() * (last - first));
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error(`no free port between ${first} and ${last}`);
}

/** Test servers use TCP, so the UDP port of the same number is free to show other processes that it is taken, until this one ends. */
async function claim(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.once("error", () => resolve(false));
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
      claims.push(socket.unref());
      resolve(true);
    });
  });
}

async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1" }, () => server.close(() => resolve(true)));
  });
}
