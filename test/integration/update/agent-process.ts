/** A real agent in a separate process, with a certificate of a scene, and the real CLI, whose calls are counted. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readyPort } from "@pko/agent/testing";
import { goProgramEnv, toolPath } from "@pko/cluster";
import type { OperatorCa } from "@pko/operator";
import type { WorkspaceRef } from "@pko/rpc";
import { programPath, waitFor } from "@pko/testkit";

/** Everything that a workspace's pod would contain. */
export class AgentProcess implements AsyncDisposable {
  readonly #root = mkdtempSync(join(tmpdir(), "pko-update-it-"));
  readonly #command: readonly string[];
  #child: ChildProcess | undefined;
  log = "";

  /** The current agent, unless another command is given. */
  constructor(command: readonly string[] = [process.execPath, programPath("agent")]) {
    this.#command = command;
  }

  get share(): string {
    return join(this.#root, "share");
  }

  /** Every command of the CLI so far, by its arguments. */
  cliCalls(): string[] {
    const log = join(this.#root, "cli.log");
    return existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : [];
  }

  /** The file of a stack in the backend. */
  stateOf(project: string, stack: string): string {
    return readFileSync(join(this.#root, "backend/.pulumi/stacks", project, `${stack}.json`), "utf8");
  }

  #cli(): string {
    const path = join(this.#root, "pulumi");
    const log = `printf '%s\\n' "$(printf '%s' "$*" | tr '\\n' ' ')" >> '${join(this.#root, "cli.log")}'`;
    writeFileSync(path, `#!/bin/sh\n${log}\nexec '${toolPath("quick-pulumi")}' "$@"\n`, { mode: 0o755 });
    return path;
  }

  async start(operatorCa: OperatorCa, workspace: WorkspaceRef): Promise<number> {
    for (const folder of ["tls", "share", "backend", "home"]) mkdirSync(join(this.#root, folder), { recursive: true });
    const { ca, cert, key } = await operatorCa.workspaceCertificate(workspace);
    for (const [name, text] of Object.entries({ "ca.crt": ca, "tls.crt": cert, "tls.key": key })) {
      writeFileSync(join(this.#root, "tls", name), text);
    }
    const folders = ["--share", join(this.#root, "share"), "--tls", join(this.#root, "tls")];
    const flags = ["--host", "127.0.0.1", "--port", "0", "--pulumi", this.#cli(), ...folders];
    const [file = "", ...first] = this.#command;
    this.#child = spawn(file, [...first, ...flags], { env: this.#env(), stdio: ["ignore", "ignore", "pipe"] });
    this.#child.stderr?.on("data", (data: Buffer) => (this.log += data.toString()));
    return await waitFor(() => readyPort(this.log), { timeoutMs: 45_000, what: "the agent to be ready" });
  }

  #env(): Record<string, string> {
    const tools = (["quick-pulumi", "pulumi-language-yaml"] as const).map((name) => dirname(toolPath(name)));
    return {
      ...goProgramEnv,
      PATH: [...tools, process.env["PATH"] ?? ""].join(":"),
      HOME: join(this.#root, "home"),
      PULUMI_HOME: join(this.#root, "home", ".pulumi"),
      PULUMI_BACKEND_URL: `file://${join(this.#root, "backend")}`,
      PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
      // Prevents downloads.
      HTTPS_PROXY: "http://127.0.0.1:9",
      NO_PROXY: "127.0.0.1",
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    if (child && child.exitCode === null) {
      const exited = new Promise((resolve) => {
        child.once("exit", resolve);
      });
      child.kill("SIGKILL");
      await exited;
    }
    rmSync(this.#root, { recursive: true, force: true });
  }
}
