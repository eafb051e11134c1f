/** The agent with Pulumi Cloud: signing in with a service account's token, stale updates, error messages. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { AgentOptions } from "@pko/agent/testing";
import { createCa } from "@pko/cluster";
import { identityProvider, serveCloud, waitFor } from "@pko/testkit";

import { Gate, gatedProgram } from "./gate.ts";
import { program, stash, TestWorkspace } from "./harness.ts";

const slow = 300_000;
const cloud = serveCloud();
const cluster = identityProvider("https://cluster.example.com");
const account = "system:serviceaccount:team:web";
const folder = mkdtempSync(join(tmpdir(), "pko-oidc-"));
const personal = cloud.tokens.issue({ kind: "personal", login: "jane", organizations: ["acme"] });

afterAll(async () => {
  await cloud.stop();
  rmSync(folder, { recursive: true, force: true });
});

const subject = /^system:serviceaccount:team:web$/;
const trusted = {
  url: cluster.url,
  keys: cluster.keys,
  policies: [
    { kind: "organization", subject },
    { kind: "team", name: "platform", subject },
    { kind: "personal", name: "jane", subject },
  ],
} as const;
cloud.exchange.setIssuers("acme", trusted);

/** A file with a token, as the kubelet projects it. */
function tokenFile(jwt = cluster.sign(account, "urn:pulumi:org:acme")): string {
  const file = join(folder, crypto.randomUUID());
  writeFileSync(file, jwt);
  return file;
}

interface Oidc {
  readonly file?: string;
  readonly scope?: string;
  readonly credentials?: string;
}

const oidcFlags = ({ file = tokenFile(), scope = "", credentials = mkdtempSync(join(folder, "memory-")) }: Oidc) => [
  `--oidc-token=${file}`,
  "--oidc-organization=acme",
  `--oidc-scope=${scope}`,
  `--oidc-credentials=${credentials}`,
];

function onCloud(flags: readonly string[], options: Partial<AgentOptions> = {}): TestWorkspace {
  const { env, ...rest } = options;
  return new TestWorkspace({
    ...rest,
    flags,
    env: { PULUMI_BACKEND_URL: cloud.url, PULUMI_CONSOLE_DOMAIN: "console.example.com", ...env },
  });
}

const withToken = { env: { PULUMI_ACCESS_TOKEN: personal } };

describe("signing in with the service account's token", () => {
  test(
    "runs without a stored token, and renews its token before it expires",
    async () => {
      const credentials = mkdtempSync(join(folder, "memory-"));
      const web = await onCloud(oidcFlags({ credentials })).start();
      const source = program({
        config: { password: { type: "string", secret: true } },
        resources: { kept: stash("${password}") },
        outputs: { password: "${kept.output}" },
      });
      const config = [{ key: "password", secret: true, value: { from: "value" as const, value: "canary-secret" } }];
      const before = cloud.exchange.granted.length;
      await web.prepare(source, { name: "acme/demo/signed-in", config });
      expect(await web.run("first", { kind: "up", logLevel: 11 })).toMatchObject({
        outcome: "succeeded",
        progress: { permalink: "http://console.example.com/acme/demo/signed-in/updates/1" },
      });
      expect(await web.outputs("first")).toMatchObject([{ name: "password", secret: true, value: "canary-secret" }]);
      // One exchange for all commands.
      expect(cloud.exchange.granted.slice(before)).toEqual([
        { subject: account, kind: "organization", name: "", expirationSeconds: 7200 },
      ]);

      // A run needs 90% of a token's lifetime: of 30 seconds, 10% have passed after 3 seconds, so the next run gets a new token.
      cloud.exchange.longestSeconds = 30;
      const short = await onCloud(oidcFlags({ credentials })).start();
      await short.prepare(source, { name: "acme/demo/signed-in", config });
      cloud.exchange.longestSeconds = Infinity;
      const first = cloud.tokens.all().at(-1) ?? "";
      const startedAt = Date.now();
      await waitFor(() => Date.now() - startedAt > 3_500);
      cloud.tokens.revoke(first);
      expect(await short.run("second", { kind: "refresh" })).toMatchObject({ outcome: "succeeded" });

      // The token is only in the folder in memory.
      const stored = readFileSync(join(credentials, "credentials.json"), "utf8");
      expect(cloud.tokens.all().some((token) => stored.includes(token))).toBe(true);
      for (const each of [web, short]) {
        const found = Bun.spawnSync(["grep", "-rlE", cloud.tokens.all().join("|"), each.root]);
        expect(found.stdout.toString()).toBe("");
        expect(cloud.tokens.all().some((token) => each.log.includes(token))).toBe(false);
      }
    },
    slow,
  );

  test("gets another token when the current one is rejected before it expires", async () => {
    const web = await onCloud(oidcFlags({})).start();
    await web.prepare(program({}), { name: "acme/demo/revoked" });
    cloud.tokens.revoke(cloud.tokens.all().at(-1) ?? "");
    expect(await web.run("one", { kind: "up" })).toMatchObject({ outcome: "failed", error: { class: "invalidToken" } });
    expect(await web.run("two", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  });

  test("requests tokens of a team and of a user", async () => {
    for (const [scope, kind, name] of [
      ["team:platform", "team", "platform"],
      ["user:jane", "personal", "jane"],
    ] as const) {
      const web = await onCloud(oidcFlags({ scope })).start();
      await web.prepare(program({}), { name: "acme/demo/kinds" });
      expect(cloud.exchange.granted.at(-1)).toMatchObject({ kind, name });
    }
  });

  test("is not used with an access token, with stored credentials, or with other backends", async () => {
    const before = cloud.exchange.granted.length;
    const file = tokenFile("not a token");
    await (await onCloud(oidcFlags({ file }), withToken).start()).prepare(program({}), { name: "acme/demo/own" });

    const loggedIn = onCloud(oidcFlags({ file }));
    const accounts = { [cloud.url]: { accessToken: personal, username: "jane" } };
    const home = join(loggedIn.root, "home", ".pulumi");
    Bun.spawnSync(["mkdir", "-p", home]);
    writeFileSync(join(home, "credentials.json"), JSON.stringify({ accounts }));
    await (await loggedIn.start()).prepare(program({}), { name: "acme/demo/own" });

    const elsewhere = new TestWorkspace({ flags: oidcFlags({ file }) });
    await (await elsewhere.start()).prepare(program({}), { name: "dev" });
    expect(cloud.exchange.granted).toHaveLength(before);
  });

  test("reports what to register when it is rejected, and continues after that", async () => {
    cloud.exchange.setIssuers("acme");
    const web = await onCloud(oidcFlags({ scope: "team:platform" })).start();
    const rejected = await web.tryPrepare(program({}), { name: "acme/demo/rejected" });
    expect(rejected).toMatchObject({
      phase: "stack",
      reason: "invalidToken",
      message:
        "Pulumi Cloud rejects the service account's token (HTTP 401: the issuer https://cluster.example.com is not registered); in the organization acme, register the OIDC issuer https://cluster.example.com and allow system:serviceaccount:team:web tokens of type team for the team platform, or set envRefs.PULUMI_ACCESS_TOKEN",
    });
    cloud.exchange.setIssuers("acme", trusted);
    await web.prepare(program({}), { name: "acme/demo/rejected" });
  });

  test("reports an expired token and an unreachable server", async () => {
    const expired = await onCloud(
      oidcFlags({ file: tokenFile(cluster.sign(account, "urn:pulumi:org:acme", -60)) }),
    ).start();
    const rejected = await expired.tryPrepare(program({}), { name: "acme/demo/expired" });
    expect(rejected).toMatchObject({
      reason: "invalidToken",
      message: expect.stringContaining("has expired") as string,
    });
    const offline = await onCloud(oidcFlags({}), { env: { PULUMI_BACKEND_URL: "http://127.0.0.1:9" } }).start();
    const unreachable = await offline.tryPrepare(program({}), { name: "acme/demo/offline" });
    expect(unreachable).toMatchObject({ phase: "stack", reason: "backendUnavailable" });
  });

  test(
    "trusts the CAs that the CLI trusts",
    async () => {
      const authority = await createCa("private");
      const tls = await authority.issue({ commonName: "cloud", ips: ["127.0.0.1"] });
      const secure = serveCloud({ tls });
      try {
        secure.exchange.setIssuers("acme", trusted);
        const bundle = join(folder, "ca.crt");
        writeFileSync(bundle, authority.cert);
        const env = { PULUMI_BACKEND_URL: secure.url };
        const known = await onCloud(oidcFlags({}), { env: { ...env, SSL_CERT_FILE: bundle } }).start();
        await known.prepare(program({}), { name: "acme/demo/dev" });
        expect(secure.exchange.granted).toHaveLength(1);
        const unknown = await onCloud(oidcFlags({}), { env }).start();
        const rejected = await unknown.tryPrepare(program({}), { name: "acme/demo/dev" });
        expect(rejected).toMatchObject({
          reason: "backendUnavailable",
          message: expect.stringMatching(/certificate/) as string,
        });
      } finally {
        await secure.stop();
      }
    },
    slow,
  );

  test(
    "reports a token that expired before the run ended",
    async () => {
      cloud.exchange.longestSeconds = 1;
      const web = await onCloud(oidcFlags({})).start();
      // The state's secrets are encrypted with the access token.
      const source = program({
        variables: { slow: { "fn::secret": { "fn::readFile": "./gate" } } },
        resources: { kept: stash("${slow}") },
      });
      await web.prepare(source, { name: "acme/demo/expires" });
      const gate = new Gate(web);
      await web.startRun("expires", { kind: "up" });
      const update = await waitFor(() => cloud.stack("acme/demo/expires")?.active, { timeoutMs: 60_000 });
      cloud.exchange.longestSeconds = Infinity;
      await waitFor(() => Date.now() / 1000 > update.startedAt + 2);
      await gate.open("late", () => cloud.tokens.revoke(cloud.tokens.all().at(-1) ?? ""));
      expect(await web.result("expires")).toMatchObject({
        outcome: "failed",
        error: { class: "invalidToken", message: expect.stringContaining("oidc.expirationSeconds") as string },
      });
    },
    slow,
  );
});

describe("an update that an interrupted run left behind", () => {
  test(
    "is cancelled by the next run of the same workspace",
    async () => {
      for (const name of ["acme/demo/left", "acme/left2", "left3"]) {
        const flags = ["--workspace-uid=w1"];
        const first = await onCloud(flags, withToken).start();
        await first.prepare(gatedProgram, { name });
        // Nobody opens it.
        void new Gate(first);
        await first.startRun("one", { kind: "up" });
        const stack = () => cloud.stack(`acme/demo/${name.split("/").at(-1)}`);
        const left = await waitFor(() => stack()?.active, { timeoutMs: 120_000 });
        // Like a node failure.
        await first.dispose();
        expect(left.environment["ci.build.id"]).toBe("w1/one");

        const second = await onCloud(flags, withToken).start();
        await second.prepare(program({ resources: { kept: stash("x") } }), { name });
        expect(await second.run("two", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
        expect(left.result).toBe("cancelled");
      }
    },
    slow,
  );

  test(
    "is cancelled immediately after a run that exceeded its timeout was killed",
    async () => {
      const name = "acme/demo/stubborn";
      // A CLI that ignores SIGINT.
      const options = { ...withToken, beforeCli: "trap '' INT" };
      const web = await onCloud(["--workspace-uid=w1", "--grace-seconds=1"], options).start();
      await web.prepare(gatedProgram, { name });
      const gate = new Gate(web);
      // On a busy machine, the CLI needs some time to start its update.
      await web.startRun("one", { kind: "up" }, { timeouts: { totalSeconds: 20 } });
      const left = await waitFor(() => cloud.stack(name)?.active, { timeoutMs: 120_000 });
      expect(await web.result("one")).toMatchObject({ outcome: "failed", error: { class: "timedOut" } });
      expect(left.result).toBe("cancelled");
      await web.startRun("two", { kind: "up" });
      await gate.open("open");
      expect(await web.result("two")).toMatchObject({ outcome: "succeeded" });
    },
    slow,
  );

  test(
    "is left alone if it belongs to another workspace or to a user",
    async () => {
      const name = "acme/demo/others";
      const web = await onCloud(["--workspace-uid=w1"], withToken).start();
      await web.prepare(program({}), { name });
      const other = cloud.hold(name, { "ci.build.id": "w2/one" });
      expect(await web.run("one", { kind: "up" })).toMatchObject({ outcome: "failed", error: { class: "conflict" } });
      expect(other.result).toBe("in-progress");
      other.end("succeeded");
      const user = cloud.hold(name);
      expect(await web.run("two", { kind: "up" })).toMatchObject({ outcome: "failed", error: { class: "conflict" } });
      expect(user.result).toBe("in-progress");
    },
    slow,
  );
});

describe("error messages about Pulumi Cloud", () => {
  test("name the setting of a rejected token", async () => {
    const web = await onCloud([], { env: { PULUMI_ACCESS_TOKEN: "pul-wrong-wrong-wrong" } }).start();
    const failure = await web.tryPrepare(program({}), { name: "acme/demo/dev" });
    expect(failure).toMatchObject({ phase: "stack", reason: "invalidToken" });
    expect("message" in failure && failure.message).toContain("update the Secret that envRefs.PULUMI_ACCESS_TOKEN");
  });

  test("name the setting of a missing token", async () => {
    const failure = await (await onCloud([]).start()).tryPrepare(program({}), { name: "acme/demo/dev" });
    expect("message" in failure && failure.message).toContain("set envRefs.PULUMI_ACCESS_TOKEN");
  });

  test("name the setting that prevents the creation of a missing stack", async () => {
    const web = await onCloud([], withToken).start();
    const failure = await web.tryPrepare(program({}), { name: "acme/demo/missing", create: false });
    expect(failure).toMatchObject({ phase: "stack", reason: "stackNotFound" });
    expect("message" in failure && failure.message).toContain("create it, or remove useLocalStackOnly");
  });
});
