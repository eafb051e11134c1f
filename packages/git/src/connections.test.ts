import { describe, expect, test } from "bun:test";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

import { keptConnections, type Connections } from "./connections.ts";
import { request, type HttpOptions } from "./http.ts";
import { certificateFor } from "./testing/certificate.ts";

const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };

/** Counts the connections to a server. */
class CountingProxy implements AsyncDisposable {
  readonly open = new Set<Socket>();
  count = 0;
  readonly #server: Server;

  constructor(target: number) {
    this.#server = createServer((socket) => {
      this.count++;
      this.open.add(socket);
      void Bun.connect({
        hostname: "127.0.0.1",
        port: target,
        socket: {
          open: (upstream) => void socket.on("data", (data) => void upstream.write(data)),
          data: (_, data) => void socket.write(data),
          close: () => void socket.destroy(),
        },
      });
      socket.on("error", () => socket.destroy());
    });
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => void this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.open) socket.destroy();
    await new Promise((resolve) => void this.#server.close(resolve));
  }
}

async function statusOf(url: URL, options: HttpOptions): Promise<string> {
  const result = await request(url, options);
  if (result.kind !== "answered") return result.kind;
  let text = "";
  for await (const chunk of result.response.body) text += new TextDecoder().decode(chunk);
  return `${result.response.status} ${text}`;
}

describe("a kept connection", () => {
  const { cert, key } = certificateFor("git.example");

  test("is used again for the same name and CA only", async () => {
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert, key },
      fetch: ({ headers, method }) => new Response(`${method} ${headers.get("host")?.split(":")[0] ?? ""}`),
    });
    await using proxy = new CountingProxy(server.port ?? 0);
    const port = await proxy.listen();
    const connections = keptConnections({ lookup: async () => ["127.0.0.1"] });
    const options: HttpOptions = { policy, connections, ca: cert };
    const url = new URL(`https://git.example:${port}/`);
    expect(await statusOf(url, options)).toBe("200 GET git.example");
    // One connection has tested the address.
    expect(proxy.count).toBe(2);
    for (let again = 0; again < 3; again++) {
      expect(await statusOf(url, { ...options, method: "POST", body: "x" })).toBe("200 POST git.example");
    }
    expect(proxy.count).toBe(2);
    expect(await statusOf(new URL(`https://other.example:${port}/`), options)).toBe("unreachable");
    expect(await statusOf(url, { policy, connections })).toBe("unreachable");
    expect(await statusOf(url, { ...options, ca: certificateFor("git.example").cert })).toBe("unreachable");
  });
});

test("an address is tested again after a request to it has failed", async () => {
  const distrusted: string[] = [];
  const connections: Connections = {
    lookup: async () => ["127.0.0.1"],
    reachable: async ([address = ""]) => address,
    distrust: (address, port) => void distrusted.push(`${address} ${port}`),
    fetch: () => Promise.reject(new Error("broken")),
  };
  expect(await statusOf(new URL("https://git.example/"), { policy, connections })).toBe("unreachable");
  expect(distrusted).toEqual(["127.0.0.1 443"]);
});

describe("a host's addresses", () => {
  test("are looked up once a minute, and once for concurrent requests", async () => {
    let now = 0;
    const hosts: string[] = [];
    const lookup = async (host: string): Promise<string[]> => {
      hosts.push(host);
      return ["127.0.0.1"];
    };
    const connections = keptConnections({ lookup, now: () => now });
    await Promise.all([connections.lookup("a.example"), connections.lookup("a.example")]);
    now = 59_999;
    await connections.lookup("a.example");
    expect(hosts).toEqual(["a.example"]);
    now = 60_000;
    await connections.lookup("a.example");
    expect(hosts).toEqual(["a.example", "a.example"]);
  });

  test("are looked up again after a failure", async () => {
    let isBroken = true;
    const lookup = async (): Promise<string[]> => {
      if (isBroken) throw new Error("ENOTFOUND");
      return ["127.0.0.1"];
    };
    const connections = keptConnections({ lookup });
    expect(await connections.lookup("a.example").catch(String)).toBe("Error: ENOTFOUND");
    isBroken = false;
    expect(await connections.lookup("a.example")).toEqual(["127.0.0.1"]);
  });

  test("are tried in order, and the first that accepts connections is used until it fails", async () => {
    using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
    const { port = 0 } = server;
    const connections = keptConnections();
    expect(await connections.reachable(["127.0.0.9", "127.0.0.1"], port)).toBe("127.0.0.1");
    await server.stop(true);
    expect(await connections.reachable(["127.0.0.9", "127.0.0.1"], port)).toBe("127.0.0.1");
    connections.distrust("127.0.0.1", port);
    const failure = await connections.reachable(["127.0.0.9", "127.0.0.1"], port).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "ECONNREFUSED" });
  });

  test("that drop packets are given up after the time for a connection", async () => {
    await using hole = await blackHole();
    const connections = keptConnections({ connectMs: 50 });
    const failure = await connections.reachable(["127.0.0.1"], hole.port).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "ETIMEDOUT", message: "no connection within 0.05 s" });
  });
});

/** A port whose queue of connections is full, because its process is stopped: the kernel drops further packets. */
async function blackHole(): Promise<AsyncDisposable & { readonly port: number }> {
  const script = `
    const server = require("node:net").createServer();
    server.listen(0, "127.0.0.1", () => console.log(server.address().port));`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  child.kill("SIGSTOP");
  const sockets = Array.from({ length: 600 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  await Promise.race(sockets.map((socket) => new Promise((resolve) => void socket.once("connect", resolve))));
  return {
    port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

test("a proxy of this process's environment is not used for a checked address", async () => {
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("direct") });
  const connections = keptConnections({ lookup: async () => ["127.0.0.1"] });
  const before = process.env["http_proxy"];
  process.env["http_proxy"] = "http://127.0.0.1:1";
  try {
    expect(await statusOf(new URL(`http://git.example:${server.port}/`), { policy, connections })).toBe("200 direct");
  } finally {
    if (before === undefined) delete process.env["http_proxy"];
    else process.env["http_proxy"] = before;
  }
});
