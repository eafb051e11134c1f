/** How a stack's secrets are encrypted: with a passphrase or a cloud key, and the warning if the stack has another. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { program, pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(180_000);

/** The two AWS KMS calls that Pulumi uses; the "ciphertext" is the reversed text. */
const kms = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { Plaintext, CiphertextBlob, KeyId } = (await request.json()) as Record<string, string | undefined>;
    const reversed = (text = ""): string => Buffer.from(Buffer.from(text, "base64").toReversed()).toString("base64");
    const isEncryption = request.headers.get("x-amz-target") === "TrentService.Encrypt";
    const answer = isEncryption ? { CiphertextBlob: reversed(Plaintext) } : { Plaintext: reversed(CiphertextBlob) };
    return Response.json({ KeyId: KeyId ?? "key", EncryptionAlgorithm: "SYMMETRIC_DEFAULT", ...answer });
  },
});
afterAll(() => kms.stop(true));

const key = "awskms://alias/pulumi?region=eu-west-1";
const credentials = {
  AWS_ACCESS_KEY_ID: "id",
  AWS_SECRET_ACCESS_KEY: "secret",
  AWS_ENDPOINT_URL_KMS: `http://127.0.0.1:${kms.port}`,
};
const kept = program({
  configuration: { password: { type: "string", secret: true } },
  resources: { kept: stash("${password}") },
  outputs: { password: "${kept.output}" },
});
const config = [{ key: "password", secret: true, value: { from: "value" as const, value: "canary-password" } }];

/** Asynchronous, because this process serves the key. */
async function runStackCommand(web: TestWorkspace, ...args: string[]): Promise<void> {
  await promisify(execFile)(pulumi, ["--non-interactive", "stack", ...args], {
    cwd: join(web.share, "workspace"),
    env: {
      PATH: `${toolFolders.join(":")}:${process.env["PATH"] ?? ""}`,
      HOME: join(web.root, "home"),
      PULUMI_BACKEND_URL: `file://${web.backend}`,
      PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
      ...credentials,
    },
  });
}

describe("secretsProvider", () => {
  test("may be an AWS KMS key for a new stack, which then needs no passphrase", async () => {
    const web = await new TestWorkspace({ env: { ...credentials, PULUMI_CONFIG_PASSPHRASE: "" } }).start();
    const prepared = await web.prepare(kept, { config, secretsProvider: key });
    expect(prepared.warning).toBeUndefined();
    expect((await web.run("up-1", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-1")).toEqual([
      { name: "password", secret: true, known: true, value: "canary-password" },
    ]);
  });

  test("that is unreachable is reported by name, and no stack is created", async () => {
    const offline = { ...credentials, AWS_ENDPOINT_URL_KMS: "http://127.0.0.1:9" };
    const web = await new TestWorkspace({ env: offline }).start();
    const failure = await web.tryPrepare(kept, { config, secretsProvider: key });
    expect(failure).toMatchObject({ phase: "stack", reason: "other" });
    expect(JSON.stringify(failure)).toContain("KMS: Encrypt");
    expect(JSON.stringify(failure)).toContain("connection refused");
  });

  test("that differs from the stack's is reported, and the stack's is used until a user changes it", async () => {
    const web = await new TestWorkspace({ env: credentials }).start();
    expect((await web.prepare(kept, { config })).warning).toBeUndefined();
    expect((await web.run("up-1", { kind: "up" })).outcome).toBe("succeeded");

    const { warning } = await web.prepare(kept, { config, secretsProvider: key });
    expect(warning).toContain(`encrypted by a passphrase, not by ${key}, because secretsProvider`);
    expect(warning).toContain(`pulumi stack change-secrets-provider "${key}"`);
    expect((await web.run("up-2", { kind: "up" })).outcome).toBe("succeeded");
    expect((await web.prepare(kept, { config, secretsProvider: "passphrase" })).warning).toBeUndefined();

    await runStackCommand(web, "change-secrets-provider", "--stack=dev", key);
    expect((await web.prepare(kept, { config, secretsProvider: key })).warning).toBeUndefined();
    expect((await web.run("up-3", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-3")).toMatchObject([{ name: "password", value: "canary-password" }]);
  });
});

describe("a passphrase", () => {
  test("that is not the stack's is reported with the remedy", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(kept, { config });
    expect((await web.run("up-1", { kind: "up" })).outcome).toBe("succeeded");
    const other = await new TestWorkspace({
      env: { PULUMI_BACKEND_URL: `file://${web.backend}`, PULUMI_CONFIG_PASSPHRASE: "canary-other" },
    }).start();
    const failure = await other.tryPrepare(kept, { config });
    expect(failure).toMatchObject({ phase: "config" });
    expect(JSON.stringify(failure)).toContain("PULUMI_CONFIG_PASSPHRASE is not the passphrase");
  });
});
