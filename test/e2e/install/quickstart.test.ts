/** The first steps of the docs: apply install.yaml, create a Stack in the default namespace, annotate it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { imageTag } from "@pko/api";
import { operatorNamespace } from "@pko/install";
import { givenKubeconfig, publishOperatorImage, replaceImage, repositoryRoot } from "@pko/cluster";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  assertCleanAgentLogs,
  assertCleanLogs,
  defaultTimeout,
  isReady,
  kubectl,
  listUpdates,
  literal,
  newProgram,
  newStackWithoutBackend,
  placeIn,
  publishedImage,
  stackUntil,
  type Place,
} from "../harness.ts";

const slow = 240_000;
const released = readFileSync(join(repositoryRoot, "deploy/quickstart/install.yaml"), "utf8");

let manifest = released;
let place: Place;

beforeAll(async () => {
  if (givenKubeconfig === undefined) {
    await publishOperatorImage(imageTag);
    // The node may have an image of this name from an earlier run.
    manifest = released.replaceAll("IfNotPresent", "Always");
  } else {
    // A cluster of the user cannot pull an image of this name from here.
    manifest = replaceImage(released, await publishedImage());
  }
  place = await placeIn("default");
}, slow);

/** Keeps the CRDs and the namespace, which other tests need. */
afterAll(async () => {
  await place?.watches[Symbol.asyncDispose]();
  await kubectl([
    "delete",
    "stack,program",
    "quickstart",
    "--namespace=default",
    "--ignore-not-found",
    "--timeout=120s",
  ]);
  const kept = /^kind: (CustomResourceDefinition|Namespace)$/m;
  const input = manifest
    .split(/^---$/m)
    .filter((document) => !kept.test(document))
    .join("---");
  await kubectl(["delete", "--ignore-not-found", "-f", "-"], { input });
}, slow);

test(
  "kubectl apply installs the operator, which runs a Stack and runs it again after kubectl annotate",
  async () => {
    await kubectl(["apply", "-f", "-"], { input: manifest });
    await kubectl(["rollout", "status", "deployment", "-n", operatorNamespace, "--timeout=120s"]);
    const reapplied = await kubectl(["apply", "-f", "-"], { input: manifest });
    expect(reapplied.split("\n").filter((line) => line !== "" && !line.endsWith(" unchanged"))).toEqual([]);

    await applyTo(place, program, stack);
    await stackUntil(place, "quickstart", isReady);
    const request = `pulumi.com/reconciliation-request=${new Date().toString()}`;
    await kubectl(["annotate", "stack", "quickstart", "--namespace=default", request, "--overwrite"]);
    await waitFor(async () => (await listUpdates(place, "quickstart")).length === 2, {
      timeoutMs: slow / 3,
      what: "the requested update",
    });
    await stackUntil(place, "quickstart", isReady);
    await assertCleanLogs(operatorNamespace, `app.kubernetes.io/name=${operatorNamespace}`, defaultTimeout);
    await assertCleanAgentLogs(place);
  },
  slow,
);

const program = newProgram("quickstart", { outputs: { greeting: "hello" } });

const stack = newStackWithoutBackend("quickstart", {
  stack: "dev",
  programRef: { name: "quickstart" },
  envRefs: { PULUMI_BACKEND_URL: literal("file:///share"), PULUMI_CONFIG_PASSPHRASE: literal("passphrase") },
});
