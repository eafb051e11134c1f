/**
 * Runs a command in a container: pods/exec over a WebSocket with the subprotocol v5.channel.k8s.io or v4. In every message
 * the first byte is the channel: 0 to 2 are the streams of the command, 3 is its result as a `Status`, 4 the size of its
 * terminal.
 */
import { builtin } from "./builtin.ts";
import type { Credentials } from "./connection/credentials.ts";
import { ApiError, ConnectionError } from "./errors.ts";
import { fetchTransport } from "./requests/http.ts";
import { arrayAt, objectAt, parseJson, textAt } from "./requests/json.ts";
import { objectPath } from "./requests/paths.ts";
import { parseApiError } from "./requests/status.ts";
import type { ObjectRef } from "../resource.ts";

export interface ExecOptions {
  readonly container: string;
  /** The program and its arguments. No shell interprets them. */
  readonly command: readonly string[];
  readonly signal?: AbortSignal;
}

export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The types of the DOM do not know Bun's options. */
const BunWebSocket = WebSocket as unknown as new (url: string, options: Bun.WebSocketOptions) => WebSocket;

const channels = { stdin: 0, stdout: 1, stderr: 2, result: 3, resize: 4 } as const;

/** Throws an `ApiError` if the API server does not start the command. A command that fails has an exit code. */
export async function execInPod(credentials: Credentials, ref: ObjectRef, options: ExecOptions): Promise<ExecResult> {
  const streams = { [channels.stdout]: "", [channels.stderr]: "" };
  const decoders = { [channels.stdout]: new TextDecoder(), [channels.stderr]: new TextDecoder() };
  const exitCode = await session(credentials, execPath(ref, options), {
    signal: options.signal,
    output: (channel, bytes) => (streams[channel] += decoders[channel].decode(bytes, { stream: true })),
  });
  return { exitCode, stdout: streams[channels.stdout], stderr: streams[channels.stderr] };
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** What is typed, and the size of the person's terminal. */
export interface TerminalInput {
  write(bytes: Uint8Array): void;
  resize(size: TerminalSize): void;
}

export interface TerminalOptions extends ExecOptions {
  /** Called with what the command prints. */
  readonly output: (bytes: Uint8Array) => void;
  /** Called when the command has started. */
  readonly opened: (input: TerminalInput) => void;
}

/** Like `execInPod`, for a command with a terminal. Returns its exit code. */
export async function execTerminal(
  credentials: Credentials,
  ref: ObjectRef,
  options: TerminalOptions,
): Promise<number> {
  return await session(credentials, execPath(ref, options, "terminal"), {
    signal: options.signal,
    output: (_, bytes) => options.output(bytes),
    opened: (socket) => options.opened(terminalInput(socket)),
  });
}

function terminalInput(socket: WebSocket): TerminalInput {
  const send = (channel: number, bytes: Uint8Array): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(Uint8Array.from([channel, ...bytes]));
  };
  return {
    write: (bytes) => send(channels.stdin, bytes),
    resize: ({ columns, rows }) =>
      send(channels.resize, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows }))),
  };
}

interface Session {
  readonly signal: AbortSignal | undefined;
  readonly output: (channel: 1 | 2, bytes: Uint8Array) => void;
  readonly opened?: (socket: WebSocket) => void;
}

/** Returns the exit code. */
async function session(credentials: Credentials, path: string, options: Session): Promise<number> {
  options.signal?.throwIfAborted();
  const { tls, token } = await credentials.access();
  const { insecure, ...certificates } = tls;
  const socket = new BunWebSocket(`${credentials.server.replace(/^http/, "ws")}${path}`, {
    protocols: ["v5.channel.k8s.io", "v4.channel.k8s.io"],
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    tls: { ...certificates, rejectUnauthorized: !insecure },
    ...(credentials.proxy !== undefined && { proxy: credentials.proxy }),
  });
  socket.binaryType = "arraybuffer";
  try {
    return await resultFrom(socket, options);
  } catch (error) {
    if (error instanceof NotOpened) throw await refusal(credentials, path);
    throw error;
  } finally {
    socket.close();
  }
}

function execPath(
  ref: ObjectRef,
  { container, command }: ExecOptions,
  kind: "streams" | "terminal" = "streams",
): string {
  // A terminal has one stream for everything that is printed.
  const streams = kind === "terminal" ? ["stdin", "stdout", "tty"] : ["stdout", "stderr"];
  const query = new URLSearchParams([
    ["container", container],
    ...streams.map((name) => [name, "true"]),
    ...command.map((word) => ["command", word]),
  ]);
  return `${objectPath(builtin.pods, ref, "exec")}?${query.toString()}`;
}

/** A WebSocket does not report the response that rejected it. */
class NotOpened extends Error {}

async function resultFrom(socket: WebSocket, { output, opened, signal }: Session): Promise<number> {
  let exitCode: number | undefined;
  let isOpen = false;
  await new Promise<void>((resolve, reject) => {
    // Without waiting for the other side, which may be unreachable.
    signal?.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
    socket.addEventListener("open", () => {
      isOpen = true;
      opened?.(socket);
    });
    socket.addEventListener("error", () => isOpen || reject(new NotOpened()));
    socket.addEventListener("close", () => (isOpen ? resolve() : reject(new NotOpened())));
    socket.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => {
      const [channel, ...rest] = new Uint8Array(data);
      const bytes = Uint8Array.from(rest);
      if (channel === channels.stdout || channel === channels.stderr) output(channel, bytes);
      else if (channel === channels.result) exitCode = exitCodeIn(new TextDecoder().decode(bytes));
    });
  });
  if (exitCode === undefined) throw new ConnectionError("exec", { code: "CLOSED" });
  return exitCode;
}

const abortReason = ({ reason }: AbortSignal): Error =>
  reason instanceof Error ? reason : new Error("aborted", { cause: reason });

/** The `Status` of a command that failed has its exit code as a cause. */
function exitCodeIn(text: string): number {
  const status = parseJson(text);
  if (textAt(status, "status") === "Success") return 0;
  const causes = arrayAt(objectAt(status, "details"), "causes");
  const code = textAt(
    causes.find((cause) => textAt(cause, "reason") === "ExitCode"),
    "message",
  );
  if (code !== undefined) return Number(code);
  const reason = textAt(status, "reason") ?? "Unknown";
  throw new ApiError("exec", { status: 500, reason, message: textAt(status, "message") ?? "no explanation" });
}

/** The same request without an upgrade: its response shows why the API server does not allow the command. */
async function refusal(credentials: Credentials, path: string): Promise<Error> {
  const { tls, token } = await credentials.access();
  const call = `exec ${path.split("?", 1)[0]}`;
  try {
    const response = await fetchTransport({
      method: "GET",
      url: `${credentials.server}${path}`,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      tls,
      ...(credentials.proxy !== undefined && { proxy: credentials.proxy }),
      signal: AbortSignal.timeout(10_000),
      freshConnection: true,
    });
    return await parseApiError(call, response);
  } catch (cause) {
    return new ConnectionError(call, { code: "NO_UPGRADE", cause });
  }
}
