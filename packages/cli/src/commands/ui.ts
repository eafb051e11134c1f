/** `ui`: the web console, for this user on this machine. */
import { randomBytes } from "node:crypto";

import { kubeconfigCurrentContext, whenAborted } from "@pko/kube";

import { textOption, type Command, type Input } from "../command.ts";
import { kubeconfigPaths, type Context } from "../context.ts";
import { CliError, usageError } from "../errors.ts";
import { openInBrowser } from "../browser.ts";

export const ui: Command = {
  name: "ui",
  summary: "Open the web console in a browser",
  details:
    "Serves the console on this machine, with your kubeconfig, until you press Ctrl-C. The address has a token that can be used once: only the browser that opens it first has access.",
  group: "See",
  options: [
    { flags: "--port <number>", description: "The port. By default any free one." },
    { flags: "--no-open", description: "Print the address, and do not open a browser." },
  ],
  async run(context, input) {
    const { io } = context;
    // Most commands do not need the console, and start faster without it.
    const { startConsole } = await import("@pko/console");
    const name = await contextName(context, input);
    const console = await startConsole({
      signIn: { mode: "kubeconfig", credentials: context.credentials, ...(name !== undefined && { context: name }) },
      port: portIn(input),
      hosts: [privateName()],
    }).catch((error: unknown) => {
      throw listenError(error, portIn(input));
    });
    try {
      io.out(`${console.url}\n`);
      const browser = input.options["open"] === false ? "off" : await openInBrowser(io, console.url);
      io.err(`${guidance(browser, console.port)}\n`);
      await whenAborted(io.signal);
    } finally {
      await console.stop();
    }
    return undefined;
  },
};

/** Browsers resolve it to this machine. Nobody else knows it, so that its cookie is not sent to other ports of this machine. */
const privateName = (): string => `pulumi-${randomBytes(6).toString("hex")}.localhost`;

function portIn(input: Input): number {
  const text = textOption(input, "port") ?? "0";
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw usageError(`--port ${text} is not a port.`, "Use a number up to 65535.");
  }
  return port;
}

async function contextName({ io }: Context, input: Input): Promise<string | undefined> {
  const given = textOption(input, "context");
  return given ?? (await kubeconfigCurrentContext(kubeconfigPaths(io.env, textOption(input, "kubeconfig"))));
}

function listenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== "EADDRINUSE" && code !== "EACCES") return error;
  const reason = code === "EACCES" ? "you do not have permission to use it" : "another program uses it";
  return new CliError(`Cannot listen on port ${port}: ${reason}.`, { fix: "Choose another one with --port." });
}

function guidance(browser: "opened" | "failed" | "off", port: number): string {
  const opened = {
    opened: "Opening the console in your browser.",
    failed: "No browser could be opened. Open the address above.",
    off: "Open the address above. It can be used once.",
  };
  const other = `If the browser does not find the address, replace its name with 127.0.0.1:${port}.`;
  return `${opened[browser]} ${other} Press Ctrl-C to stop.`;
}
