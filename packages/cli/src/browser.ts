/** Opens an address in the user's browser. */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Io } from "./io.ts";

/** Long enough for a browser that must start first. */
const fileLifetimeMs = 60_000;

/**
 * Every user of the machine can read the arguments of a process. So the browser is started with a file that only this
 * user can read, and that leads to the address.
 */
export async function openInBrowser(io: Pick<Io, "env" | "signal">, url: string): Promise<"opened" | "failed"> {
  const folder = await mkdtemp(join(io.env["XDG_RUNTIME_DIR"] ?? tmpdir(), "pulumi-console-"));
  await chmod(folder, 0o700);
  const file = join(folder, "console.html");
  await writeFile(file, redirectPage(url), { mode: 0o600 });
  const remove = async (): Promise<void> => await rm(folder, { recursive: true, force: true });
  const timer = setTimeout(() => void remove(), fileLifetimeMs);
  timer.unref();
  io.signal.addEventListener("abort", () => void remove(), { once: true });
  try {
    const command = process.platform === "darwin" ? "open" : "xdg-open";
    const child = Bun.spawn([command, file], { stdin: "ignore", stdout: "ignore", stderr: "ignore", env: io.env });
    if ((await child.exited) === 0) return "opened";
  } catch {
    // There is no such program.
  }
  await remove();
  return "failed";
}

const redirectPage = (url: string): string =>
  `<!doctype html><meta charset="utf-8"><title>Pulumi</title><meta http-equiv="refresh" content="0; url=${url}"><a href="${url}">Open the console</a>\n`;
