/** The Makefile's cluster commands, as a user runs them. */
import { join } from "node:path";

const program = join(import.meta.dir, "../../hack/cluster/src/main.ts");

export interface Outcome {
  readonly code: number;
  readonly output: string;
}

interface Environment {
  readonly env?: Record<string, string>;
  /** A prefix of the command, for example to change the user. */
  readonly prefix?: readonly string[];
}

export async function cluster(command: "up" | "down", { env = {}, prefix = [] }: Environment = {}): Promise<Outcome> {
  const child = Bun.spawn([...prefix, process.execPath, program, command], {
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, output: stdout + stderr };
}
