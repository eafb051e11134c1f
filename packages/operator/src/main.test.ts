import { join } from "node:path";

import { expect, setDefaultTimeout, test } from "bun:test";

// It loads all modules of the operator.
setDefaultTimeout(60_000);

const errorsOf = (...args: readonly string[]): Promise<string> =>
  errorsOfCommand("--agent-image=none", "--namespace=team", ...args);

/** What the process writes to standard error until it ends. */
async function errorsOfCommand(...args: readonly string[]): Promise<string> {
  const command = [process.execPath, join(import.meta.dir, "main.ts"), ...args];
  const child = Bun.spawn(command, { env: {}, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const text = await new Response(child.stderr).text();
  expect(await child.exited).toBe(1);
  return text;
}

test("why the operator cannot start is a line of its log, with the stack trace", async () => {
  const line = JSON.parse(await errorsOf("--kubeconfig=/nonexistent/kubeconfig")) as {
    readonly error: { readonly stack: string };
  };
  expect(line).toMatchObject({
    level: "error",
    msg: "the operator cannot start",
    logger: "operator",
    error: { code: "ENOENT" },
  });
  expect(line.error.stack).toContain("/nonexistent/kubeconfig");
});

test("the log masks what looks like a credential, as records and traces do", async () => {
  const text = await errorsOf("--kubeconfig=/nonexistent/https://git:hunter2@example.com/kubeconfig");
  expect(text).toContain("https://[secret]@example.com/kubeconfig");
  expect(text).not.toContain("hunter2");
});

/** What the console writes to standard error. It is stopped as soon as it is ready. */
async function consoleLog(host: string, port: number): Promise<string> {
  const env = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: "443" };
  const command = [process.execPath, join(import.meta.dir, "main.ts"), "console", `--port=${port}`];
  const child = Bun.spawn(command, { env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of child.stderr) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes("the console is ready")) child.kill("SIGTERM");
  }
  return text;
}

test("the log of the console masks what looks like a credential, too", async () => {
  const text = await consoleLog(`ghp_${"a".repeat(36)}`, 0);
  expect(text).toContain('"server":"https://[secret]:443"');
  expect(text).not.toContain("ghp_");
  expect(text).toContain('"msg":"stopping"');
});

test("why the console cannot start is a line of its log", async () => {
  using taken = Bun.serve({ port: 0, hostname: "0.0.0.0", fetch: () => new Response() });
  expect(JSON.parse(await consoleLog("10.0.0.1", taken.port ?? 0))).toMatchObject({
    level: "error",
    msg: "the console cannot start",
    logger: "console",
    error: { code: "EADDRINUSE" },
  });
});

test("an invalid setting of the operator is a line of its log, without the stack trace", async () => {
  const line = JSON.parse(await errorsOf("--kube-api-timeout=soon")) as { readonly error: object };
  expect(line).toMatchObject({ level: "error", msg: "the operator cannot start", logger: "operator" });
  expect(line.error).toEqual({
    name: "OptionsError",
    message: "--kube-api-timeout (or OPERATOR_KUBE_API_TIMEOUT) is not a duration such as 15s",
  });
});

test("an invalid setting of the console is a line of its log", async () => {
  expect(JSON.parse(await errorsOfCommand("console", "--port=many"))).toMatchObject({
    level: "error",
    msg: "the console cannot start",
    logger: "console",
    error: { message: "--port many is not a port" },
  });
});

test("why a profile cannot be recorded is text, for the person who runs the command", async () => {
  expect(await errorsOfCommand("profile", "everything")).toMatch(/^error: .+\n$/);
});
