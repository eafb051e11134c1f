/** Names and annotations of what a Workspace owns, beside those of the API. */
import { statefulSetNameOf } from "@pko/api";

export const certificateNameOf = (workspaceName: string): string => `${statefulSetNameOf(workspaceName)}-tls`;

/** Of the pod's port and the Service's: the Go operator's name for it, by which network policies of users let it through. */
export const agentPortName = "grpc";

export const podNameOf = (workspaceName: string): string => `${statefulSetNameOf(workspaceName)}-0`;

/** On the StatefulSet: what it and the Service were built from. */
export const builtHashAnnotation = "auto.pulumi.com/built-hash";
/** On the StatefulSet: the generation of the Workspace whose preparation failed before its pod was put away. */
export const putAwayAnnotation = "auto.pulumi.com/put-away";
/** On the StatefulSet: when its controller was made to retry the creation of the pod. */
export const podRetriedAnnotation = "auto.pulumi.com/pod-retried-at";
/** On the pod: the Secrets and ConfigMaps that it reads. */
export const referencesHashAnnotation = "auto.pulumi.com/references-hash";
