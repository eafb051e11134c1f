/** Names and annotations of the objects that a Workspace owns, in addition to those of the API. */
import { statefulSetNameOf } from "@pko/api";

export const certificateNameOf = (workspaceName: string): string => `${statefulSetNameOf(workspaceName)}-tls`;

/** Of the pod's and the Service's port. The Go operator uses the same name, and network policies of users select it. */
export const agentPortName = "grpc";

/** On the StatefulSet: the hash of what it and the Service were built from. */
export const builtHashAnnotation = "auto.pulumi.com/built-hash";
/** On the StatefulSet: the image of its pod, which has no shell. */
export const imageWithoutShellAnnotation = "auto.pulumi.com/image-without-shell";
/** On the StatefulSet: the Workspace's generation whose preparation failed before the StatefulSet was scaled to zero. */
export const backedOffAnnotation = "auto.pulumi.com/put-away";
/** On the StatefulSet: why its pod has not started, if it was scaled to zero because others waited for its slot. */
export const notStartedAnnotation = "auto.pulumi.com/not-started";
/** On the StatefulSet: when its controller was last made to retry the creation of the pod. */
export const podRetriedAnnotation = "auto.pulumi.com/pod-retried-at";
