/** The Makefile's cluster commands, as a user runs them. */
import { join } from "node:path";

const program = join(import.meta.dir, "../../hack/cluster/src/main.ts");

export interface Outcome {
  readonly code: number;
  readonly output: string;
}

interface Surroundings {
  readonly env?: Record<string, string>;
  /** Words before the command, such as those that change the user. */
  readonly through?: readonly string[];
}

export async function cluster(command: "up" | "down", { env = {}, through = [] }: Surroundings = {}): Promise<Outcome> {
  const child = Bun.spawn([...through, process.execPath, program, command], {
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
