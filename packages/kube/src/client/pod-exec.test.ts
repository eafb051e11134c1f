/** Against a server that speaks the protocol of pods/exec as the API server does. */
import { afterAll, describe, expect, test } from "bun:test";

import { staticCredentials } from "./connection/credentials.ts";
import { isForbidden } from "./errors.ts";
import { execInPod, execTerminal } from "./pod-exec.ts";
import { podLogs } from "./pod-logs.ts";

const requests: { path: string; authorization: string | null; protocol: string | null }[] = [];

const success = { kind: "Status", status: "Success" };
const exit = (code: number): object => ({
  kind: "Status",
  status: "Failure",
  reason: "NonZeroExitCode",
  details: { causes: [{ reason: "ExitCode", message: String(code) }] },
});
const forbidden = { kind: "Status", status: "Failure", code: 403, reason: "Forbidden", message: "no" };

const frame = (channel: number, text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from([channel, ...new TextEncoder().encode(text)]);

const server = Bun.serve({
  port: 0,
  fetch(request, self) {
    const { pathname, search, searchParams } = new URL(request.url);
    const { headers } = request;
    requests.push({
      path: pathname + search,
      authorization: headers.get("authorization"),
      protocol: headers.get("sec-websocket-protocol"),
    });
    if (pathname.endsWith("/log")) return new Response("one\nzwei ü\n");
    if (pathname.includes("/closed/")) return Response.json(forbidden, { status: 403 });
    const [command = ""] = searchParams.getAll("command");
    return self.upgrade(request, { data: { command } }) ? undefined : new Response("", { status: 400 });
  },
  websocket: {
    data: {} as { command: string },
    open(socket) {
      if (socket.data.command === "shell") return;
      if (socket.data.command !== "hang") {
        socket.send(frame(1, "out ü"));
        socket.send(frame(2, "err"));
        socket.send(frame(3, JSON.stringify(socket.data.command === "false" ? exit(7) : success)));
      }
      socket.close();
    },
    /** The shell prints what it receives, and ends at "exit". */
    message(socket, message) {
      const [channel = 0, ...bytes] = message as Buffer;
      const text = Buffer.from(bytes).toString();
      socket.send(frame(1, `${channel} ${text}\n`));
      if (text !== "exit") return;
      socket.send(frame(3, JSON.stringify(exit(3))));
      socket.close();
    },
  },
});
afterAll(async () => await server.stop(true));

const credentials = staticCredentials({ server: `http://localhost:${server.port}`, token: "t", tls: {} });
const run = async (pod: string, ...command: string[]) =>
  await execInPod(credentials, { namespace: "a", name: pod }, { container: "pulumi", command });

describe("a command in a pod", () => {
  test("its streams and its exit code", async () => {
    expect(await run("web-0", "pulumi", "cancel", "--stack", "a b")).toEqual({
      exitCode: 0,
      stdout: "out ü",
      stderr: "err",
    });
    expect(await run("web-0", "false")).toMatchObject({ exitCode: 7 });
    expect(requests[0]).toEqual({
      path: "/api/v1/namespaces/a/pods/web-0/exec?container=pulumi&stdout=true&stderr=true&command=pulumi&command=cancel&command=--stack&command=a+b",
      authorization: "Bearer t",
      protocol: "v5.channel.k8s.io, v4.channel.k8s.io",
    });
  });

  test("a terminal sends what is typed and its size, until the command ends", async () => {
    let printed = "";
    const exitCode = await execTerminal(
      credentials,
      { namespace: "a", name: "web-0" },
      {
        container: "pulumi",
        command: ["shell"],
        output: (bytes) => (printed += new TextDecoder().decode(bytes)),
        opened(input) {
          input.resize({ columns: 120, rows: 40 });
          input.write(new TextEncoder().encode("exit"));
        },
      },
    );
    expect(exitCode).toBe(3);
    expect(printed).toBe('4 {"Width":120,"Height":40}\n0 exit\n');
    expect(requests.at(-1)?.path).toEndWith("exec?container=pulumi&stdin=true&stdout=true&tty=true&command=shell");
  });

  test("a terminal ends when it is aborted, although the command continues", async () => {
    const abort = new AbortController();
    const ended = execTerminal(
      credentials,
      { namespace: "a", name: "web-0" },
      {
        container: "pulumi",
        command: ["shell"],
        signal: abort.signal,
        output: () => undefined,
        opened: () => abort.abort(new Error("the terminal is closed")),
      },
    );
    expect(await ended.catch(String)).toBe("Error: the terminal is closed");
  });

  test("a refusal has the API server's explanation", async () => {
    const error: unknown = await run("closed", "true").catch((cause: unknown) => cause);
    expect(isForbidden(error)).toBe(true);
  });

  test("a connection that ends without a result is an error", async () => {
    expect(await run("web-0", "hang").catch(String)).toContain("no response (CLOSED)");
  });
});

test("the log of a container", async () => {
  let log = "";
  const options = { container: "pulumi", follow: true, tailLines: 5 };
  for await (const chunk of podLogs(credentials, { namespace: "a", name: "web-0" }, options)) log += chunk;
  expect(log).toBe("one\nzwei ü\n");
  expect(requests.at(-1)?.path).toBe("/api/v1/namespaces/a/pods/web-0/log?container=pulumi&follow=true&tailLines=5");
});
