/** The objects of a Workspace: the StatefulSet, its headless Service, and the Secret with its certificate. Pure. */

import { labelsOfWorkspace, statefulSetNameOf, workspaceKind, type NormalWorkspace, type Workspace } from "@pko/api";
import type { ApplyBody, ApiObject } from "@pko/kube";
import type { Certificate } from "@pko/rpc/pki";
import type { StatefulSet } from "kubernetes-types/apps/v1";
import type { PodTemplateSpec, Secret, Service } from "kubernetes-types/core/v1";

import { agentPort } from "../../agents/agents.ts";
import { agentPortName, builtHashAnnotation, certificateNameOf, imageWithoutShellAnnotation } from "../names.ts";
import { serviceFaults } from "./template-shape.ts";
import { MergeError, serviceSchema, strategicMerge, type JsonMap } from "../../shared/objects/strategic-merge.ts";
import { contentHash } from "../../shared/digest.ts";
import { ownerReference } from "../../shared/objects/owner-reference.ts";
import { referencesHashAnnotation } from "../../shared/pods/workspace-pod.ts";

export interface BuiltObjects {
  readonly service: ApplyBody<ApiObject<Service>>;
  readonly statefulSet: ApplyBody<ApiObject<StatefulSet>>;
  /** Of everything except the replicas: while it is the same, nothing is written. */
  readonly hash: string;
}

interface Parts {
  readonly workspace: Workspace;
  readonly normal: NormalWorkspace;
  readonly template: PodTemplateSpec;
  /** Of the Secrets and ConfigMaps that the pod reads: a change replaces the pod. */
  readonly referencesHash: string;
  /** Recorded, so that it is not tried again. */
  readonly imageWithoutShell?: string;
}

/** A string is a problem: the template of the Service cannot be merged. */
export function buildObjects(parts: Parts): BuiltObjects | string {
  const service = buildService(parts);
  if (typeof service === "string") return service;
  const statefulSet = buildStatefulSet(parts);
  const hash = contentHash([service, statefulSet]);
  const { imageWithoutShell } = parts;
  const annotations = {
    [builtHashAnnotation]: hash,
    ...(imageWithoutShell !== undefined && { [imageWithoutShellAnnotation]: imageWithoutShell }),
  };
  const metadata = { ...statefulSet.metadata, annotations };
  return { service, statefulSet: { ...statefulSet, metadata }, hash };
}

function buildStatefulSet({ workspace, normal, template, referencesHash }: Parts): ApplyBody<ApiObject<StatefulSet>> {
  const name = statefulSetNameOf(normal.name);
  const labels = labelsOfWorkspace(normal.name);
  const annotations = { ...template.metadata?.annotations, [referencesHashAnnotation]: referencesHash };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace: normal.namespace, labels, ownerReferences: [owner(workspace)] },
    spec: {
      serviceName: name,
      replicas: 1,
      // A single pod needs no order, and a pod that never becomes ready does not block its replacement.
      podManagementPolicy: "Parallel",
      updateStrategy: { type: "RollingUpdate" },
      revisionHistoryLimit: 2,
      selector: { matchLabels: labels },
      template: { ...template, metadata: { ...template.metadata, annotations } },
    },
  };
}

function buildService({ workspace, normal }: Parts): ApplyBody<ApiObject<Service>> | string {
  const labels = labelsOfWorkspace(normal.name);
  const generated: JsonMap = {
    metadata: { labels },
    spec: {
      clusterIP: "None",
      selector: labels,
      ports: [{ name: agentPortName, port: agentPort, targetPort: agentPort, protocol: "TCP" }],
    },
  };
  try {
    const merged = strategicMerge(generated, normal.serviceTemplate, serviceSchema);
    const [fault] = serviceFaults(merged);
    if (fault !== undefined) return fault;
    const { metadata, spec } = merged as Pick<Service, "metadata" | "spec">;
    return {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        name: statefulSetNameOf(normal.name),
        namespace: normal.namespace,
        labels: { ...metadata?.labels, ...labels },
        ...(metadata?.annotations && { annotations: metadata.annotations }),
        ownerReferences: [owner(workspace)],
      },
      spec: { ...spec },
    };
  } catch (error) {
    if (error instanceof MergeError) return `spec.serviceTemplate.${error.message}`;
    throw error;
  }
}

export function buildCertificateSecret(workspace: Workspace, certificate: Certificate): ApplyBody<ApiObject<Secret>> {
  const { name = "", namespace = "" } = workspace.metadata;
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: certificateNameOf(name),
      namespace,
      labels: labelsOfWorkspace(name),
      ownerReferences: [owner(workspace)],
    },
    type: "kubernetes.io/tls",
    data: {
      "ca.crt": encode(certificate.ca),
      "tls.crt": encode(certificate.cert),
      "tls.key": encode(certificate.key),
    },
  };
}

export function certificateIn(secret: ApiObject<Secret>): Certificate | undefined {
  const text = (key: string): string => Buffer.from(secret.data?.[key] ?? "", "base64").toString();
  const [ca, cert, key] = [text("ca.crt"), text("tls.crt"), text("tls.key")];
  return ca && cert && key ? { ca, cert, key } : undefined;
}

const owner = ({ metadata }: Workspace): ReturnType<typeof ownerReference> =>
  ownerReference({ ...workspaceKind, metadata }, { controller: true, blockOwnerDeletion: true });
