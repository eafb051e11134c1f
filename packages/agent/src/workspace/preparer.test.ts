import { expect, test } from "bun:test";
import { realpathSync } from "node:fs";
import type { KnownCli, PrepareMessage, PrepareRequest } from "@pko/rpc";
import { parseOptions } from "../options.ts";
import { failed, type Outcome } from "../outcome.ts";
import { PulumiCli } from "../pulumi/cli.ts";
import { SignIn } from "../pulumi/cloud/sign-in.ts";
import { SecretStore } from "../pulumi/project/secrets.ts";
import type { Version } from "../pulumi/version.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { Preparer } from "./preparer.ts";
import { StateFile } from "./state.ts";

/** A preparation waits for the version, and fails with it. */
function waitingPreparer() {
  const version = Promise.withResolvers<Outcome<Version>>();
  class WaitingCli extends PulumiCli {
    override version = async (): Promise<Outcome<Version>> => await version.promise;
  }
  const options = parseOptions(["--share", realpathSync(temporaryFolder())], {});
  const { state } = options.paths;
  const redactor = new Redactor();
  const log = createLog(redactor, () => undefined);
  const signIn = new SignIn({ oidc: undefined, redactor, log });
  const cli = new WaitingCli({ file: "pulumi", state, inherited: {}, redactor, signIn });
  const parts = { options, inherited: {}, cli, secrets: new SecretStore(), state: new StateFile(state), log };
  return { preparer: new Preparer(parts), fail: () => version.resolve(failed("other", "no version")) };
}

async function resultOf(messages: AsyncGenerator<PrepareMessage>): Promise<unknown> {
  for await (const message of messages) if (message.type === "done") return message.result;
  return undefined;
}

const requestWith = (...knownClis: KnownCli[]): PrepareRequest => ({
  source: { kind: "project", name: "demo", runtime: "yaml" },
  stacks: [],
  knownClis,
});

test("a request joins the current preparation, whatever versions of the CLI have become known since", async () => {
  const { preparer, fail } = waitingPreparer();
  const first = resultOf(await preparer.prepare(requestWith()));
  const second = resultOf(await preparer.prepare(requestWith({ cli: "a", version: "3.259.0" })));
  fail();
  const failure = { ok: false, failure: { reason: "other", message: "no version" } };
  expect(await first).toMatchObject(failure);
  expect(await second).toMatchObject(failure);
});
