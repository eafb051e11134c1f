/** Runs other programs and captures their output. */
interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  /** Interrupts the command. */
  readonly signal?: AbortSignal;
}

interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command and returns its exit code and output. */
export async function attempt(command: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const child = Bun.spawn([...command], {
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    env: { ...process.env, ...options.env },
    ...(options.signal && { signal: options.signal, killSignal: "SIGINT" }),
    stdin: options.input === undefined ? "ignore" : new TextEncoder().encode(options.input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Runs a command that must succeed, and returns its standard output. */
export async function run(command: readonly string[], options: CommandOptions = {}): Promise<string> {
  const result = await attempt(command, options);
  if (result.code !== 0) throw new CommandFailed(command, result);
  return result.stdout;
}

export class CommandFailed extends Error {
  constructor(command: readonly string[], result: CommandResult) {
    const output = `${result.stderr}${result.stdout}`.trim().split("\n").slice(-15).join("\n");
    super(`${command.join(" ")} exited with code ${result.code}:\n${output}`);
    this.name = "CommandFailed";
  }
}

export function isOnPath(program: string): boolean {
  return Bun.which(program) !== null;
}
