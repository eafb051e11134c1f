import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

import { createAuthorities, issueWorkspaceCertificate } from "@pko/rpc/pki";
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";

import { readyPort } from "./testing/ready-port.ts";
import { temporaryFolder } from "./testing/folders.ts";
import { writeCertificate } from "./testing/certificate.ts";

setDefaultTimeout(60_000);

/** What a process that does not wait for its reader needs at most to end. */
const endMs = 2_000;

/** A pipe that the test reads only when it wants to. */
class SlowPipe {
  readonly #path = join(temporaryFolder(), "pipe");
  readonly #reader: number;
  /** For the process. */
  readonly writer: number;

  constructor() {
    execFileSync("mkfifo", [this.#path]);
    this.#reader = openSync(this.#path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.writer = openSync(this.#path, constants.O_WRONLY);
  }

  fill(): void {
    const filler = openSync(this.#path, constants.O_WRONLY | constants.O_NONBLOCK);
    const emptyLines = Buffer.alloc(1024, "\n");
    while (whileItCan(() => writeSync(filler, emptyLines)) !== undefined);
    closeSync(filler);
  }

  /** What has been written since the last call. */
  read(): string {
    const buffer = Buffer.alloc(1 << 20);
    const count = whileItCan(() => readSync(this.#reader, buffer)) ?? 0;
    return buffer.toString("utf8", 0, count);
  }

  async readUntil<Found>(find: (text: string) => Found | undefined): Promise<Found> {
    for (let text = this.read(); ; text += this.read()) {
      const found = find(text);
      if (found !== undefined) return found;
      await Bun.sleep(5);
    }
  }

  /** What the process writes until it ends, read when it could have ended already. */
  async readLate(child: Bun.Subprocess): Promise<string> {
    await Promise.race([child.exited, Bun.sleep(endMs)]);
    let text = this.read();
    while (child.exitCode === null) {
      await Bun.sleep(5);
      text += this.read();
    }
    return (text + this.read()).trimStart();
  }

  close(): void {
    closeSync(this.#reader);
    closeSync(this.writer);
  }
}

/** Undefined if the pipe is full, or empty. */
function whileItCan<Result>(io: () => Result): Result | undefined {
  try {
    return io();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return undefined;
    throw error;
  }
}

const started: { pipe: SlowPipe; child: Bun.Subprocess }[] = [];

afterEach(() => {
  for (const { pipe, child } of started.splice(0)) {
    child.kill("SIGKILL");
    pipe.close();
  }
});

function startAgent(stream: "stdout" | "stderr", pipe: SlowPipe, args: readonly string[]): Bun.Subprocess {
  const command = [process.execPath, join(import.meta.dir, "main.ts"), ...args];
  const output = { stdout: "ignore", stderr: "ignore", [stream]: pipe.writer } as const;
  const child = Bun.spawn(command, { ...output, stdin: "ignore" });
  started.push({ pipe, child });
  return child;
}

async function servingFlags(): Promise<string[]> {
  const folder = temporaryFolder();
  const now = new Date();
  const certificate = await issueWorkspaceCertificate(
    await createAuthorities(now),
    { namespace: "test", name: "web" },
    now,
  );
  writeCertificate(folder, certificate);
  return ["--share", folder, "--tls", folder, "--host", "127.0.0.1", "--port", "0"];
}

test.each(["SIGTERM", "SIGINT"] as const)(
  "an agent that %s ends loses no line if its log is read slowly",
  async (signal) => {
    const pipe = new SlowPipe();
    const agent = startAgent("stderr", pipe, await servingFlags());
    await pipe.readUntil(readyPort);
    pipe.fill();
    agent.kill(signal);
    const text = await pipe.readLate(agent);
    expect(text).toContain(`"signal":"${signal}"`);
    expect(text).toEndWith("}\n");
    expect(text).toContain('"msg":"agent stopped"');
    expect(agent.exitCode).toBe(0);
  },
);

test("an agent that fails logs the reason if its log is read slowly", async () => {
  const pipe = new SlowPipe();
  pipe.fill();
  const agent = startAgent("stderr", pipe, ["--port", "nonsense"]);
  const text = await pipe.readLate(agent);
  expect(text).toContain('"msg":"agent failed"');
  expect(text).toContain("--port must be a whole number");
  expect(agent.exitCode).toBe(1);
});

test("a command prints everything if its output is read slowly", async () => {
  const pipe = new SlowPipe();
  pipe.fill();
  const agent = startAgent("stdout", pipe, ["--help"]);
  expect(await pipe.readLate(agent)).toContain("--grace-seconds");
  expect(agent.exitCode).toBe(0);
});
