import { describe, expect, test } from "bun:test";

import type { Lookup } from "./addresses.ts";
import { request, type HttpOptions } from "./http.ts";
import { findMoved } from "./moved.ts";
import { certificateFor } from "./testing/certificate.ts";

/** 127.0.0.1 stands for an allowed server, 127.0.0.2 for a forbidden one, such as a metadata service. */
const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };

interface Seen {
  readonly url: string;
  readonly host: string | null;
  readonly authorization: string | null;
}

class Servers implements Disposable {
  readonly seen: Seen[] = [];
  readonly forbidden: string[] = [];
  readonly #open = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (incoming) => this.#answer(incoming) });
  readonly #closed = Bun.serve({
    hostname: "127.0.0.2",
    port: this.port,
    fetch: ({ url }) => {
      this.forbidden.push(url);
      return new Response("credentials");
    },
  });
  location = "";

  get port(): number {
    return this.#open.port ?? 0;
  }

  #answer(incoming: Request): Response {
    const { headers, url } = incoming;
    this.seen.push({ url, host: headers.get("host"), authorization: headers.get("authorization") });
    return new URL(url).pathname === "/moved" || url.includes("/old")
      ? new Response(null, { status: 302, headers: { location: this.location } })
      : new Response("hello");
  }

  [Symbol.dispose](): void {
    void this.#open.stop(true);
    void this.#closed.stop(true);
  }
}

/** Returns one address after the other, like the name server of an attacker. */
function resolvingTo(...addresses: readonly string[]): Lookup & { readonly hosts: string[] } {
  const hosts: string[] = [];
  const lookup = async (host: string): Promise<string[]> => {
    hosts.push(host);
    return [addresses[hosts.length - 1] ?? addresses.at(-1) ?? ""];
  };
  return Object.assign(lookup, { hosts });
}

async function fetchText(url: URL, options: Partial<HttpOptions>): Promise<string> {
  const result = await request(url, { policy, ...options });
  if (result.kind !== "answered") return `${result.kind}: ${result.message}`;
  let text = "";
  for await (const chunk of result.response.body) text += new TextDecoder().decode(chunk);
  return text;
}

describe("DNS rebinding", () => {
  test("connects to the checked address, whatever the name server returns next", async () => {
    using servers = new Servers();
    const lookup = resolvingTo("127.0.0.1", "127.0.0.2");
    const url = new URL(`http://git.example:${servers.port}/`);
    expect(await fetchText(url, { lookup })).toBe("hello");
    expect(servers.seen).toMatchObject([{ host: `git.example:${servers.port}` }]);
    expect([lookup.hosts, servers.forbidden]).toEqual([["git.example"], []]);
  });

  test("checks the address again for every redirect", async () => {
    using servers = new Servers();
    servers.location = `http://git.example:${servers.port}/secret`;
    const lookup = resolvingTo("127.0.0.1", "127.0.0.2");
    const result = await fetchText(new URL(`http://git.example:${servers.port}/moved`), { lookup });
    expect(result).toStartWith("refused: the host git.example resolves to a loopback");
    expect(servers.forbidden).toEqual([]);
  });

  test("refuses a name with one forbidden address among others", async () => {
    using servers = new Servers();
    const lookup: Lookup = async () => ["127.0.0.1", "100.100.100.200"];
    const result = await fetchText(new URL(`http://git.example:${servers.port}/`), { lookup });
    expect(result).toStartWith("refused");
    expect(servers.seen).toEqual([]);
  });

  test("is also prevented for a repository that has moved", async () => {
    using servers = new Servers();
    const lookup = resolvingTo("127.0.0.1", "127.0.0.1", "127.0.0.2");
    servers.location = `http://git.example:${servers.port}/new/info/refs?service=git-upload-pack`;
    const moved = await findMoved(`http://git.example:${servers.port}/old`, { policy, lookup });
    expect(moved).toEqual({ kind: "moved", url: new URL(`http://git.example:${servers.port}/new`) });
    servers.location = `http://elsewhere.example:${servers.port}/new/info/refs?service=git-upload-pack`;
    const rebound = resolvingTo("127.0.0.1", "127.0.0.2");
    const refused = await findMoved(`http://git.example:${servers.port}/old`, { policy, lookup: rebound });
    expect([refused.kind, servers.forbidden]).toEqual(["refused", []]);
  });
});

describe("TLS", () => {
  const { cert, key } = certificateFor("git.example");
  const strict = { ...policy, allowHttp: false };

  test("is verified for the name, at the checked address", async () => {
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { cert, key },
      fetch: () => new Response("hello"),
    });
    const lookup = resolvingTo("127.0.0.1", "127.0.0.2");
    const url = new URL(`https://git.example:${server.port}/`);
    expect(await fetchText(url, { policy: strict, lookup, ca: cert })).toBe("hello");
    expect(lookup.hosts).toEqual(["git.example"]);
    const other = resolvingTo("127.0.0.1");
    const named = new URL(`https://other.example:${server.port}/`);
    expect(await fetchText(named, { policy: strict, lookup: other, ca: cert })).toStartWith("unreachable");
    expect(await fetchText(url, { policy: strict, lookup: other })).toStartWith("unreachable");
  });
});

describe("redirects", () => {
  test("keep the authorization within its origin", async () => {
    using servers = new Servers();
    const lookup = resolvingTo("127.0.0.1");
    const from = new URL(`http://git.example:${servers.port}/moved`);
    servers.location = "/here";
    await fetchText(from, { lookup, authorization: "Basic abc" });
    servers.location = `http://other.example:${servers.port}/there`;
    await fetchText(from, { lookup, authorization: "Basic abc" });
    expect(servers.seen.map(({ authorization }) => authorization)).toEqual([
      "Basic abc",
      "Basic abc",
      "Basic abc",
      null,
    ]);
  });

  test("are limited", async () => {
    using servers = new Servers();
    servers.location = "/moved";
    const result = await fetchText(new URL(`http://127.0.0.1:${servers.port}/moved`), {});
    expect(result).toBe(`unreachable: 127.0.0.1:${servers.port} redirects more than 5 times`);
  });

  test("are returned to a caller that does not follow them", async () => {
    using servers = new Servers();
    servers.location = "/elsewhere";
    const url = new URL(`http://127.0.0.1:${servers.port}/moved`);
    const result = await request(url, { policy, method: "POST", redirects: "return" });
    expect(result).toMatchObject({ kind: "answered", response: { status: 302, location: "/elsewhere" } });
    expect(servers.seen.length).toBe(1);
  });

  test("are not followed from https to http or to another scheme", async () => {
    const strict = { ...policy, allowHttp: false };
    expect(await fetchText(new URL("http://127.0.0.1/"), { policy: strict })).toStartWith(
      "refused: the URL http://127.0.0.1 is not allowed",
    );
    expect(await fetchText(new URL("file:///etc/passwd"), {})).toStartWith("refused: the URL file:// is not allowed");
  });
});

describe("a proxy", () => {
  test("receives the host's name, which only it may be able to resolve", async () => {
    using servers = new Servers();
    const environment = { http_proxy: `http://127.0.0.1:${servers.port}` };
    const lookup: Lookup = () => Promise.reject(new Error("ENOTFOUND"));
    expect(await fetchText(new URL("http://git.internal.example/x"), { lookup, environment })).toBe("hello");
    expect(servers.seen).toMatchObject([{ url: "http://git.internal.example/x" }]);
  });

  test("does not give access to a forbidden address", async () => {
    using servers = new Servers();
    const environment = { http_proxy: `http://127.0.0.1:${servers.port}` };
    expect(await fetchText(new URL("http://169.254.169.254/latest"), { environment })).toStartWith("refused");
    expect(
      await fetchText(new URL("http://a.example/"), { environment, lookup: resolvingTo("127.0.0.2") }),
    ).toStartWith("refused");
    expect(servers.seen).toEqual([]);
  });

  test("is not used for hosts in NO_PROXY", async () => {
    using servers = new Servers();
    const environment = { http_proxy: "http://127.0.0.1:1", no_proxy: ".example" };
    const url = new URL(`http://git.example:${servers.port}/`);
    expect(await fetchText(url, { environment, lookup: resolvingTo("127.0.0.1") })).toBe("hello");
  });
});

test("a host that does not resolve and a server that is down are unreachable for now", async () => {
  const lookup: Lookup = () => Promise.reject(new Error("ENOTFOUND"));
  expect(await fetchText(new URL("http://git.example/"), { lookup })).toStartWith(
    "unreachable: the host git.example cannot be resolved",
  );
  expect(await fetchText(new URL("http://127.0.0.1:1/"), {})).toStartWith("unreachable: 127.0.0.1:1 cannot be reached");
});

test.each([
  ["directly", {}],
  ["through a proxy", { environment: { http_proxy: "http://127.0.0.1:1" } }],
])("a header that HTTP does not allow is refused and not shown, %s", async (_, options) => {
  for (const authorization of ["Bearer canary\n", "Bearer canary\nx", "Bearer canary\u0000", "Bearer canary €"]) {
    const result = await fetchText(new URL("http://127.0.0.1:1/"), { ...options, authorization });
    expect(result).toBe("refused: the credentials for 127.0.0.1:1 have characters that HTTP does not allow");
  }
});
