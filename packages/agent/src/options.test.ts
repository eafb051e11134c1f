import { expect, test } from "bun:test";
import { parseOptions } from "./options.ts";

test("the defaults are those of a workspace pod", () => {
  expect(parseOptions([], {})).toMatchObject({
    paths: {
      source: "/share/source",
      workspace: "/share/workspace",
      runs: "/share/runs",
      state: "/share/agent",
    },
    port: 50_051,
    secretVariables: [],
    allowHttp: false,
    allowedAddresses: [],
  });
});

test("a flag overrides the default", () => {
  const flags = [
    "--share=/var/share",
    "--port=99",
    "--allow-http",
    "--grace-seconds=7",
    "--allow-addresses=127.0.0.1,::1",
    "--caches=/cache",
    "--plugin-cache=/cache/plugins",
    "--policy-pack=/a",
    "--policy-pack=/b",
  ];
  expect(parseOptions(flags, {})).toMatchObject({
    paths: { workspace: "/var/share/workspace" },
    port: 99,
    allowHttp: true,
    graceSeconds: 7,
    allowedAddresses: ["127.0.0.1", "::1"],
    caches: "/cache",
    pluginCache: "/cache/plugins",
    policyPacks: ["/a", "/b"],
  });
});

test("the user's variables do not configure the agent", () => {
  const env = { AGENT_PORT: "1", AGENT_GRACE_SECONDS: "x", AGENT_ALLOW_HTTP: "true", AGENT_SECRET_VARIABLES: "A" };
  expect(parseOptions([], env)).toEqual(parseOptions([], {}));
});

test("the operator names the secret variables", () => {
  const env = { PULUMI_OPERATOR_SECRET_VARIABLES: "DATABASE_URL,KEY" };
  expect(parseOptions([], env).secretVariables).toEqual(["DATABASE_URL", "KEY"]);
});

for (const args of [["--port=x"], ["--port=-1"], ["--nope"], ["extra"], ["--grace-seconds=1.5"]]) {
  test(`${args.join(" ")} is rejected`, () => expect(() => parseOptions(args, {})).toThrow());
}
