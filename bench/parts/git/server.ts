/**
 * A Git server for many repositories, in its own process: it speaks version 2 of the protocol, and every path below `/` is a
 * repository with one branch. Prints its port and the PEM of its certificate as JSON, and then one line for each second with
 * the number of polls. Neighbors who disturb others: on other addresses of loopback, a second port accepts connections and never
 * responds; a DNS server never responds either; and below `/huge/`, a repository has 100,000 references and sends them all.
 */
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { createServer, type AddressInfo } from "node:net";

import { certificateFor } from "../../../packages/git/src/testing/certificate.ts";

export interface ServerStart {
  readonly port: number;
  readonly tarpitPort: number;
  readonly cert: string;
}

export interface ServerSecond {
  readonly polls: number;
  readonly discoveries: number;
}

const line = (text: string): string => `${(Buffer.byteLength(text) + 5).toString(16).padStart(4, "0")}${text}\n`;
const capabilities = `${["version 2", "agent=git/bench", "ls-refs=unborn", "fetch=shallow", "object-format=sha1"].map(line).join("")}0000`;
const hugePath = /^\/huge\//;
const hugeReferences = 100_000;
/** Where the DNS server listens. */
export const silentDns = "127.53.0.1";

const typeOf = (kind: string): { headers: Record<string, string> } => ({
  headers: { "content-type": `application/x-git-upload-pack-${kind}`, "cache-control": "no-cache" },
});

function huge(commit: string): string {
  const others = Array.from({ length: hugeReferences }, (_, index) => line(`${commit} refs/heads/branch-${index}`));
  return `${others.join("")}${line(`${commit} refs/heads/main`)}0000`;
}

async function serve(latencyMs: number): Promise<void> {
  const counts = { polls: 0, discoveries: 0 };
  const { cert, key } = certificateFor("127.0.0.1");
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert, key },
    async fetch(request) {
      if (latencyMs > 0) await Bun.sleep(latencyMs);
      const { pathname } = new URL(request.url);
      if (request.method === "GET") {
        counts.discoveries++;
        return new Response(capabilities, typeOf("advertisement"));
      }
      counts.polls++;
      const [, ref] = /ref-prefix (refs\/heads\/\S+)/.exec(await request.text()) ?? [];
      const commit = createHash("sha1").update(pathname).digest("hex");
      if (hugePath.test(pathname)) return new Response(huge(commit), typeOf("result"));
      return new Response(`${ref === undefined ? "" : line(`${commit} ${ref}`)}0000`, typeOf("result"));
    },
  });
  createSocket("udp4").bind(53, silentDns);
  const tarpit = createServer((socket) => void socket.on("error", () => socket.destroy()));
  await new Promise<void>((resolve) => void tarpit.listen(0, "0.0.0.0", resolve));
  const start: ServerStart = { port: server.port ?? 0, tarpitPort: (tarpit.address() as AddressInfo).port, cert };
  console.log(JSON.stringify(start));
  setInterval(() => {
    console.log(JSON.stringify({ ...counts } satisfies ServerSecond));
    Object.assign(counts, { polls: 0, discoveries: 0 });
  }, 1000);
}

if (import.meta.main) await serve(Number(process.argv[2] ?? 0));
