/** Runs one git command: with bounded output, and killed when it takes too long. */
import { spawn } from "node:child_process";

interface GitCommand {
  readonly git: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

type GitEnd =
  | { readonly kind: "exited"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "missing" }
  | { readonly kind: "late" };

/** A repository with a hundred thousand refs fits. */
const maxOutput = 16 * 1024 * 1024;
const maxErrors = 64 * 1024;

export async function runGit({ git, args, cwd, env, timeoutMs, signal }: GitCommand): Promise<GitEnd> {
  if (signal.aborted) return { kind: "late" };
  // In a separate process group, so that ssh and the transport helpers end with it.
  const child = spawn(git, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has already ended.
    }
  };
  const out = { stdout: "", stderr: "" };
  child.stdout.on("data", (data: Buffer) => {
    if (out.stdout.length < maxOutput) out.stdout += data.toString("utf8");
    else kill();
  });
  child.stderr.on("data", (data: Buffer) => (out.stderr = (out.stderr + data.toString("utf8")).slice(-maxErrors)));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    kill();
  }, timeoutMs);
  signal.addEventListener("abort", kill, { once: true });
  try {
    return await new Promise<GitEnd>((resolve) => {
      child.on("error", () => resolve({ kind: "missing" }));
      child.on("close", (code) => resolve(isLate ? { kind: "late" } : { kind: "exited", code: code ?? 1, ...out }));
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
  }
}
