/** The real Pulumi CLI in a temporary project folder, isolated from this machine's environment. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { pulumi, toolFolders } from "../agent/harness.ts";

interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class Cli {
  readonly folder = mkdtempSync(join(tmpdir(), "pko-cloud-"));
  readonly #env: Readonly<Record<string, string>>;

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = {
      PATH: [...toolFolders, "/usr/bin", "/bin"].join(":"),
      HOME: this.folder,
      PULUMI_HOME: join(this.folder, ".pulumi"),
      PULUMI_SKIP_UPDATE_CHECK: "true",
      ...env,
    };
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  spawn(...args: readonly string[]) {
    return Bun.spawn([pulumi, "--non-interactive", "--color=never", ...args], {
      cwd: this.folder,
      env: this.#env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  async try(...args: readonly string[]): Promise<CliResult> {
    const child = this.spawn(...args);
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { code, stdout, stderr };
  }

  async run(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.try(...args);
    if (code !== 0) throw new Error(`pulumi ${args.join(" ")} exited with code ${code}:\n${stdout}\n${stderr}`);
    return stdout;
  }

  dispose(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
