/** Plans of the CLI, and sealed plans, which are stored in Secrets and come back. */
import { gzipSync } from "node:zlib";

import { canonicalJson } from "@pko/rpc";

import { plannedChanges, unknownInputs, withoutOutputs } from "../../../packages/agent/src/plans/plan-file.ts";
import { seal, unseal, type PlanContent } from "../../../packages/agent/src/plans/sealed-plan.ts";
import { summarize } from "../../../packages/agent/src/plans/summary.ts";
import { parseState } from "../../../packages/agent/src/pulumi/stack-state.ts";
import { textDigest } from "../../../packages/agent/src/system/digest.ts";
import { Redactor } from "../../../packages/agent/src/system/redact.ts";
import { hold, jsonOf, secret, textOf, type Target } from "../engine/target.ts";

const redactor = new Redactor();
redactor.add(secret);
const clean = (text: string) => redactor.clean(text);

function check(input: Uint8Array): void {
  const file = jsonOf(input);
  if (file === undefined) return;
  checkState(textOf(input));
  const changes = plannedChanges(file);
  hold(
    Bun.deepEquals(plannedChanges(withoutOutputs(file)), changes),
    "a plan without outputs changes the same resources",
  );
  const {
    summary,
    changes: hasChanges,
    destructive,
  } = summarize({ digest: "d", changes, unknownInputs: unknownInputs(file) }, clean);
  hold(summary.length <= 4096 && summary.split("\n").length <= 52, "a summary is short");
  // oxlint-disable-next-line no-control-regex -- it must match control characters
  hold(!/[\u0000-\u0009\u000B-\u001F\u2028\u202E]/.test(summary), "a summary has no control characters");
  hold(!summary.includes(secret), "a summary contains no secret");
  hold(hasChanges || !destructive, "a plan without changes is not destructive");
  checkSealed(file, textOf(input));
}

function checkState(text: string): void {
  const state = parseState(text, clean);
  if (state) hold(!JSON.stringify(state).includes(secret), "a state contains no secret");
}

const bindings = { target: "", program: "", options: "", inputs: "", image: "", cli: "", stackKey: "", state: "" };

function checkSealed(file: unknown, text: string): void {
  const content: PlanContent = { version: 1, key: "", bindings, plan: { kind: "up", file } };
  const sealed = seal(content);
  hold(sealed !== undefined, "a small plan can be sealed");
  const unsealed = unseal(sealed);
  hold(canonicalJson(unsealed) === canonicalJson(content), "a plan is unsealed as it was sealed");
  hold(unseal({ ...sealed, digest: textDigest("other") }) === undefined, "a plan with another digest is rejected");
  // Written by somebody else, with the right digest.
  unseal({ digest: textDigest(text), content: gzipSync(text, { level: 1 }).toString("base64") });
  hold(unseal({ digest: sealed.digest, content: text }) === undefined, "damaged content is rejected");
}

const urn = (type: string, name: string): string => `urn:pulumi:dev::p::${type}::${name}`;

export const plansTarget: Target = {
  name: "plans",
  form: "json",
  seeds: [
    JSON.stringify({
      manifest: {},
      resourcePlans: {
        [urn("pulumi:pulumi:Stack", "p-dev")]: {
          goal: { outputDiff: { adds: { a: "x" }, updates: { b: 1 } } },
          steps: ["create"],
        },
        [urn("aws:s3:Bucket", "b")]: {
          goal: { parent: "u", inputDiff: { adds: { a: "04da6b54-80e4-46f7-96ec-b56ff0331ba9" }, updates: {} } },
          steps: ["create-replacement", "replace", "delete-replaced"],
        },
        [urn("pulumi:providers:aws", "default_1_2_3")]: { goal: {}, steps: ["delete"] },
      },
    }),
    JSON.stringify({
      deployment: {
        resources: [{ urn: urn("t", "a"), id: "1", parent: "p", provider: "urn:x::id", dependencies: ["d"] }],
        pending_operations: [{ type: "creating", resource: { urn: "u" } }],
      },
    }),
    JSON.stringify({
      version: 1,
      key: "",
      bindings,
      plan: { kind: "destroy", steps: [{ op: "delete", urn: "u", digest: "d" }] },
    }),
  ],
  rounds: 2000,
  check,
};
