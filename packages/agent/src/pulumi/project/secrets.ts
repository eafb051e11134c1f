/**
 * Encrypts secret configuration with the CLI. Values are passed on standard input, because every process of the node could
 * read an argument, and audit logs record it. Ciphertexts are cached in memory while the stack's keys stay the same, so a
 * new commit encrypts nothing.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { done, failed, type Outcome } from "../../outcome.ts";
import { jsonDigest } from "../../system/digest.ts";
import { readIfExists, writeAtomically } from "../../system/files.ts";
import type { PulumiCli } from "../cli.ts";
import { explainEnd } from "../explain.ts";
import { readCiphertext, readStackKeys, renderSettings, type StackKeys } from "./settings.ts";

interface Encryption {
  readonly cli: PulumiCli;
  /** The agent's project folder (stack.ts). */
  readonly folder: string;
  readonly project: string;
  readonly stack: string;
  readonly signal: AbortSignal;
}

/** An arbitrary key: only the ciphertext is used. */
const scratchKey = "agent:value";
const parallel = 4;

export class SecretStore {
  readonly #ciphertexts = new Map<string, string>();

  /** Returns the ciphertexts and the stack's keys, which the CLI may have just created. */
  async encrypt(
    values: readonly string[],
    keys: StackKeys,
    encryption: Encryption,
  ): Promise<Outcome<{ ciphertexts: ReadonlyMap<string, string>; keys: StackKeys }>> {
    let current = keys;
    const missing = (): string[] => [...new Set(values)].filter((value) => !this.#has(value, current, encryption));
    // The first value alone, because it may create the keys that the others must use.
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

/** A digest, so that the value itself is not kept in memory. */
function cacheKey(value: string, keys: StackKeys, { project, stack }: Encryption): string {
  return jsonDigest([project, stack, keys, value]);
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
      // The CLI removes one trailing line break.
      input: `${value}\n`,
      signal,
    });
    if (end.kind !== "exited" || end.code !== 0) {
      return explainEnd(end, "a secret configuration value cannot be encrypted", cli.redactor);
    }
    const written = (await readIfExists(file)) ?? "";
    const ciphertext = readCiphertext(written, scratchKey);
    if (ciphertext === undefined) return failed("other", "the CLI did not encrypt a secret configuration value");
    return done({ ciphertext, keys: readStackKeys(written) });
  } finally {
    await rm(file, { force: true });
  }
}
