/** Why a pod is not up, for the owner of the Stack that waits for it. Pure. */
import { pulumiContainer } from "@pko/api";
import type { ContainerState, ContainerStatus, Pod, PodCondition } from "kubernetes-types/core/v1";

import { truncate } from "../../shared/truncate.ts";

export interface Explanation {
  readonly message: string;
  /** It does not go away unless someone fixes it. */
  readonly stuck: boolean;
}

const waits = (message: string): Explanation => ({ message, stuck: false });
const stuck = (message: string): Explanation => ({ message, stuck: true });

type PodParts = Pick<Pod, "metadata" | "spec" | "status">;

export function explainPod(pod: PodParts): Explanation {
  for (const explain of [deleted, failed, unschedulable, containerProblem, waitingForVolumes]) {
    const explanation = explain(pod);
    if (explanation) return explanation;
  }
  return waits("the pod is starting");
}

function deleted({ metadata }: PodParts): Explanation | undefined {
  return metadata?.deletionTimestamp ? waits("the former pod is terminating") : undefined;
}

function failed({ status }: PodParts): Explanation | undefined {
  if (status?.phase !== "Failed") return undefined;
  const { reason = "", message = "" } = status;
  if (reason === "Evicted") return stuck(`the pod was evicted from its node: ${clean(message)}`);
  return stuck(`the pod failed${reason && ` (${reason})`}${message && `: ${clean(message)}`}`);
}

export const schedulingCondition = ({ status }: Pick<Pod, "status">): PodCondition | undefined =>
  status?.conditions?.find(({ type }) => type === "PodScheduled");

function unschedulable(pod: PodParts): Explanation | undefined {
  const scheduled = schedulingCondition(pod);
  if (scheduled?.status !== "False") return undefined;
  if (scheduled.reason === "SchedulingGated") return waits("the pod waits until its scheduling gates are removed");
  return stuck(`no node can take the pod: ${clean(scheduled.message ?? "the scheduler gives no reason")}`);
}

export function isUnschedulable(pod: PodParts): boolean {
  const { status, reason } = schedulingCondition(pod) ?? {};
  return !pod.metadata?.deletionTimestamp && status === "False" && reason === "Unschedulable";
}

/** In the order in which they start: the first that has not finished or started delays the others. */
function containerProblem({ status }: PodParts): Explanation | undefined {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const container of statuses) {
    const explanation = explainContainer(container);
    if (explanation) return explanation;
  }
  return undefined;
}

/** By the kubelet's reason for a container that has not started. */
const waitingReasons: Readonly<Record<string, (container: ContainerStatus, message: string) => Explanation>> = {
  ErrImagePull: ({ image }, message) => stuck(`the image ${image} cannot be pulled: ${message}`),
  ImagePullBackOff: ({ image }, message) => stuck(`the image ${image} cannot be pulled: ${message}`),
  ErrImageNeverPull: ({ image }) => stuck(`the image ${image} is not on the node, and its pull policy is Never`),
  InvalidImageName: ({ image }) => stuck(`"${image}" is not the name of an image`),
  CreateContainerConfigError: ({ name }, message) => stuck(`the container ${name} cannot be created: ${message}`),
  CreateContainerError: ({ name }, message) => stuck(`the container ${name} cannot be created: ${message}`),
  RunContainerError: ({ name }, message) => stuck(`the container ${name} cannot be started: ${message}`),
  CrashLoopBackOff: (container) => {
    const end = container.lastState?.terminated;
    return stuck(`the container ${container.name} keeps crashing${end ? `: ${terminationText(container, end)}` : ""}`);
  },
};

function explainContainer(container: ContainerStatus): Explanation | undefined {
  const { name, state } = container;
  const { waiting, terminated } = state ?? {};
  if (waiting?.reason) {
    const explain = waitingReasons[waiting.reason];
    if (explain) return explain(container, clean(waiting.message ?? "no reason is given"));
  }
  if (terminated && (terminated.exitCode !== 0 || name === pulumiContainer)) {
    return stuck(`the container ${name} has terminated: ${terminationText(container, terminated)}`);
  }
  return undefined;
}

type Terminated = NonNullable<ContainerState["terminated"]>;

function terminationText({ name }: ContainerStatus, { reason, exitCode, message, signal }: Terminated): string {
  if (reason === "OOMKilled") return `it ran out of memory (OOMKilled); ${memoryAdvice(name)}`;
  const how = signal ? `signal ${signal}` : `exit code ${exitCode}`;
  const detail = message ? clean(message) : "";
  return `${how}${reason && reason !== "Error" ? ` (${reason})` : ""}${detail && `: ${detail}`}`;
}

/** `spec.resources` sets the limits of `pulumi` only. */
const memoryAdvice = (container: string): string =>
  container === pulumiContainer
    ? "raise spec.resources.limits.memory (in a Stack, workspaceTemplate.spec.resources.limits.memory), or remove the limit"
    : "its node has too little memory, or its limit, which a LimitRange may set, is too low";

function waitingForVolumes({ status, spec }: PodParts): Explanation | undefined {
  const claims = (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
  const hasNode = spec?.nodeName !== undefined;
  const creating = (status?.initContainerStatuses ?? []).every(
    ({ state }) => state?.waiting?.reason === "PodInitializing",
  );
  if (!hasNode || !creating || claims.length === 0) return undefined;
  return waits(`the pod is starting, with the volume of the claim ${claims.join(", ")}`);
}

const longest = 500;

/** One line of limited length. */
const clean = (text: string): string => truncate(text.replaceAll(/\s+/g, " ").trim(), longest);
