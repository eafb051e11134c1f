import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { stringify } from "yaml";

import { kubeconfigContexts, kubeconfigCredentials, type KubeconfigOptions } from "./kubeconfig.ts";
import { manualClock } from "../../manual-clock.ts";

let folder: string;
let files = 0;
const base64 = (text: string): string => Buffer.from(text).toString("base64");

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubeconfig-test-"));
  await mkdir(join(folder, "pki"));
  await writeFile(join(folder, "pki/ca.crt"), "CA FILE");
  await writeFile(join(folder, "pki/me.crt"), "CERT FILE");
  await writeFile(join(folder, "pki/me.key"), "KEY FILE");
});
afterAll(() => rm(folder, { recursive: true }));

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly rest?: object;
}

async function write(parts: Parts): Promise<string> {
  const path = join(folder, `config-${files++}`);
  const content = {
    clusters: [
      { name: "c", cluster: { server: "https://api:6443", ...parts.cluster } },
      { name: "other", cluster: { server: "https://other:6443/" } },
    ],
    users: [{ name: "u", user: parts.user ?? {} }],
    contexts: [
      { name: "main", context: { cluster: "c", user: "u", ...parts.context } },
      { name: "second", context: { cluster: "other" } },
    ],
    "current-context": "main",
    ...parts.rest,
  };
  await writeFile(path, stringify(content));
  return path;
}

async function load(parts: Parts, options?: KubeconfigOptions) {
  return await kubeconfigCredentials(await write(parts), options);
}

async function access(parts: Parts) {
  return await (await load(parts)).access();
}

describe("identities", () => {
  test("certificate and key inline", async () => {
    const cluster = { "certificate-authority-data": base64("CA") };
    const user = { "client-certificate-data": base64("CERT"), "client-key-data": base64("KEY") };
    expect(await access({ cluster, user })).toEqual({ tls: { ca: "CA", cert: "CERT", key: "KEY" } });
  });

  test("certificate and key in files, relative to the kubeconfig", async () => {
    const cluster = { "certificate-authority": "pki/ca.crt" };
    const user = { "client-certificate": "pki/me.crt", "client-key": join(folder, "pki/me.key") };
    expect(await access({ cluster, user })).toEqual({ tls: { ca: "CA FILE", cert: "CERT FILE", key: "KEY FILE" } });
  });

  test("a token", async () => {
    expect(await access({ user: { token: "t" } })).toEqual({ token: "t", tls: {} });
  });

  test("a token file, which takes precedence over a token and is reread as it rotates", async () => {
    await writeFile(join(folder, "token"), "one\n");
    const clock = manualClock();
    const credentials = await load({ user: { token: "t", tokenFile: "token" } }, { clock });
    expect((await credentials.access()).token).toBe("one");
    await writeFile(join(folder, "token"), "two\n");
    expect((await credentials.access()).token).toBe("one");
    await clock.advance(60_000);
    expect((await credentials.access()).token).toBe("two");
    await writeFile(join(folder, "token"), "three\n");
    expect((await credentials.access(true)).token).toBe("three");
    await rm(join(folder, "token"));
    await clock.advance(60_000);
    expect((await credentials.access()).token).toBe("three");
  });

  test("anonymous", async () => {
    expect(await access({ context: { user: undefined } })).toEqual({ tls: {} });
  });
});

describe("the connection to the server", () => {
  test("another server name in the certificate", async () => {
    const cluster = { "tls-server-name": "kubernetes" };
    expect(await access({ cluster })).toEqual({ tls: { serverName: "kubernetes" } });
  });

  test("no certificate verification", async () => {
    expect(await access({ cluster: { "insecure-skip-tls-verify": true } })).toEqual({ tls: { insecure: true } });
  });

  test("a proxy", async () => {
    expect(await load({ cluster: { "proxy-url": "http://proxy:3128" } })).toMatchObject({ proxy: "http://proxy:3128" });
  });

  test("the current context, or the requested one", async () => {
    const context = { namespace: "mine" };
    expect(await load({ context })).toMatchObject({ server: "https://api:6443", namespace: "mine" });
    expect(await load({}, { context: "second" })).toMatchObject({ server: "https://other:6443" });
  });
});

describe("an exec plugin", () => {
  /** Counts its runs and executes the given shell command. */
  async function plugin(status: string): Promise<{ command: string; runs: () => Promise<number> }> {
    const name = `plugin-${files++}`;
    const script = `#!/bin/sh\necho run >> "$0.runs"\n[ -n "$FAIL" ] && { echo secret-in-stderr >&2; exit 3; }\n${status}\n`;
    await writeFile(join(folder, name), script);
    await chmod(join(folder, name), 0o755);
    const runs = async (): Promise<number> => (await Bun.file(join(folder, `${name}.runs`)).text()).length / 4;
    return { command: `./${name}`, runs };
  }
  const exec = (command: string, more: object = {}): Parts => ({
    user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command, ...more } },
  });
  const credential = (status: object): string =>
    `echo '${JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status })}'`;

  test("provides a token that is cached until shortly before it expires", async () => {
    const clock = manualClock();
    const expirationTimestamp = new Date(clock.now() + 600_000).toISOString();
    const { command, runs } = await plugin(credential({ token: "t", expirationTimestamp }));
    const credentials = await load(exec(command), { clock });
    expect(await Promise.all([credentials.access(), credentials.access()])).toEqual([
      { token: "t", tls: {} },
      { token: "t", tls: {} },
    ]);
    await clock.advance(580_000);
    await credentials.access();
    expect(await runs()).toBe(1);
    await clock.advance(11_000);
    await credentials.access();
    expect(await runs()).toBe(2);
  });

  test("provides a token without expiry that is cached until the server rejects it", async () => {
    const clock = manualClock();
    const { command, runs } = await plugin(credential({ token: "t" }));
    const credentials = await load(exec(command), { clock });
    await credentials.access();
    await clock.advance(10 * 86_400_000);
    await credentials.access();
    expect(await runs()).toBe(1);
    await credentials.access(true);
    expect(await runs()).toBe(2);
  });

  test("provides a client certificate", async () => {
    const { command } = await plugin(credential({ clientCertificateData: "CERT", clientKeyData: "KEY" }));
    expect(await access(exec(command))).toEqual({ tls: { cert: "CERT", key: "KEY" } });
  });

  test("receives its arguments, its environment and, on request, the cluster", async () => {
    const { command } = await plugin(
      `printf '{"status":{"token":"%s %s %s"}}' "$1" "$GREETING" "$(echo "$KUBERNETES_EXEC_INFO" | tr -d '"')"`,
    );
    const more = { args: ["arg"], env: [{ name: "GREETING", value: "hello" }], provideClusterInfo: true };
    const { token } = await access(exec(command, more));
    expect(token).toStartWith("arg hello {apiVersion:client.authentication.k8s.io/v1,kind:ExecCredential");
    expect(token).toContain("cluster:{server:https://api:6443}");
  });

  describe("that fails does not leak a secret", () => {
    const cases: [string, string, object, string][] = [
      ["an exit code", "", { env: [{ name: "FAIL", value: "1" }] }, "failed (3)"],
      ["output that is not JSON", "echo secret-token", {}, "did not print an ExecCredential"],
      ["output without credentials", credential({}), {}, "neither a token nor a client certificate"],
    ];
    for (const [name, status, more, expected] of cases) {
      test(name, async () => {
        const { command } = await plugin(status);
        const error: unknown = await access(exec(command, more)).catch((error: unknown) => error);
        expect(String(error)).toContain(expected);
        expect(Bun.inspect(error)).not.toContain("secret-");
      });
    }
  });
});

describe("unsupported or invalid kubeconfigs are rejected", () => {
  const cases: [string, Parts, string][] = [
    ["impersonation", { user: { as: "someone" } }, '"as" of a user is not supported'],
    ["an auth provider", { user: { "auth-provider": {} } }, '"auth-provider" of a user'],
    ["a password", { user: { username: "u", password: "p" } }, '"username" of a user'],
    ["a SOCKS proxy", { cluster: { "proxy-url": "socks5://p" } }, "only http and https proxies"],
    [
      "a CA together with insecure-skip-tls-verify",
      { cluster: { "insecure-skip-tls-verify": true, "certificate-authority": "x" } },
      "mutually exclusive",
    ],
    [
      "an old exec plugin",
      { user: { exec: { apiVersion: "x/v1alpha1", command: "c" } } },
      "x/v1alpha1 is not supported",
    ],
    ["an exec plugin without a command", { user: { exec: {} } }, "exec has no command"],
    ["a cluster without a server", { cluster: { server: "" } }, "no server"],
    ["a missing cluster", { context: { cluster: "lost" } }, 'no cluster "lost"'],
    ["no context", { rest: { "current-context": "" } }, "no current-context"],
    ["a missing context", { rest: { "current-context": "lost" } }, 'no context "lost"'],
  ];
  for (const [name, parts, expected] of cases) {
    test(name, async () => {
      expect(String(await load(parts).catch((error: unknown) => error))).toContain(expected);
    });
  }

  test("a file that is not YAML, without quoting it", async () => {
    const path = join(folder, "broken");
    await writeFile(path, "users: [{token: secret-token");
    const error: unknown = await kubeconfigCredentials(path).catch((error: unknown) => error);
    expect(String(error)).toContain("is not YAML");
    expect(Bun.inspect(error)).not.toContain("secret-token");
  });
});

describe("several files", () => {
  test("for each entry, the first file that has it counts, and its paths are relative to it", async () => {
    const first = await write({ rest: { clusters: [], users: [] } });
    const second = await write({
      cluster: { "certificate-authority": "pki/ca.crt" },
      user: { token: "of-the-second" },
      rest: { "current-context": "second" },
    });
    const credentials = await kubeconfigCredentials([join(folder, "missing"), first, second]);
    expect(credentials.server).toBe("https://api:6443");
    expect(await credentials.access()).toEqual({ token: "of-the-second", tls: { ca: "CA FILE" } });
  });

  test("none of them exists", async () => {
    const paths = [join(folder, "missing"), join(folder, "missing-too")];
    const error = await kubeconfigCredentials(paths).catch(String);
    expect(error).toContain("none of the kubeconfig files exists");
  });

  test("their contexts", async () => {
    const other = { name: "third", context: { cluster: "c" } };
    const paths = [await write({}), await write({ rest: { contexts: [other] } })];
    expect(await kubeconfigContexts(paths)).toEqual(["main", "second", "third"]);
  });
});
