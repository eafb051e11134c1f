import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { PulumiCli } from "./cli.ts";
import { SignIn } from "./cloud/sign-in.ts";

test("the program gets every variable of the pod, but for the one that is the agent's", async () => {
  const redactor = new Redactor();
  const signIn = new SignIn({ oidc: undefined, redactor, log: createLog(redactor, () => {}) });
  const inherited = { AGENT_NAME: "smith", OPERATOR_MODE: "x", PULUMI_OPERATOR_SECRET_VARIABLES: "DATABASE_URL" };
  const cli = new PulumiCli({ file: "pulumi", state: tmpdir(), inherited, redactor, signIn });
  const environment = await cli.environment();
  expect(environment).toMatchObject({ AGENT_NAME: "smith", OPERATOR_MODE: "x" });
  expect(environment).not.toHaveProperty("PULUMI_OPERATOR_SECRET_VARIABLES");
});
