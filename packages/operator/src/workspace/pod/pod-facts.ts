/** What a pod's status shows about the pod and its agent. Pure. */
import { bootstrapContainer, pulumiContainer } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { ContainerStatus, Pod } from "kubernetes-types/core/v1";

import type { AgentPod, Preparations } from "../../agents/agents.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { overduePod } from "../../shared/pods/lost-node.ts";
import { explainPod, isUnschedulable } from "./explain-pod.ts";
import { imageWithoutShell } from "./helper-container.ts";
import type { PodFacts } from "../view.ts";

/** What is known about the agent from elsewhere. */
interface AgentEvidence extends Pick<Preparations, "hasResponded"> {
  /** An unfinished Update was started in the pod. */
  readonly hasRun?: boolean;
}

export function podFacts(pod: ApiObject<Pod>, workspace: AgentPod["workspace"], evidence: AgentEvidence): PodFacts {
  const { metadata } = pod;
  const agent = agentOf(pod, workspace);
  const overdue = overduePod(pod);
  const withoutShell = imageWithoutShell(pod);
  const hasResponded = evidence.hasResponded(agent);
  const hasAgent = hasResponded || evidence.hasRun === true || isAgentInstalled(pod);
  return {
    agent,
    isUp: (isRunning(pod) && hasAgent) || (agent.isStarting === true && hasResponded),
    ...(!hasResponded && mayLackAgent(pod) && { mayLackAgent: true }),
    isDeleting: metadata.deletionTimestamp !== undefined,
    ...(metadata.deletionTimestamp !== undefined && { terminatingSince: terminatingSince(metadata) }),
    ...(overdue && { overdue }),
    isUnschedulable: isUnschedulable(pod),
    revision: metadata.labels?.["controller-revision-hash"] ?? "",
    explanation: explainPod(pod),
    ...(withoutShell !== undefined && { imageWithoutShell: withoutShell }),
  };
}

function agentOf(pod: ApiObject<Pod>, workspace: AgentPod["workspace"]): AgentPod {
  return {
    workspace,
    uid: pod.metadata.uid ?? "",
    restarts: containerOf(pod)?.restartCount ?? 0,
    ip: pod.status?.podIP ?? "",
    ...(isAboutToStart(pod) && { isStarting: true }),
  };
}

const statusOf = ({ status }: ApiObject<Pod>, container: string): ContainerStatus | undefined =>
  status?.containerStatuses?.find(({ name }) => name === container);

const containerOf = (pod: ApiObject<Pod>): ContainerStatus | undefined => statusOf(pod, pulumiContainer);

/** Not the pod's readiness, which follows seconds after the agent listens. */
function isRunning(pod: ApiObject<Pod>): boolean {
  const { phase, podIP } = pod.status ?? {};
  return containerOf(pod)?.state?.running !== undefined && Boolean(podIP) && phase === "Running";
}

/** The container waits for its helper, which may fail. Once the agent listens, the helper does not matter. */
function isAgentInstalled(pod: ApiObject<Pod>): boolean {
  const helper = statusOf(pod, bootstrapContainer);
  return !helper || helper.state?.running !== undefined || containerOf(pod)?.ready === true;
}

/** The helper may still copy it. A container that restarts finds it. */
function mayLackAgent(pod: ApiObject<Pod>): boolean {
  const { ready, restartCount } = containerOf(pod) ?? {};
  return statusOf(pod, bootstrapContainer) !== undefined && ready === false && restartCount === 0;
}

/** The init containers are done. The kubelet usually reports a second late that the agent's container runs. */
function isAboutToStart(pod: ApiObject<Pod>): boolean {
  const { podIP, initContainerStatuses = [] } = pod.status ?? {};
  const reason = containerOf(pod)?.state?.waiting?.reason;
  const isNext = reason === "PodInitializing" || reason === "ContainerCreating";
  const isInitialized = initContainerStatuses.every(({ state, started }) =>
    state?.terminated ? state.terminated.exitCode === 0 : started === true,
  );
  return pod.metadata.deletionTimestamp === undefined && Boolean(podIP) && isNext && isInitialized;
}

/** The deletion timestamp is the end of the grace period. */
function terminatingSince({
  deletionTimestamp = "",
  deletionGracePeriodSeconds = 0,
}: ApiObject<Pod>["metadata"]): number {
  return (parseTimestamp(deletionTimestamp) ?? 0) - deletionGracePeriodSeconds * 1000;
}
