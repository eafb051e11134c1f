import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseOptions } from "../options.ts";
import { PulumiCli } from "../pulumi/cli.ts";
import { SignIn } from "../pulumi/cloud/sign-in.ts";
import { SecretStore } from "../pulumi/secrets.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { StateFile } from "./state.ts";
import { prepareWorkspace } from "./steps.ts";

class BrokenCli extends PulumiCli {
  override async version(): Promise<never> {
    throw new Error("broken");
  }
}

test("a preparation that breaks leaves nothing at work behind it", async () => {
  const options = parseOptions(["--share", temporaryFolder()], {});
  const redactor = new Redactor();
  const logged: string[] = [];
  const log = createLog(redactor, (line) => logged.push(line));
  const signIn = new SignIn({ oidc: undefined, redactor, log });
  const { state } = options.paths;
  const context = {
    options,
    inherited: {},
    cli: new BrokenCli({ file: "pulumi", state, inherited: {}, redactor, signIn }),
    secrets: new SecretStore(),
    state: new StateFile(state),
    log,
    signal: new AbortController().signal,
    onPhase: () => undefined,
  };
  const files = { "Pulumi.yaml": "name: demo\nruntime: yaml\n" };
  const stack = { name: "dev", create: true, config: [], environments: [] };
  const end = await prepareWorkspace({ source: { kind: "files", files }, stacks: [stack] }, context).catch(String);
  expect(end).toBe("Error: broken");
  // The source is in its place, and not on its way there.
  expect(logged.join("")).toContain("source checked out");
  expect(existsSync(join(options.paths.source, "Pulumi.yaml"))).toBe(true);
});
