/**
 * Secret configuration, encrypted by the CLI. Values go in through standard input: an argument would be readable by
 * every process of the node and end up in its audit log. Each ciphertext is remembered, in memory, for as long as the
 * stack's keys stay the same, so a new commit encrypts nothing.
 */
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { done, failed, type Outcome } from "../outcome.ts";
import { readIfThere, writeAtomically } from "../system/files.ts";
import type { PulumiCli } from "./cli.ts";
import { explainEnd } from "./explain.ts";
import { readCiphertext, readStackKeys, renderSettings, type StackKeys } from "./settings.ts";

interface Encryption {
  readonly cli: PulumiCli;
  /** A project folder of the agent's own (stack.ts). */
  readonly folder: string;
  readonly project: string;
  readonly stack: string;
  readonly signal: AbortSignal;
}

/** A key of no meaning: only the ciphertext is taken. */
const scratchKey = "agent:value";
const parallel = 4;

export class SecretStore {
  readonly #ciphertexts = new Map<string, string>();

  /** The ciphertext of each value, and the keys they are encrypted with: the CLI may have made them just now. */
  async encrypt(
    values: readonly string[],
    keys: StackKeys,
    encryption: Encryption,
  ): Promise<Outcome<{ ciphertexts: ReadonlyMap<string, string>; keys: StackKeys }>> {
    let current = keys;
    const missing = (): string[] => [...new Set(values)].filter((value) => !this.#has(value, current, encryption));
    // The first one alone: it may make the keys that the others have to share.
    for (let width = 1, todo = missing(); todo.length > 0; width = parallel, todo = missing()) {
      const batch = await Promise.all(
        todo.slice(0, width).map((value, index) => encryptOne({ value, index, keys: current }, encryption)),
      );
      for (const [index, outcome] of batch.entries()) {
        if (!outcome.ok) return outcome;
        current = outcome.value.keys;
        this.#ciphertexts.set(cacheKey(todo[index] ?? "", current, encryption), outcome.value.ciphertext);
      }
    }
    const entries = values.map((value) => {
      const ciphertext = this.#ciphertexts.get(cacheKey(value, current, encryption)) ?? "";
      return [value, ciphertext] as const;
    });
    return done({ ciphertexts: new Map(entries), keys: current });
  }

  #has(value: string, keys: StackKeys, encryption: Encryption): boolean {
    return this.#ciphertexts.has(cacheKey(value, keys, encryption));
  }
}

/** A digest: the value itself is not kept. */
function cacheKey(value: string, keys: StackKeys, { project, stack }: Encryption): string {
  return createHash("sha256")
    .update(JSON.stringify([project, stack, keys, value]))
    .digest("base64");
}

interface OneValue {
  readonly value: string;
  readonly index: number;
  readonly keys: StackKeys;
}

async function encryptOne(
  { value, index, keys }: OneValue,
  encryption: Encryption,
): Promise<Outcome<{ ciphertext: string; keys: StackKeys }>> {
  const { cli, folder, project, stack, signal } = encryption;
  const file = join(folder, `secret-${index}.yaml`);
  const empty = renderSettings(undefined, { project, keys, settings: [], environments: [] });
  if (!empty.ok) return empty;
  try {
    await writeAtomically(file, empty.value);
    const end = await cli.run({
      args: ["config", "set", "--secret", "--stack", stack, "--config-file", file, "--", scratchKey],
      cwd: folder,
      // The CLI takes one line break off the end.
      input: `${value}\n`,
      signal,
    });
    if (end.kind !== "exited" || end.code !== 0) {
      return explainEnd(end, "a secret configuration value cannot be encrypted", cli.redactor);
    }
    const written = (await readIfThere(file)) ?? "";
    const ciphertext = readCiphertext(written, scratchKey);
    if (ciphertext === undefined) return failed("other", "the CLI did not encrypt a secret configuration value");
    return done({ ciphertext, keys: readStackKeys(written) });
  } finally {
    await rm(file, { force: true });
  }
}
