/**
 * Counts the operator's requests. The API server counts requests by flow schema: a flow schema that matches the operator's
 * service account, with its normal priority level, counts only the operator's requests.
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

  async start({ namespace, serviceAccount }: Operator): Promise<void> {
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

  /** Since the API server started. */
  async total(): Promise<number> {
    return countRequests(await this.#kubectl(["get", "--raw", "/metrics"]));
  }

  async stop(): Promise<void> {
    await this.#client.delete(flowSchemas, { name }).catch(() => undefined);
  }
}

/** The number of dispatched requests of our flow schema. Pure. */
export function countRequests(metrics: string): number {
  const lines = metrics
    .split("\n")
    .filter(
      (line) =>
        line.startsWith("apiserver_flowcontrol_dispatched_requests_total{") && line.includes(`flow_schema="${name}"`),
    );
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
