/** An operator that the benchmark installs and removes itself, from a manifest or a chart, so that two can take turns on one cluster. */
import { stat, readFile } from "node:fs/promises";

import { ensureClients, helmCommand, run, UserError } from "@pko/cluster";
import { isNotFound, resource, type Client, type KubeObject } from "@pko/kube";
import type { Kubectl } from "@pko/testkit";
import { parseAllDocuments } from "yaml";

import { findOperator, isOperator, type Operator } from "./operator.ts";

const fieldManager = "pulumi-bench";
/** Of a chart. */
const release = "pulumi-kubernetes-operator";

interface Crd extends KubeObject {
  readonly spec: object;
}

const crds = resource<Crd>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

interface Cluster {
  readonly client: Client;
  readonly kubectl: Kubectl;
}

/** The objects of a manifest, or of a chart (a folder or an archive) with these flags of `helm template`. */
export async function readInstallation(source: string, flags: readonly string[] = []): Promise<KubeObject[]> {
  const isManifest = /\.(ya?ml|json)$/.test(source);
  if (!(await isPresent(source)))
    throw new UserError([`${source} is neither a manifest nor a chart: it does not exist`]);
  return isManifest ? parseObjects(await readFile(source, "utf8")) : await renderChart(source, flags);
}

async function isPresent(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

async function renderChart(chart: string, flags: readonly string[]): Promise<KubeObject[]> {
  await ensureClients("helm");
  const options = [`--namespace=${release}`, "--include-crds"];
  const command = helmCommand("template", release, chart, ...options, ...flags);
  const namespace: KubeObject = { apiVersion: "v1", kind: "Namespace", metadata: { name: release } };
  return [namespace, ...parseObjects(await run(command))];
}

/** Pure. */
export function parseObjects(text: string): KubeObject[] {
  return parseAllDocuments(text).flatMap((document) => (document.toJS() as KubeObject | null) ?? []);
}

export class Installation {
  readonly #objects: readonly KubeObject[];
  readonly #cluster: Cluster;
  readonly #deployment: string;

  constructor(objects: readonly KubeObject[], cluster: Cluster) {
    this.#objects = objects;
    this.#cluster = cluster;
    this.#deployment = deploymentIn(objects);
  }

  /** Replaces the CRDs: no Stack may exist. */
  async install(): Promise<Operator> {
    for (const object of this.#objects) if (isCrd(object)) await this.#replaceCrd(object);
    await this.#kubectl(["apply", "--server-side", "--force-conflicts", `--field-manager=${fieldManager}`], isNotCrd);
    const operator = await findOperator(this.#cluster.client, this.#deployment);
    if (!operator) throw new Error(`the Deployment ${this.#deployment} was not created`);
    return operator;
  }

  /** Except CRDs and namespaces, which the other operator uses, too. */
  async remove(): Promise<void> {
    // Its pods end while they may still release the Lease, for which the other operator would wait.
    await this.#kubectl(["delete", "--ignore-not-found", "--cascade=foreground"], ({ kind }) => kind === "Deployment");
    await this.#kubectl(["delete", "--ignore-not-found"], ({ kind }) => !keptKinds.has(kind));
  }

  async #kubectl(args: readonly string[], isChosen: (object: KubeObject) => boolean): Promise<void> {
    const items = this.#objects.filter(isChosen);
    const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    await this.#cluster.kubectl([...args, "-f", "-"], { input });
  }

  /** An apply would keep the fields of the other operator's CRD. */
  async #replaceCrd({ metadata, spec, ...rest }: Crd): Promise<void> {
    const { client } = this.#cluster;
    const body = [{ op: "replace", path: "/spec", value: spec }];
    try {
      await client.patch(crds, { name: metadata.name ?? "" }, { patch: { type: "json", body } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await client.create(crds, { ...rest, metadata, spec });
    }
  }
}

const isCrd = (object: KubeObject): object is Crd => object.kind === crds.kind;
const isNotCrd = (object: KubeObject): boolean => !isCrd(object);
const keptKinds: ReadonlySet<string> = new Set([crds.kind, "Namespace"]);

/** `namespace/name` of the operator's Deployment. Pure. */
export function deploymentIn(objects: readonly KubeObject[]): string {
  const deployments = objects.filter(({ kind }) => kind === "Deployment");
  const found = deployments.length > 1 ? deployments.filter(isOperator) : deployments;
  const [deployment] = found;
  if (!deployment || found.length > 1) {
    throw new UserError([`the manifest or chart must have one Deployment of an operator, but has ${found.length}`]);
  }
  const { namespace = release, name = "" } = deployment.metadata;
  return `${namespace}/${name}`;
}
