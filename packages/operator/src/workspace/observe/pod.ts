/** The StatefulSet of a Workspace and its pod, provided that they belong to the Workspace. */
import { pulumiContainer, statefulSetNameOf, workspaceKind, type Update, type Workspace } from "@pko/api";
import { asOwner, classifyOwnership, refKey, type ApiObject, type Store } from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { AgentPod, Preparations } from "../../agents/agents.ts";
import { conflictMessage } from "../../shared/objects/ownership.ts";
import { judgePod, podNameOf, podOwner } from "../../shared/pods/workspace-pod.ts";
import {
  backedOffAnnotation,
  builtHashAnnotation,
  imageWithoutShellAnnotation,
  notStartedAnnotation,
} from "../names.ts";
import { hasRun } from "./updates.ts";
import { podFacts } from "../pod/pod-facts.ts";
import type { PodFacts, StatefulSetFacts } from "../view.ts";

interface PodWorld {
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  /** With `statefulSetIndexers`. */
  readonly statefulSets: Store<ApiObject<StatefulSet>>;
  /** With `podIndexers`. */
  readonly pods: Store<ApiObject<Pod>>;
  readonly preparations: Pick<Preparations, "hasResponded">;
}

const withoutShellIndex = "workspace/imageWithoutShell";

export const statefulSetIndexers = {
  [withoutShellIndex]: ({ metadata }: ApiObject<StatefulSet>): string[] => {
    const image = metadata.annotations?.[imageWithoutShellAnnotation];
    return image === undefined || !isControlledByWorkspace(metadata) ? [] : [imageIn(metadata.namespace, image)];
  },
};

const imageIn = (namespace: string | undefined, image: string): string => `${namespace}/${image}`;

const isControlledByWorkspace = ({ ownerReferences = [] }: ApiObject<StatefulSet>["metadata"]): boolean =>
  ownerReferences.some(
    ({ controller, apiVersion, kind }) =>
      controller === true && apiVersion === workspaceKind.apiVersion && kind === workspaceKind.kind,
  );

/** Whether the StatefulSet of a Workspace in this namespace records it: other namespaces have other templates and policies. */
export const hasNoShell = (
  { statefulSets }: Pick<PodWorld, "statefulSets">,
  namespace: string,
  image: string,
): boolean => statefulSets.byIndex(withoutShellIndex, imageIn(namespace, image)).length > 0;

/** A StatefulSet of this name that belongs to another owner does not count. */
function findStatefulSet({ statefulSets }: PodWorld, workspace: Workspace): ApiObject<StatefulSet> | undefined {
  const { name = "", namespace = "" } = workspace.metadata;
  const found = statefulSets.get(refKey({ namespace, name: statefulSetNameOf(name) }));
  return classifyOwnership(found, asOwner(workspaceKind, workspace)).kind === "ours" ? found : undefined;
}

/**
 * A pod of this name that belongs to another owner does not count. The pod of a missing StatefulSet does. A pod in which an
 * Update runs counts whatever its owner: `kubectl delete --cascade=orphan` removes the owner of a running pod.
 */
export function findPod(world: PodWorld, workspace: Workspace): ApiObject<Pod> | undefined {
  const { name = "", namespace = "" } = workspace.metadata;
  const pod = world.pods.get(refKey({ namespace, name: podNameOf(name) }));
  if (!pod) return undefined;
  const set = world.statefulSets.get(refKey({ namespace, name: statefulSetNameOf(name) }));
  const { kind } = judgePod(pod, podOwner(name, set?.metadata.uid));
  const isOurs = kind === "former" || (kind === "ours" && findStatefulSet(world, workspace) !== undefined);
  return isOurs || hasRun(world, workspace, pod) ? pod : undefined;
}

/** The garbage collector will delete a pod of an earlier StatefulSet, so nothing may start in it. */
export function observePod(world: PodWorld, workspace: Workspace, pod: ApiObject<Pod>): PodFacts {
  const { name = "", namespace = "" } = workspace.metadata;
  const evidence = {
    hasResponded: (agent: AgentPod) => world.preparations.hasResponded(agent),
    hasRun: hasRun(world, workspace, pod),
  };
  const set = findStatefulSet(world, workspace);
  const facts = withImageOfTemplate(podFacts(pod, { namespace, name }, evidence), set);
  const ownership = judgePod(pod, podOwner(name, set?.metadata.uid));
  if (!set || ownership.kind !== "former" || facts.isDeleting) return facts;
  const message = conflictMessage([ownership], { kind: workspaceKind.kind, name });
  return { ...facts, isDeleting: true, explanation: { message, stuck: false } };
}

/** Admission may change the image of the pod, and only the image of the template is compared with what is built. */
export function withImageOfTemplate(facts: PodFacts, set: ApiObject<StatefulSet> | undefined): PodFacts {
  const isCurrent = set !== undefined && isObserved(set) && set.status?.updateRevision === facts.revision;
  if (facts.imageWithoutShell === undefined || !isCurrent) return facts;
  const container = set.spec?.template.spec?.containers.find((each) => each.name === pulumiContainer);
  return { ...facts, imageWithoutShell: container?.image ?? facts.imageWithoutShell };
}

const isObserved = ({ metadata, status }: ApiObject<StatefulSet>): boolean =>
  status?.observedGeneration === metadata.generation;

export function observeStatefulSet(world: PodWorld, workspace: Workspace): StatefulSetFacts | undefined {
  const statefulSet = findStatefulSet(world, workspace);
  if (!statefulSet) return undefined;
  const { metadata, spec, status } = statefulSet;
  const backedOffGeneration = metadata.annotations?.[backedOffAnnotation];
  const imageWithoutShell = metadata.annotations?.[imageWithoutShellAnnotation];
  const notStarted = whyNotStarted(statefulSet);
  return {
    uid: metadata.uid ?? "",
    generation: metadata.generation ?? 0,
    replicas: spec?.replicas ?? 1,
    builtHash: metadata.annotations?.[builtHashAnnotation] ?? "",
    ...(imageWithoutShell !== undefined && { imageWithoutShell }),
    ...(isObserved(statefulSet) && status?.updateRevision && { updateRevision: status.updateRevision }),
    isDeleting: metadata.deletionTimestamp !== undefined,
    ...(backedOffGeneration !== undefined && { backedOffGeneration: Number(backedOffGeneration) }),
    ...(notStarted !== undefined && { notStarted }),
  };
}

/** Why its pod was deleted before it started; undefined as soon as the pod is created again. */
export const whyNotStarted = ({ metadata, spec }: ApiObject<StatefulSet>): string | undefined =>
  spec?.replicas === 0 ? metadata.annotations?.[notStartedAnnotation] : undefined;
