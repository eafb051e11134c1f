import { expect, test } from "bun:test";
import { parseOptions } from "./options.ts";

test("the defaults suit a workspace pod", () => {
  expect(parseOptions([], {})).toMatchObject({
    paths: { workspace: "/share/workspace", runs: "/share/runs", state: "/share/agent" },
    port: 50_051,
    secretVariables: [],
    allowHttp: false,
    allowedAddresses: [],
  });
});

test("a flag wins over its variable, which wins over the default", () => {
  const env = { AGENT_SHARE: "/var/share", AGENT_PORT: "1234", AGENT_ALLOW_HTTP: "true", AGENT_GRACE_SECONDS: "7" };
  expect(parseOptions(["--port=99", "--allow-addresses=127.0.0.1,::1"], env)).toMatchObject({
    paths: { workspace: "/var/share/workspace" },
    port: 99,
    allowHttp: true,
    graceSeconds: 7,
    allowedAddresses: ["127.0.0.1", "::1"],
  });
});

for (const args of [["--port=x"], ["--port=-1"], ["--nope"], ["extra"], ["--grace-seconds=1.5"]]) {
  test(`${args.join(" ")} is refused`, () => expect(() => parseOptions(args, {})).toThrow());
}
