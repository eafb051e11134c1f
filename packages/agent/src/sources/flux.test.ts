import { afterAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { temporaryFolder } from "../testing/folders.ts";
import { tarOf } from "../testing/tar.ts";
import { fetchFlux } from "./flux.ts";

const root = temporaryFolder();
const good = gzipSync(tarOf([{ path: "Pulumi.yaml", type: "0", body: "name: x\n" }]));
const digest = `sha256:${createHash("sha256").update(good).digest("hex")}`;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    const { pathname, port } = new URL(request.url);
    if (pathname === "/good.tar.gz") return new Response(good);
    if (pathname === "/moved") return Response.redirect(`http://127.0.0.1:${port}/good.tar.gz`);
    if (pathname === "/metadata") return Response.redirect("http://169.254.169.254/latest/meta-data/");
    if (pathname === "/loop") return Response.redirect(request.url);
    if (pathname === "/forbidden") return new Response("canary-body", { status: 403 });
    if (pathname === "/failing") return new Response("canary-body", { status: 500 });
    return new Response("canary-body", { status: 404 });
  },
});
afterAll(() => server.stop(true));

async function get(path: string, overrides: { digest?: string; url?: string; allowed?: string[] } = {}) {
  const folder = mkdtempSync(join(root, "tree-"));
  const archive = join(root, `${Math.random()}.tar.gz`);
  const source = {
    kind: "flux" as const,
    url: overrides.url ?? `http://127.0.0.1:${server.port}${path}`,
    digest: overrides.digest ?? digest,
  };
  const policy = { allowHttp: false, allowedAddresses: overrides.allowed ?? ["127.0.0.1"] };
  const outcome = await fetchFlux(source, folder, {
    archive,
    policy,
    inherited: {},
    signal: new AbortController().signal,
  });
  return { folder, outcome, reason: outcome.ok ? "ok" : outcome.failure.reason };
}

describe("an artifact", () => {
  test("is fetched, checked and unpacked", async () => {
    const { folder, reason } = await get("/good.tar.gz");
    expect(reason).toBe("ok");
    expect(readFileSync(join(folder, "Pulumi.yaml"), "utf8")).toBe("name: x\n");
  });

  test("may have another digest algorithm and a redirect", async () => {
    const sum = `sha512:${createHash("sha512").update(good).digest("hex")}`;
    expect((await get("/moved", { digest: sum })).reason).toBe("ok");
  });

  test("leaves no archive behind", async () => {
    await get("/good.tar.gz");
    expect(readdirSync(root).filter((name) => name.endsWith(".tar.gz"))).toEqual([]);
  });
});

describe("an artifact that does not match its digest", () => {
  test("is not unpacked", async () => {
    const { folder, reason } = await get("/good.tar.gz", { digest: `sha256:${"0".repeat(64)}` });
    expect(reason).toBe("sourceRefused");
    expect(readdirSync(folder)).toEqual([]);
  });

  for (const [name, bad] of Object.entries({
    "an empty digest": "",
    "a weak algorithm": "md5:d41d8cd98f00b204e9800998ecf8427e",
    "a digest of the wrong length": `sha256:${"0".repeat(40)}`,
    "a digest with trailing characters": `${digest}\n`,
  })) {
    test(`${name} is rejected before anything is fetched`, async () => {
      expect((await get("/good.tar.gz", { digest: bad })).reason).toBe("sourceInvalid");
    });
  }
});

describe("hostile URLs of artifacts", () => {
  const elsewhere = temporaryFolder();
  writeFileSync(join(elsewhere, "local.tar.gz"), good);
  for (const [name, url] of Object.entries({
    "a file": `file://${elsewhere}/local.tar.gz`,
    "an invalid URL": "source-controller/artifact",
    credentials: `http://user:canary@127.0.0.1:${server.port}/good.tar.gz`,
    "the metadata service": "http://169.254.169.254/latest/",
    "loopback in hexadecimal": `http://0x7f000002:${server.port}/good.tar.gz`,
    "loopback as a single number": `http://2130706434:${server.port}/good.tar.gz`,
    "loopback in IPv6": `http://[::ffff:127.0.0.2]:${server.port}/good.tar.gz`,
    data: "data:application/gzip;base64,H4sI",
  })) {
    test(name, async () => {
      expect((await get("", { url })).reason).toBe("sourceInvalid");
    });
  }

  test("a redirect to the metadata service", async () => {
    expect((await get("/metadata")).reason).toBe("sourceInvalid");
  });

  test("an endless redirect", async () => {
    expect((await get("/loop")).reason).toBe("sourceUnavailable");
  });
});

describe("failures", () => {
  for (const [path, reason] of Object.entries({
    // The source is about to publish another artifact or to recreate this one.
    "/deleted": "sourceUnavailable",
    "/forbidden": "sourceUnauthorized",
    "/failing": "sourceUnavailable",
  })) {
    test(`${path} is ${reason}, and the server's response is not repeated`, async () => {
      const got = await get(path);
      expect(got.reason).toBe(reason);
      expect(JSON.stringify(got.outcome)).not.toContain("canary-body");
    });
  }

  test("an interrupted download", async () => {
    const interrupted = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\npart"));
    });
    await new Promise<void>((resolve) => {
      interrupted.listen(0, "127.0.0.1", resolve);
    });
    const address = interrupted.address();
    const port = typeof address === "object" && address ? address.port : 0;
    expect((await get("", { url: `http://127.0.0.1:${port}/x` })).reason).toBe("sourceUnavailable");
    interrupted.close();
  });

  test("a server that does not listen", async () => {
    expect((await get("", { url: "http://127.0.0.1:1/x" })).reason).toBe("sourceUnavailable");
  });
});
