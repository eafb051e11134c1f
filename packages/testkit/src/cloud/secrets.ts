/** The secrets provider of the service: values are encrypted with a key per stack that never leaves the server. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

import { Refusal, type Answer, type Call } from "./http.ts";
import type { Stacks } from "./stacks.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

function encrypt(key: Buffer, plaintext: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce);
  const sealed = [cipher.update(Buffer.from(plaintext, "base64")), cipher.final()];
  return Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]).toString("base64");
}

function decrypt(key: Buffer, ciphertext: string): string {
  const bytes = Buffer.from(ciphertext, "base64");
  try {
    const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes));
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    const opened = [decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()];
    return Buffer.concat(opened).toString("base64");
  } catch {
    throw new Refusal(400, "Bad Request: the ciphertext belongs to another stack");
  }
}

export class Secrets {
  readonly #stacks: Stacks;

  constructor(stacks: Stacks) {
    this.#stacks = stacks;
  }

  async encrypt(call: Call): Promise<Answer> {
    const { secretKey } = this.#stacks.of(call);
    return { ciphertext: encrypt(secretKey, (await call.json<{ plaintext: string }>()).plaintext) };
  }

  async decrypt(call: Call): Promise<Answer> {
    const { secretKey } = this.#stacks.of(call);
    return { plaintext: decrypt(secretKey, (await call.json<{ ciphertext: string }>()).ciphertext) };
  }

  async batchEncrypt(call: Call): Promise<Answer> {
    const { secretKey } = this.#stacks.of(call);
    const { plaintexts } = await call.json<{ plaintexts: string[] }>();
    return { ciphertexts: plaintexts.map((plaintext) => encrypt(secretKey, plaintext)) };
  }

  async batchDecrypt(call: Call): Promise<Answer> {
    const { secretKey } = this.#stacks.of(call);
    const { ciphertexts } = await call.json<{ ciphertexts: string[] }>();
    return { plaintexts: Object.fromEntries(ciphertexts.map((each) => [each, decrypt(secretKey, each)])) };
  }
}
