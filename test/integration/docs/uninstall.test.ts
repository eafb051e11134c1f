/** The steps of docs/operations.md, "Uninstall", on a separate API server. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { stackFinalizer, stackKind } from "@pko/api";
import { isNotFound, resource, systemClock, type KubeObject, type Resource } from "@pko/kube";
import { programs, stacks, updates, workspaces } from "@pko/operator";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { afterAll, beforeAll, expect, test } from "bun:test";

import { commandsIn } from "../../docs/commands.ts";
import { root } from "../../docs/pages.ts";
import { crdDeletionMs } from "../api/crd-deletion.ts";
import { testTimeoutMs } from "../api/install.ts";
import { Operator } from "../harness/operator.ts";
import { stackWiring } from "../stack/scene.ts";
import { Simulator } from "../stack/simulator.ts";
import { Shell } from "./shell.ts";

const namespace = "default";
const release = ["-n", "pulumi-kubernetes-operator", "pulumi-kubernetes-operator"];
const crds = resource({
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
}, testTimeoutMs);

afterAll(async () => {
  await server.stop();
  shell[Symbol.dispose]();
});

const run = (line: string): Promise<string> => shell.run(line);

/** The commands of the section. `recovery` removes the finalizers. */
function documentedCommands(): { steps: string[]; recovery: string[] } {
  const page = readFileSync(join(root, "docs/operations.md"), "utf8");
  const section = page.slice(page.indexOf("\n## Uninstall"));
  const [steps = "", recovery = ""] = section.split("**If the operator was removed first,**");
  return { steps: commandsIn(steps), recovery: commandsIn(recovery) };
}

async function install(): Promise<void> {
  await run(`helm install --create-namespace ${release.join(" ")} charts/pulumi-kubernetes-operator`);
  // A new CRD has no conditions at first, which kubectl reports as an error.
  const wait = "kubectl wait crd --all --for=condition=Established --timeout=30s";
  await waitFor(() => run(wait), { timeoutMs: 60_000, what: "the CRDs" });
  // All kinds, as the operator reads them: the API server is slow to delete a CRD whose objects nobody has ever read.
  await waitFor(async () => (await run("kubectl get pulumi -A")) !== undefined, {
    timeoutMs: testTimeoutMs / 2,
    what: "the kinds to be served",
  });
}

/** Starts the operator and returns once it has updated the Stacks. */
async function startWithStacks(...names: readonly string[]) {
  const { client } = server;
  const simulator = new Simulator({ client, namespace, now: () => systemClock.now() });
  const operator = new Operator({ client, namespace }, stackWiring(namespace));
  const program = { apiVersion: programs.apiVersion, kind: programs.kind, program: { variables: { text: "one" } } };
  await client.apply(programs, { ...program, metadata: { name: "program", namespace } }, { fieldManager: "test" });
  for (const name of names) {
    const spec = { stack: "dev", programRef: { name: "program" }, destroyOnFinalize: true };
    await client.create(stacks, { ...stackKind, metadata: { name, namespace }, spec });
    await waitFor(async () => (await client.get(stacks, { namespace, name })).status?.lastUpdate?.state, {
      timeoutMs: testTimeoutMs / 2,
      what: `Stack ${name} to be updated`,
    });
  }
  return { simulator, operator };
}

async function count<T extends KubeObject>(kind: Resource<T>): Promise<number> {
  try {
    return (await server.client.list(kind)).items.length;
  } catch (error) {
    if (isNotFound(error)) return 0;
    throw error;
  }
}

async function crdsAreDeleted(): Promise<boolean> {
  const { items } = await server.client.list(crds);
  const left = items.filter(({ metadata }) => metadata.name?.endsWith("pulumi.com"));
  if (left.length > 0) throw new Error(`these CRDs are left: ${JSON.stringify(left.map(withoutSchema))}`);
  return true;
}

const withoutSchema = ({ metadata, status }: KubeObject & { readonly status?: unknown }) => ({ metadata, status });

test(
  "the steps remove everything, and destroy only the Stacks that should be destroyed",
  async () => {
    await install();
    const { simulator, operator } = await startWithStacks("website", "api");
    const { steps } = documentedCommands();
    expect(steps.length).toBe(7);
    for (const line of steps) {
      // Deleting a namespace needs a controller, which this API server does not have.
      if (line.startsWith("kubectl delete namespace")) continue;
      if (line.startsWith("helm uninstall")) {
        expect([await count(stacks), await count(updates), await count(workspaces)]).toEqual([0, 0, 0]);
        await operator[Symbol.asyncDispose]();
        await simulator[Symbol.asyncDispose]();
      }
      // kubectl would wait without a limit, and without saying for what.
      await run(line.startsWith("kubectl delete crd") ? `${line} --wait=false` : line);
    }
    expect(simulator.runs.filter(({ type }) => type === "destroy").map(({ name }) => name.split("-")[0])).toEqual([
      "api",
    ]);
    await waitFor(crdsAreDeleted, { timeoutMs: crdDeletionMs, what: "the CRDs to be deleted" });
  },
  testTimeoutMs + crdDeletionMs,
);

test(
  "a Stack keeps its finalizer if the operator is removed first, and the recovery commands delete the Stack",
  async () => {
    await install();
    const { simulator, operator } = await startWithStacks("website");
    await operator[Symbol.asyncDispose]();
    await run(`helm uninstall ${release.join(" ")}`);
    await run("kubectl delete stacks,updates --all --all-namespaces --wait=false");
    const { metadata } = await server.client.get(stacks, { namespace, name: "website" });
    expect([metadata.deletionTimestamp !== undefined, metadata.finalizers]).toEqual([true, [stackFinalizer]]);
    const [update] = (await server.client.list(updates)).items;
    for (const line of documentedCommands().recovery) {
      const isUpdateCommand = line.startsWith("kubectl patch update");
      // A successful Update no longer has a finalizer.
      if (isUpdateCommand && !update) continue;
      await run(line.replace(/(patch update) \S+/, `$1 ${update?.metadata.name}`));
    }
    await waitFor(async () => (await count(stacks)) + (await count(updates)) === 0, {
      what: "Stacks and Updates to be deleted",
    });
    await simulator[Symbol.asyncDispose]();
    expect(simulator.runs.some(({ type }) => type === "destroy")).toBe(false);
  },
  testTimeoutMs,
);
