import { describe, expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { identifyCli } from "./cli-file.ts";
import { PulumiCli } from "./cli.ts";
import { SignIn } from "./cloud/sign-in.ts";
import { readEnvFile } from "./env-file.ts";
import { Caches } from "./project/caches.ts";

const root = temporaryFolder();
const file = join(root, "pulumi");
writeFileSync(file, "#!/bin/sh\necho v3.200.0\n");
chmodSync(file, 0o755);

interface Changes {
  readonly state?: string;
  readonly file?: string;
  readonly caches?: Caches;
}

function cli(inherited: NodeJS.ProcessEnv, changes: Changes = {}): PulumiCli {
  const redactor = new Redactor();
  const log = createLog(redactor, () => undefined);
  const signIn = new SignIn({ oidc: undefined, redactor, log });
  return new PulumiCli({ file, state: join(root, "state"), inherited, redactor, signIn, ...changes });
}

test("the program gets every variable of the pod except the agent's own", async () => {
  const inherited = { AGENT_NAME: "smith", OPERATOR_MODE: "x", PULUMI_OPERATOR_SECRET_VARIABLES: "DATABASE_URL" };
  const environment = await cli(inherited).environment();
  expect(environment).toMatchObject({ AGENT_NAME: "smith", OPERATOR_MODE: "x" });
  expect(environment).not.toHaveProperty("PULUMI_OPERATOR_SECRET_VARIABLES");
});

test("a volume with caches that cannot be used does not keep commands from running", async () => {
  const volume = join(root, "volume");
  const home = join(root, "home");
  writeFileSync(volume, "");
  const log = createLog(new Redactor(), () => undefined);
  const caches = new Caches({ folder: volume, plugins: join(volume, "plugins"), log });
  const pulumi = cli({ PULUMI_HOME: home, npm_config_cache: join(volume, "npm") }, { caches });
  const environment = await pulumi.environment();
  expect(environment).toMatchObject({ PULUMI_HOME: home });
  expect(environment).not.toHaveProperty("npm_config_cache");
  expect(await pulumi.version()).toMatchObject({ ok: true });
});

describe("the CLI's version", () => {
  test("can be read in a new pod, before any folder exists", async () => {
    // With these the agent's folder is not created.
    const writable = { HOME: root, TMPDIR: root };
    expect(await cli(writable, { state: join(root, "fresh", "state") }).version()).toMatchObject({
      ok: true,
      value: { text: "3.200.0" },
    });
  });

  test("is a failure with the reason if it cannot be read, and is read again later", async () => {
    const named = join(root, "env");
    mkdirSync(named);
    const pulumi = cli({ PULUMI_ENV: named });
    const version = await pulumi.version();
    expect(version.ok ? "" : version.failure.message).toContain(`the file ${named} in PULUMI_ENV cannot be read`);
    rmSync(named, { recursive: true });
    expect(await pulumi.version()).toMatchObject({ ok: true });
  });

  test("is adopted without a start of the CLI if it is known for its executable", async () => {
    const bin = temporaryFolder();
    // It prints nothing, so its version cannot be read.
    copyFileSync("/bin/true", join(bin, "pulumi"));
    const known = { cli: (await identifyCli("pulumi", bin)) ?? "", version: "3.201.0" };
    const other = cli({ PATH: bin }, { file: "pulumi" });
    await other.adoptVersion([{ ...known, cli: "another" }]);
    expect(await other.version()).toMatchObject({ ok: false });
    const same = cli({ PATH: bin }, { file: "pulumi" });
    await same.adoptVersion([{ cli: "another", version: "3.1.0" }, known]);
    expect(await same.version()).toMatchObject({ ok: true, value: { text: "3.201.0" } });
    expect(same.knownVersion?.text).toBe("3.201.0");
  });

  test("is not adopted if the CLI has reported it, or if it is no version", async () => {
    const bin = temporaryFolder();
    copyFileSync("/bin/true", join(bin, "pulumi"));
    const identity = (await identifyCli("pulumi", bin)) ?? "";
    const pulumi = cli({ PATH: bin }, { file: "pulumi" });
    await pulumi.adoptVersion([{ cli: identity, version: "latest" }]);
    expect(await pulumi.version()).toMatchObject({ ok: false });
    await pulumi.adoptVersion([{ cli: identity, version: "3.201.0" }]);
    await pulumi.adoptVersion([{ cli: identity, version: "3.202.0" }]);
    expect(await pulumi.version()).toMatchObject({ ok: true, value: { text: "3.201.0" } });
  });
});

/** An init container may run as another user; root may read anything. */
test.if(process.getuid?.() === 0)("an unreadable file of variables is reported with the remedy", async () => {
  const named = join(root, "owned");
  writeFileSync(named, "A=1\n", { mode: 0o600 });
  chownSync(root, 0, 0);
  chmodSync(root, 0o755);
  process.seteuid?.(1000);
  try {
    const remedy = "(UID 1000) has no permission; make it readable in the init container that writes it (chmod 644)";
    expect(await readEnvFile(named).catch(String)).toContain(remedy);
  } finally {
    process.seteuid?.(0);
  }
});
