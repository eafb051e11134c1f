/** `kubectl pulumi ui`: the console on this machine, with the kubeconfig of its user. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { firstLine } from "@pko/testkit";

import { apiServerWithApi, pathTo, testTimeoutMs } from "../api/install.ts";

setDefaultTimeout(testTimeoutMs);

const main = pathTo("../../../packages/cli/src/main.ts");

type Init = Omit<RequestInit, "headers"> & { readonly headers?: Record<string, string> };

/** The CLI runs from source, and Bun writes its cache there. */
const home = mkdtempSync(join(tmpdir(), "pko-ui-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function start(args: readonly string[]) {
  return Bun.spawn([process.execPath, main, "ui", ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "", HOME: home },
  });
}

test("serves until it is interrupted; its address has a name that nobody else knows, and a token for one use", async () => {
  const server = await apiServerWithApi();
  const child = start(["--no-open", "--kubeconfig", server.kubeconfig]);
  const url = new URL(await firstLine(child.stdout));
  expect(url.hostname).toMatch(/^pulumi-[0-9a-f]{12}\.localhost$/);
  const address = `http://127.0.0.1:${url.port}`;
  const send = async (path: string, init: Init = {}): Promise<Response> =>
    await fetch(`${address}${path}`, {
      ...init,
      headers: {
        host: url.host,
        origin: url.origin,
        "x-pulumi-console": "1",
        "content-type": "application/json",
        ...init.headers,
      },
    });
  const signIn = async (): Promise<Response> =>
    await send("/session", { method: "POST", body: JSON.stringify({ token: url.hash.replace("#token=", "") }) });
  expect((await send("/k8s/apis/pulumi.com/v1/stacks")).status).toBe(401);
  const first = await signIn();
  expect(await first.json()).toEqual({ signedIn: true, mode: "kubeconfig", user: "admin", context: "testkit" });
  expect((await signIn()).status).toBe(401);
  const cookie = first.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect((await send("/k8s/apis/pulumi.com/v1/stacks", { headers: { cookie } })).status).toBe(200);
  const page = await send("/", { headers: { accept: "text/html" } });
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
  expect(await new Response(child.stderr).text()).toContain("Press Ctrl-C to stop.");
});

test("a port that is no port, or is taken, is an error with what to do", async () => {
  const server = await apiServerWithApi();
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const run = async (port: string): Promise<[number, string]> => {
    const child = start(["--no-open", "--port", port, "--kubeconfig", server.kubeconfig]);
    return [await child.exited, await new Response(child.stderr).text()];
  };
  const [notPort, notPortText] = await run("http");
  expect([notPort, notPortText]).toEqual([2, expect.stringContaining("--port http is not a port.") as string]);
  const [inUse, inUseText] = await run(String(taken.port));
  expect([inUse, inUseText]).toEqual([1, expect.stringContaining("another program uses it") as string]);
  await taken.stop(true);
});
