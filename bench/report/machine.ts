/** The machine on which the figures were measured. */
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";

import { resource, type Client, type ApiObject } from "@pko/kube";
import type { Node } from "kubernetes-types/core/v1";

import type { Machine } from "./figures.ts";

const nodes = resource<ApiObject<Node>>({ apiVersion: "v1", kind: "Node", plural: "nodes", namespaced: false });

export const loadNow = (): number => loadavg()[0] ?? 0;

/** Describes the machine of the benchmark and the cluster's nodes, which may be different machines. */
export async function describeMachine(client?: Client): Promise<Machine> {
  const { items } = client ? await client.list(nodes) : { items: [] };
  return {
    processor: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryMb: Math.round(totalmem() / 2 ** 20),
    kernel: release(),
    load: [loadNow()],
    kubernetes: items[0]?.status?.nodeInfo?.kubeletVersion ?? (client ? "unknown" : "not used"),
    nodes: items.map(describeNode),
  };
}

function describeNode({ metadata, status }: ApiObject<Node>): string {
  const { cpu = "?", memory = "?", pods = "?" } = status?.allocatable ?? {};
  return `node ${metadata.name}: ${cpu} cores, ${memory}, ${pods} pods`;
}
