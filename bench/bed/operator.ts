/** The installed operator, this one or another: finds its pods, and scales it down and up. */
import { builtin, type Client, type ApiObject, type KubeObject } from "@pko/kube";
import { UserError } from "@pko/cluster";
import type { Deployment } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import { waitUntil } from "./wait.ts";

interface OperatorRef {
  readonly namespace: string;
  readonly name: string;
}

const productName = "pulumi-kubernetes-operator";

/** Undefined if none is installed. `wanted` is `namespace/name` of its Deployment, for clusters with several. */
export async function findOperator(client: Client, wanted?: string): Promise<Operator | undefined> {
  const { items } = await client.list(builtin.deployments);
  const found = items.filter((deployment) =>
    wanted === undefined ? isOperator(deployment) : deploymentName(deployment) === wanted,
  );
  if (wanted !== undefined && found.length === 0)
    throw new UserError([`OPERATOR is ${wanted}, but there is no such Deployment`]);
  if (found.length > 1) {
    throw new UserError([
      `there are several operators; choose one with OPERATOR=: ${found.map(deploymentName).join(", ")}`,
    ]);
  }
  return found[0] && new Operator(client, found[0]);
}

const deploymentName = ({ metadata }: ApiObject<Deployment>): string => `${metadata.namespace}/${metadata.name}`;

export function isOperator({ metadata, spec }: KubeObject & Pick<Deployment, "spec">): boolean {
  const images = (spec?.template.spec?.containers ?? []).map(({ image = "" }) => image);
  return [metadata.name ?? "", ...images].some((text) => text.includes(productName));
}

export class Operator {
  readonly name: string;
  readonly image: string;
  readonly serviceAccount: string;
  readonly #client: Client;
  readonly #ref: OperatorRef;
  readonly #selector: string;
  readonly #replicas: number;

  constructor(client: Client, deployment: ApiObject<Deployment>) {
    const { metadata, spec } = deployment;
    this.#client = client;
    this.#ref = { namespace: metadata.namespace ?? "", name: metadata.name ?? "" };
    this.name = deploymentName(deployment);
    this.image = spec?.template.spec?.containers[0]?.image ?? "";
    this.serviceAccount = spec?.template.spec?.serviceAccountName ?? "default";
    this.#selector = Object.entries(spec?.selector.matchLabels ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join(",");
    // Zero if an interrupted benchmark had scaled it down.
    this.#replicas = spec?.replicas || 1;
  }

  get namespace(): string {
    return this.#ref.namespace;
  }

  async pods(): Promise<ApiObject<Pod>[]> {
    const { items } = await this.#client.list(builtin.pods, {
      namespace: this.#ref.namespace,
      labelSelector: this.#selector,
    });
    return items;
  }

  /** A ready pod. */
  async pod(signal: AbortSignal): Promise<ApiObject<Pod>> {
    const find = async (): Promise<ApiObject<Pod> | undefined> => (await this.pods()).find(isReady);
    return await waitUntil(find, { what: `a ready pod of ${this.name}`, timeoutMs: 120_000, signal });
  }

  /** Returns when none of its pods is left. */
  async scaleDown(signal: AbortSignal): Promise<void> {
    await this.#scale(0);
    const hasEnded = async (): Promise<boolean> => (await this.pods()).length === 0;
    await waitUntil(hasEnded, { what: `the pods of ${this.name} to end`, timeoutMs: 120_000, signal });
  }

  async scaleUp(): Promise<void> {
    await this.#scale(this.#replicas);
  }

  async #scale(replicas: number): Promise<void> {
    const patch = { type: "merge", body: { spec: { replicas } } } as const;
    await this.#client.patch(builtin.deployments, this.#ref, { patch });
  }
}

function isReady({ metadata, status }: ApiObject<Pod>): boolean {
  const isReadyNow = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
  return metadata.deletionTimestamp === undefined && isReadyNow;
}
