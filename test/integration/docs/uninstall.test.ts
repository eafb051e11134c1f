/** The steps of docs/operations.md, "Uninstall", typed as they are printed, on an API server of its own. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { stackFinalizer, stackKind } from "@pko/api";
import { isNotFound, resource, systemClock, type KubeObject, type Resource } from "@pko/kube";
import { programs, stacks, updates, workspaces } from "@pko/operator";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { afterAll, beforeAll, expect, test } from "bun:test";

import { root } from "../../docs/pages.ts";
import { patience } from "../api/install.ts";
import { Operator } from "../stack/harness.ts";
import { Simulator } from "../stack/simulator.ts";
import { commandsIn, Shell } from "./shell.ts";

const namespace = "default";
const release = ["-n", "pulumi-kubernetes-operator", "pulumi-kubernetes-operator"];
const definitions = resource({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

let server: ApiServer;
let shell: Shell;

beforeAll(async () => {
  server = await startApiServer();
  shell = new Shell(server);
}, patience);

afterAll(async () => {
  await server.stop();
  shell[Symbol.dispose]();
});

const type = (line: string): Promise<string> => shell.type(line);

/** The commands of the section; those of the way out are the ones that remove finalizers. */
function printed(): { steps: string[]; wayOut: string[] } {
  const page = readFileSync(join(root, "docs/operations.md"), "utf8");
  const section = page.slice(page.indexOf("\n## Uninstall"));
  const [steps = "", wayOut = ""] = section.split("**If the operator was removed first,**");
  return { steps: commandsIn(steps), wayOut: commandsIn(wayOut) };
}

async function install(): Promise<void> {
  await type(`helm install --create-namespace ${release.join(" ")} charts/pulumi-kubernetes-operator`);
  await waitFor(async () => (await type("kubectl get stacks,updates,workspaces,programs -A")) !== undefined, {
    timeoutMs: patience / 4,
    what: "the kinds to be served",
  });
}

/** The operator, and Stacks that have been updated. */
async function running(...names: readonly string[]) {
  const { client } = server;
  const simulator = new Simulator({ client, namespace, now: () => systemClock.now() });
  const operator = new Operator({ client, name: namespace }, systemClock);
  const program = { apiVersion: programs.apiVersion, kind: programs.kind, program: { variables: { text: "one" } } };
  await client.apply(programs, { ...program, metadata: { name: "program", namespace } }, { fieldManager: "test" });
  for (const name of names) {
    const spec = { stack: "dev", programRef: { name: "program" }, destroyOnFinalize: true };
    await client.create(stacks, { ...stackKind, metadata: { name, namespace }, spec });
    await waitFor(async () => (await client.get(stacks, { namespace, name })).status?.lastUpdate?.state, {
      timeoutMs: patience / 4,
      what: `Stack ${name} to be updated`,
    });
  }
  return { simulator, operator };
}

async function countOf<T extends KubeObject>(kind: Resource<T>): Promise<number> {
  try {
    return (await server.client.list(kind)).items.length;
  } catch (error) {
    if (isNotFound(error)) return 0;
    throw error;
  }
}

test(
  "the steps remove everything, and destroy only what is to be destroyed",
  async () => {
    await install();
    const { simulator, operator } = await running("website", "api");
    const { steps } = printed();
    expect(steps.length).toBe(7);
    for (const line of steps) {
      // The deletion of a namespace is finished by a controller that an API server alone does not have.
      if (line.startsWith("kubectl delete namespace")) continue;
      if (line.startsWith("helm uninstall")) {
        expect([await countOf(stacks), await countOf(updates), await countOf(workspaces)]).toEqual([0, 0, 0]);
        await operator[Symbol.asyncDispose]();
        await simulator[Symbol.asyncDispose]();
      }
      await type(line);
    }
    expect(simulator.runs.filter(({ type }) => type === "destroy").map(({ name }) => name.split("-")[0])).toEqual([
      "api",
    ]);
    const { items } = await server.client.list(definitions);
    expect(items.filter(({ metadata }) => metadata.name?.endsWith("pulumi.com"))).toEqual([]);
  },
  patience,
);

test(
  "after the wrong order a Stack waits for its finalizer, and the way out removes it",
  async () => {
    await install();
    const { simulator, operator } = await running("website");
    await operator[Symbol.asyncDispose]();
    await type(`helm uninstall ${release.join(" ")}`);
    await type("kubectl delete stacks,updates --all --all-namespaces --wait=false");
    const { metadata } = await server.client.get(stacks, { namespace, name: "website" });
    expect([metadata.deletionTimestamp !== undefined, metadata.finalizers]).toEqual([true, [stackFinalizer]]);
    const [update] = (await server.client.list(updates)).items;
    for (const line of printed().wayOut) {
      const isOfUpdate = line.startsWith("kubectl patch update");
      // A successful Update has lost its finalizer already.
      if (isOfUpdate && !update) continue;
      await type(line.replace(/(patch update) \S+/, `$1 ${update?.metadata.name}`));
    }
    await waitFor(async () => (await countOf(stacks)) + (await countOf(updates)) === 0, {
      what: "Stacks and Updates to be deleted",
    });
    await simulator[Symbol.asyncDispose]();
    expect(simulator.runs.some(({ type }) => type === "destroy")).toBe(false);
  },
  patience,
);
