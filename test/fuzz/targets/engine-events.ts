/** The event log of the CLI: programs and providers decide what is in it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { RunEvent } from "@pko/records";
import { checkValue } from "@pko/rpc";

import { parseStep } from "../../../packages/agent/src/plans/destroy-steps.ts";
import { driftedResource } from "../../../packages/agent/src/pulumi/drift.ts";
import { parseEngineEvent } from "../../../packages/agent/src/pulumi/engine-events.ts";
import { outputsFromEvent } from "../../../packages/agent/src/pulumi/outputs.ts";
import { formatPath, parsePath } from "../../../packages/agent/src/pulumi/property-path.ts";
import { Redactor } from "../../../packages/agent/src/system/redact.ts";
import { hold, secret, textOf, type Target } from "../engine/target.ts";

const redactor = new Redactor();
redactor.add(secret);
const clean = (text: string) => redactor.clean(text);

const testdata = join(import.meta.dir, "../../../packages/agent/src/pulumi/testdata");
const seeds = ["replace.ndjson", "update.ndjson"].flatMap((name) =>
  readFileSync(join(testdata, name), "utf8").split("\n").filter(Boolean),
);

/** Of an event as JSON: a message, the values of properties, and several URNs. */
const maxEventChars = 256 * 1024;

function check(input: Uint8Array): void {
  const line = textOf(input);
  parseStep(line);
  const parsed = parseEngineEvent(line, clean);
  if (!parsed) return;
  const { event, errorLines, refusedUrn, stackOutputs, finished } = parsed;
  const drifted = driftedResource(finished, clean);
  const reported = JSON.stringify({ event, errorLines, refusedUrn, drifted });
  hold(!reported.includes(secret), "no event contains a secret");
  hold(reported.length <= maxEventChars + line.length, "an event has a limited size");
  if (event) {
    const checked = checkValue(RunEvent, event);
    hold(checked.ok, `an event matches its schema${checked.ok ? "" : `: ${checked.problem.replaceAll(/\d+/g, "N")}`}`);
  }
  if (stackOutputs) outputsFromEvent(stackOutputs, false);
  for (const path of drifted?.properties ?? []) checkPath(path);
}

/** What is a path stays the same path. Control characters and backslashes are escaped for people. */
function checkPath(path: string): void {
  const segments = parsePath(path);
  // oxlint-disable-next-line no-control-regex -- it must match control characters
  if (segments && !/[\u0000-\u001F\\]/.test(path))
    hold(Bun.deepEquals(parsePath(formatPath(segments)), segments), "a path is formatted as it is parsed");
}

export const engineEventsTarget: Target = {
  name: "engine-events",
  form: "json",
  seeds: [
    ...seeds,
    JSON.stringify({
      sequence: 7,
      timestamp: 1,
      resOutputsEvent: {
        metadata: {
          op: "update",
          urn: "urn:pulumi:dev::p::aws:s3/bucket:Bucket::b",
          type: "aws:s3/bucket:Bucket",
          provider: "urn:pulumi:dev::p::pulumi:providers:aws::default::id",
          diffs: ["tags"],
          detailedDiff: { 'tags["a.b"][0]': { diffKind: "update", inputDiff: true } },
          old: { inputs: { tags: { "a.b": ["1"] } }, outputs: { arn: "x", token: secret } },
          new: { inputs: { tags: { "a.b": ["2"], kubeconfig: secret } }, outputs: { arn: "y" }, id: "i" },
        },
      },
    }),
    '{"sequence":1,"policyEvent":{"resourceUrn":"u","message":"m","policyName":"n","policyPackName":"p","enforcementLevel":"mandatory"}}',
    '{"sequence":1,"diagnosticEvent":{"severity":"error","message":"resource urn:x violates plan: properties changed: ++a","urn":"u"}}',
  ],
  words: [
    "4dabf18193072939515e22adb298388d",
    "1b47061264138c4ac30d75fd1eb44270",
    "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
  ],
  rounds: 4000,
  check,
};
