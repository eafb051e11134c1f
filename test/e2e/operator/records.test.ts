/** The record of a run with the real CLI: it shows what happened, and neither it nor anything else shows a secret. */
import type { UpdateRecord } from "@pko/api";
import { updateRecords } from "@pko/operator/kinds";
import { decodeContent } from "@pko/records";
import { waitFor } from "@pko/testkit";
import { expect, test } from "bun:test";

import {
  agentLog,
  applyTo,
  at,
  eventsJson,
  fromSecret,
  isReady,
  kubectl,
  newProgram,
  newSecret,
  newStack,
  requestReconcile,
  stackUntil,
  useScene,
} from "../harness.ts";

const scene = useScene("records");

const stash = (input: string): object => ({ type: "pulumi:index:Stash", properties: { input } });

/** One resource has the secret in plain sight, one derives another text from it. */
const program = newProgram("vault", {
  configuration: { password: { type: "string" } },
  resources: { plain: stash("${password}"), derived: stash("the password is ${password}"), open: stash("hello") },
  outputs: { password: "${password}", greeting: "${open.output}" },
});

const vault = (spec: object): object =>
  newStack("vault", {
    programRef: { name: "vault" },
    secretsRef: { password: fromSecret("vault", "password") },
    ...spec,
  });

async function recordsOfVault(): Promise<UpdateRecord[]> {
  const { items } = await scene.client.list(updateRecords, { namespace: scene.namespace });
  return items.toSorted((a, b) => (a.record.endTime < b.record.endTime ? -1 : 1));
}

test("a run leaves a record, which is deleted with its Update and contains no secret", async () => {
  await applyTo(scene, newSecret("vault", { password: "canary-one" }), program, vault({}));
  await stackUntil(scene, "vault", isReady);
  await applyTo(scene, newSecret("vault", { password: "canary-two" }));
  await requestReconcile(scene, "vault", "second");
  await stackUntil(scene, "vault", ({ status }) => status?.lastUpdate?.reconcileRequest === "second");

  const records = await recordsOfVault();
  expect(records.at(0)?.record).toMatchObject({
    stackName: "vault",
    type: "up",
    result: "succeeded",
    trigger: "the first update",
    changes: { create: 4 },
  });
  expect(records.length).toBeGreaterThan(1);
  // The record shows that the secret is another one, and not which.
  const versions = [records.at(0), records.at(-1)].map((each) => each?.record.inputs?.["secret/vault.password"]);
  expect(new Set(versions).size).toBe(2);
  for (const version of versions) expect(version).toMatch(/^[0-9a-f]{12}$/);
  const contents = await Promise.all(records.map(({ record }) => decodeContent(record.content ?? "")));
  for (const content of contents) {
    expect(content?.events.length).toBeGreaterThan(0);
    expect(content?.resources.filter(({ urn }) => /::(plain|derived|open)$/.test(urn))).toHaveLength(3);
  }
  const shown = await kubectl(["get", "updates,updaterecords,workspaces,stacks", ...at(scene), "-o", "yaml"]);
  const texts = [records, contents, shown, await eventsJson(scene, "vault"), await agentLog(scene, "vault")];
  expect(JSON.stringify(texts)).not.toContain("canary");

  // Its limit deletes the first Update, and the garbage collector the record.
  await applyTo(scene, vault({ successfulUpdatesHistoryLimit: 1 }));
  await waitFor(async () => (await recordsOfVault()).length === 1, {
    timeoutMs: 120_000,
    what: "one record to be left",
  });
}, 300_000);
