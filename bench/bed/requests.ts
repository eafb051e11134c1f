/**
 * How many requests the operator sends. The API server counts requests by flow schema: one that matches the operator's
 * service account, and gives it the level it has anyway, makes that a count of the operator's own.
 */
import { isAlreadyExists, resource, type Client, type KubeObject } from "@pko/kube";
import type { Kubectl } from "@pko/testkit";

import type { Operator } from "./operator.ts";

const flowSchemas = resource<KubeObject>({
  apiVersion: "flowcontrol.apiserver.k8s.io/v1",
  kind: "FlowSchema",
  plural: "flowschemas",
  namespaced: false,
});

const name = "pulumi-bench";

export class RequestCount {
  readonly #client: Client;
  readonly #kubectl: Kubectl;

  constructor(client: Client, kubectl: Kubectl) {
    this.#client = client;
    this.#kubectl = kubectl;
  }

  async begin({ namespace, serviceAccount }: Operator): Promise<void> {
    const all = { verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true };
    const object = {
      apiVersion: flowSchemas.apiVersion,
      kind: flowSchemas.kind,
      metadata: { name },
      spec: {
        matchingPrecedence: 20,
        priorityLevelConfiguration: { name: "workload-low" },
        distinguisherMethod: { type: "ByUser" },
        rules: [
          {
            subjects: [{ kind: "ServiceAccount", serviceAccount: { namespace, name: serviceAccount } }],
            resourceRules: [all],
            nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
          },
        ],
      },
    };
    try {
      await this.#client.create(flowSchemas, object);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  /** Since the API server began. */
  async total(): Promise<number> {
    return countOf(await this.#kubectl(["get", "--raw", "/metrics"]));
  }

  async end(): Promise<void> {
    await this.#client.delete(flowSchemas, { name }).catch(() => undefined);
  }
}

/** Of those that were let through by our schema. Pure. */
export function countOf(metrics: string): number {
  const lines = metrics
    .split("\n")
    .filter(
      (line) =>
        line.startsWith("apiserver_flowcontrol_dispatched_requests_total{") && line.includes(`flow_schema="${name}"`),
    );
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
