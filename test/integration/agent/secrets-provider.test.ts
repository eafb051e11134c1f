/** Who encrypts a stack's secrets: a passphrase or a key of a cloud, and what is said where the stack has another. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { program, pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(180_000);

/** The two calls of AWS KMS that Pulumi makes; the "ciphertext" is the text turned round. */
const kms = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { Plaintext, CiphertextBlob, KeyId } = (await request.json()) as Record<string, string | undefined>;
    const turned = (text = ""): string => Buffer.from(Buffer.from(text, "base64").toReversed()).toString("base64");
    const isEncryption = request.headers.get("x-amz-target") === "TrentService.Encrypt";
    const answer = isEncryption ? { CiphertextBlob: turned(Plaintext) } : { Plaintext: turned(CiphertextBlob) };
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

/** Not synchronously: the key is served from here. */
async function change(web: TestWorkspace, ...args: string[]): Promise<void> {
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
  test("is a key of AWS KMS for a new stack: no passphrase is needed", async () => {
    const web = await new TestWorkspace({ env: { ...credentials, PULUMI_CONFIG_PASSPHRASE: "" } }).start();
    const prepared = await web.prepare(kept, { config, secretsProvider: key });
    expect(prepared.warning).toBeUndefined();
    expect((await web.run("up-1", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-1")).toEqual([
      { name: "password", secret: true, known: true, value: "canary-password" },
    ]);
  });

  test("that cannot be reached is told by name, and no stack is made", async () => {
    const nobody = { ...credentials, AWS_ENDPOINT_URL_KMS: "http://127.0.0.1:9" };
    const web = await new TestWorkspace({ env: nobody }).start();
    const failure = await web.tryPrepare(kept, { config, secretsProvider: key });
    expect(failure).toMatchObject({ phase: "stack", reason: "other" });
    expect(JSON.stringify(failure)).toContain("KMS: Encrypt");
    expect(JSON.stringify(failure)).toContain("connection refused");
  });

  test("of a stack that has another is explained; what it has is used until somebody changes it", async () => {
    const web = await new TestWorkspace({ env: credentials }).start();
    expect((await web.prepare(kept, { config })).warning).toBeUndefined();
    expect((await web.run("up-1", { kind: "up" })).outcome).toBe("succeeded");

    const { warning } = await web.prepare(kept, { config, secretsProvider: key });
    expect(warning).toContain(`encrypted by a passphrase, and secretsProvider`);
    expect(warning).toContain(`pulumi stack change-secrets-provider "${key}"`);
    expect((await web.run("up-2", { kind: "up" })).outcome).toBe("succeeded");
    expect((await web.prepare(kept, { config, secretsProvider: "passphrase" })).warning).toBeUndefined();

    await change(web, "change-secrets-provider", "--stack=dev", key);
    expect((await web.prepare(kept, { config, secretsProvider: key })).warning).toBeUndefined();
    expect((await web.run("up-3", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-3")).toMatchObject([{ name: "password", value: "canary-password" }]);
  });
});

describe("a passphrase", () => {
  test("that is not the stack's is told in words that help", async () => {
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
