/** A cluster with the operators in it. */
import { stackKind } from "@pko/api";

import { servedKind } from "./api/kinds.ts";
import type { RequestFault } from "./api/network.ts";
import type { Cluster } from "./cluster.ts";
import type { OperatorProcess } from "./operator-process.ts";

export const namespace = "team";
export const stacks = servedKind(stackKind);

/** What the network between the operators and a cluster does now. */
export interface Weather {
  /** The part of the requests that fail, in one of these ways. */
  requestFaults: { readonly share: number; readonly kinds: readonly [RequestFault, ...RequestFault[]] };
  watchLagMs: number;
  lostEventShare: number;
  /** How late a write may arrive at the API server. */
  writeDelayMs: number;
  lostAgentResponseShare: number;
  /** How late a request to an agent may arrive. */
  agentDelayMs: number;
}

export interface Place {
  readonly cluster: Cluster;
  readonly weather: Weather;
  /** The replicas of the operator; undefined while one is being restarted. */
  readonly replicas: (OperatorProcess | undefined)[];
}
