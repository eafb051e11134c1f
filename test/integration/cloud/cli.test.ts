/** Checks the fake Pulumi Cloud with the real CLI, because other tests rely on it. */
import { afterAll, describe, expect, test } from "bun:test";

import { identityProvider, serveCloud, waitFor } from "@pko/testkit";

import { Gate } from "../agent/gate.ts";
import { Cli } from "./cli.ts";

const slow = 300_000;
const cloud = serveCloud({ deltaCutoffBytes: 1 });
const token = cloud.tokens.issue({ kind: "personal", login: "jane", organizations: ["acme"] });
const clis: Cli[] = [];

function newCli(env: Readonly<Record<string, string>> = {}): Cli {
  const cli = new Cli({
    PULUMI_BACKEND_URL: cloud.url,
    PULUMI_ACCESS_TOKEN: token,
    PULUMI_CONSOLE_DOMAIN: "console.example.com",
    ...env,
  });
  clis.push(cli);
  return cli;
}

afterAll(async () => {
  for (const cli of clis) cli.dispose();
  await cloud.stop();
});

const project = (name: string, body: object): string => JSON.stringify({ name, runtime: "yaml", ...body });
const stash = (input: unknown): object => ({ type: "pulumi:index:Stash", properties: { input } });

describe("the CLI with the fake Pulumi Cloud", () => {
  test(
    "manages a stack from its creation to its removal",
    async () => {
      const cli = newCli();
      const program = {
        config: { password: { type: "string", secret: true } },
        resources: { kept: stash("${password}") },
      };
      cli.write("Pulumi.yaml", project("life", { ...program, outputs: { password: "${kept.output}" } }));
      expect(await cli.run("whoami")).toBe("jane\n");
      await cli.run("stack", "init", "dev");
      await cli.run("config", "set", "--secret", "password", "canary-secret");
      expect(cli.read("Pulumi.dev.yaml")).not.toContain("canary-secret");

      const previewed = await cli.run("preview");
      expect(previewed).toContain("http://console.example.com/acme/life/dev/previews/");
      expect(cloud.stack("acme/life/dev")).toMatchObject({ version: 0, resources: [] });
      const updated = await cli.run("up", "--yes", "--skip-preview");
      expect(updated).toContain("http://console.example.com/acme/life/dev/updates/1");
      expect(await cli.run("stack", "output", "--show-secrets", "password")).toBe("canary-secret\n");
      await cli.run("refresh", "--yes", "--skip-preview");
      const stack = cloud.stack("acme/life/dev");
      expect(stack?.checkpoint.toString()).not.toContain("canary-secret");
      expect(stack?.updates.map(({ kind, result }) => [kind, result])).toEqual([
        ["preview", "succeeded"],
        ["update", "succeeded"],
        ["refresh", "succeeded"],
      ]);
      expect(stack?.updates[1]?.events).toBeGreaterThan(3);
      // The CLI chooses by the server's capabilities.
      expect(stack?.updates[1]?.checkpoints).toContain("verbatim");
      expect(stack?.updates[1]?.checkpoints).toContain("delta");

      const exported = await cli.run("stack", "export");
      expect(exported).toContain("pulumi:index:Stash");
      cli.write("state.json", exported);
      await cli.run("stack", "import", "--file", "state.json");
      await cli.run("destroy", "--yes", "--skip-preview", "--remove");
      expect(cloud.stack("acme/life/dev")).toBeUndefined();
    },
    slow,
  );

  test(
    "is rejected while another update runs, and can cancel it",
    async () => {
      const cli = newCli();
      cli.write("Pulumi.yaml", project("busy", { resources: { kept: stash("x") } }));
      await cli.run("stack", "init", "acme/dev");
      const other = cloud.hold("acme/busy/dev");
      const rejected = await cli.try("up", "--yes", "--skip-preview");
      expect(rejected.stderr).toContain("[409] Conflict: Another update is currently in progress.");
      // A preview does not lock.
      await cli.run("preview");
      await cli.run("cancel", "--yes");
      expect(other.result).toBe("cancelled");
      await cli.run("up", "--yes", "--skip-preview");
    },
    slow,
  );

  test(
    "loses its lease when its update is cancelled",
    async () => {
      const cli = newCli();
      const program = { variables: { slow: { "fn::readFile": "./gate" } }, outputs: { word: "${slow}" } };
      cli.write("Pulumi.yaml", project("cancelled", program));
      const gate = new Gate(cli.folder);
      await cli.run("stack", "init", "acme/cancelled/dev");
      const running = cli.spawn("up", "--yes", "--skip-preview");
      const update = await waitFor(() => cloud.stack("acme/cancelled/dev")?.active, { timeoutMs: 60_000 });
      await gate.open("late", () => update.end("cancelled"));
      const [text] = await Promise.all([new Response(running.stderr).text(), running.exited]);
      expect(running.exitCode).not.toBe(0);
      expect(text).toContain("The update's lease has expired");
    },
    slow,
  );

  test(
    "reads ESC environments in order",
    async () => {
      const cli = newCli();
      cloud.environments.set("acme", "base", {
        values: {
          pulumiConfig: { "esc:who": "base", "esc:only": "here", "esc:hidden": { "fn::secret": "canary-hidden" } },
          environmentVariables: { FROM_ESC: "yes" },
        },
      });
      cloud.environments.set("acme", "team/above", { values: { pulumiConfig: { "esc:who": "above" } } });
      const config = { who: { type: "string" }, only: { type: "string" }, hidden: { type: "string" } };
      cli.write(
        "Pulumi.yaml",
        project("esc", { config, outputs: { greeting: "${who} ${only}", hidden: "${hidden}" } }),
      );
      await cli.run("stack", "init", "acme/esc/dev");
      await cli.run("config", "env", "add", "base", "--yes");
      await cli.run("config", "env", "add", "team/above", "--yes");
      await cli.run("up", "--yes", "--skip-preview");
      expect(await cli.run("stack", "output", "greeting")).toBe("above here\n");
      expect(await cli.run("stack", "output", "hidden")).toBe("[secret]\n");
      expect(cloud.environments.openings.at(-1)).toEqual(["base", "team/above"]);
      await cli.run("config", "env", "rm", "team/above", "--yes");
      await cli.run("up", "--yes", "--skip-preview");
      expect(await cli.run("stack", "output", "greeting")).toBe("base here\n");

      await cli.run("config", "env", "add", "nowhere", "--yes");
      const missing = await cli.try("up", "--yes", "--skip-preview");
      expect(missing.stderr).toContain('unknown environment "nowhere"');
    },
    slow,
  );

  test("reports an invalid token and a foreign organization", async () => {
    const stranger = newCli({ PULUMI_ACCESS_TOKEN: "pul-0123456789abcdef" });
    const rejected = await stranger.try("whoami");
    expect(rejected.code).not.toBe(0);
    expect(rejected.stderr).toContain("Unauthorized: No credentials provided or are invalid.");
    const cli = newCli();
    cli.write("Pulumi.yaml", project("other", {}));
    const foreign = await cli.try("stack", "init", "other/other/dev");
    expect(foreign.stderr).toContain("Organization 'other' not found");
  });

  test("exchanges a token from an identity provider that the organization trusts", async () => {
    const cluster = identityProvider("https://cluster.example.com");
    const account = "system:serviceaccount:pulumi:web";
    const subject = /^system:serviceaccount:pulumi:web$/;
    const policies = [
      { kind: "organization", subject },
      { kind: "team", name: "platform", subject },
      { kind: "personal", name: "jane", subject },
    ] as const;
    cloud.exchange.setIssuers("acme", { url: cluster.url, keys: cluster.keys, policies });
    const cli = newCli({ PULUMI_ACCESS_TOKEN: "" });
    const login = (jwt: string, ...flags: readonly string[]) =>
      cli.try("login", "--oidc-token", jwt, "--oidc-org", "acme", ...flags);
    const good = cluster.sign(account, "urn:pulumi:org:acme");
    expect((await login(good)).code).toBe(0);
    expect(await cli.run("whoami")).toBe("acme-organization\n");
    expect((await login(good, "--oidc-team", "platform", "--oidc-expiration", "10m")).code).toBe(0);
    expect(cloud.exchange.granted.at(-1)).toMatchObject({ kind: "team", name: "platform", expirationSeconds: 600 });
    expect((await login(good, "--oidc-user", "jane")).code).toBe(0);
    expect(await cli.run("whoami")).toBe("jane\n");

    const stranger = identityProvider("https://stranger.example.com");
    const forger = identityProvider(cluster.url);
    const rejections = [
      [cluster.sign("system:serviceaccount:other:web", "urn:pulumi:org:acme"), "no policy allows"],
      [cluster.sign(account, "urn:pulumi:org:acme", -1), "has expired"],
      [cluster.sign(account, "https://kubernetes.default.svc"), "is not for urn:pulumi:org:acme"],
      [stranger.sign(account, "urn:pulumi:org:acme"), "is not registered"],
      [forger.sign(account, "urn:pulumi:org:acme"), "signed by an unknown key"],
    ] as const;
    for (const [jwt, message] of rejections) expect((await login(jwt)).stderr).toContain(message);
  });
});
