/** Atomic writes, reads with a limit, and paths that stay inside a folder. */
import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { Excerpt } from "./redact.ts";

export async function writeAtomically(path: string, text: string, mode = 0o600): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, text, { mode, flush: true });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Writes the entries of a folder to disk: without this, a file that was created or renamed there may be lost with the node's power, even
 * if its content was flushed. Some file systems cannot do this, and do not need it or offer nothing else.
 */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } catch (error) {
    if (!hasCode(error, "EINVAL", "ENOTSUP")) throw error;
  } finally {
    await folder.close();
  }
}

/** The text of a file, or undefined if it does not exist. */
export async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

export interface Tail extends Excerpt {
  /** The size of the file. */
  readonly bytes: number;
  readonly isCutAtStart: boolean;
}

/** The end of a file, at most `maxBytes` of it. */
export async function readTail(path: string, maxBytes: number): Promise<Tail> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, "r");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return { text: "", bytes: 0, isCutAtStart: false };
    throw error;
  }
  try {
    const { size } = await file.stat();
    const length = Math.min(size, maxBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    const text = new TextDecoder().decode(buffer.subarray(0, bytesRead));
    return { text, bytes: size, isCutAtStart: size > maxBytes };
  } finally {
    await file.close();
  }
}

export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}

export async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/** Normalizes a relative path; undefined if it is absolute or contains "..". "." is the folder itself. */
export function normalizeRelative(path: string): string | undefined {
  if (path.includes("\0") || isAbsolute(path)) return undefined;
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return parts.includes("..") ? undefined : parts.join("/") || ".";
}

export function isInside(folder: string, path: string): boolean {
  const route = relative(folder, path);
  return route === "" || (route !== ".." && !route.startsWith(`..${sep}`) && !isAbsolute(route));
}

type Resolved =
  { readonly ok: true; readonly path: string } | { readonly ok: false; readonly problem: "missing" | "outside" };

/** Resolves the links in `path` within `folder`; rejects a path that leads outside. */
export async function resolveInside(folder: string, path: string): Promise<Resolved> {
  const clean = normalizeRelative(path);
  if (clean === undefined) return { ok: false, problem: "outside" };
  try {
    const root = await realpath(folder);
    const real = await realpath(join(root, clean));
    return isInside(root, real) ? { ok: true, path: real } : { ok: false, problem: "outside" };
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR", "ELOOP")) return { ok: false, problem: "missing" };
    throw error;
  }
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
