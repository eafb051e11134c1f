/** A run belongs to its agent: what kills the operator does not touch it, and what kills the pod is told as it is. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer } from "@pko/agent/testing";
import { network } from "@pko/cluster";
import { waitFor } from "@pko/testkit";

import {
  apply,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  removeNamespace,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";

const slow = 240_000;
const repositories = mkdtempSync(join(tmpdir(), "pko-git-"));

let operator: Operator;
let place: Place;
let git: GitServer;

/** Its one resource writes a line to the volume when it begins, and takes its time. */
const slowProject = (seconds: number): Record<string, string> => ({
  "Pulumi.yaml": "name: slow\nruntime: nodejs\n",
  "package.json": '{ "name": "slow", "main": "index.ts" }',
  // The SDK comes with the image; the language host wants to see a folder all the same.
  "node_modules/.keep": "",
  "index.ts": `
import * as pulumi from "@pulumi/pulumi";

const provider: pulumi.dynamic.ResourceProvider = {
  async create(inputs) {
    require("node:fs").appendFileSync("/state/begun-" + inputs.name, "begun\\n");
    await new Promise((resolve) => setTimeout(resolve, ${seconds} * 1000));
    return { id: "done", outs: {} };
  },
};

class Slow extends pulumi.dynamic.Resource {
  constructor(name: string) {
    super(provider, name, { name });
  }
}

new Slow(pulumi.getStack());
`,
});

describe("a slow update", () => {
  beforeAll(async () => {
    const namespace = await newNamespace("crashes");
    operator = await startOperator([namespace]);
    place = { client: operator.client, namespace };
    git = serveGit(repositories, { hostname: network.machine });
    createRepository(repositories, "slow").commit(slowProject(15));
  }, slow);

  afterAll(async () => {
    await removeNamespace(place.namespace);
    await git.stop();
    await operator.stop();
  });

  test(
    "goes on while the operator is killed, and is run once",
    async () => {
      await deploy("survivor");
      await begun("survivor");
      const [running] = await updatesOf(place, "survivor");
      await operator.crash();
      await stackUntil(place, "survivor", isReady);
      const updates = await updatesOf(place, "survivor");
      expect(updates.map(({ metadata }) => metadata.name)).toEqual([running?.metadata.name]);
      expect(await timesBegun("survivor")).toBe(1);
    },
    slow,
  );

  test(
    "is told as interrupted when its pod is killed, and the next one succeeds",
    async () => {
      await deploy("orphan");
      await begun("orphan");
      await kubectl(["delete", "pod", "orphan-workspace-0", "-n", place.namespace, "--grace-period=0", "--force"]);
      await stackUntil(place, "orphan", isReady);
      const [first, ...others] = await updatesOf(place, "orphan");
      const failed = first?.status?.conditions?.find(({ type }) => type === "Failed");
      expect(failed).toMatchObject({ status: "True", reason: "Aborted" });
      expect(others.length).toBeGreaterThan(0);
    },
    slow,
  );
});

async function deploy(name: string): Promise<void> {
  await apply({
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace: place.namespace },
    spec: {
      ...onFileBackend,
      stack: name,
      projectRepo: `http://${network.machine}:${git.port}/slow.git`,
      branch: "main",
    },
  });
}

async function begun(name: string): Promise<void> {
  await waitFor(async () => (await timesBegun(name)) > 0, {
    timeoutMs: 90_000,
    what: `the program of ${name} to begin`,
  });
}

async function timesBegun(name: string): Promise<number> {
  const command = `cat /state/begun-${name} 2>/dev/null || true`;
  const pod = ["exec", `${name}-workspace-0`, "-n", place.namespace, "-c", "pulumi", "--", "sh", "-c", command];
  return (await kubectl(pod)).split("\n").filter(Boolean).length;
}
