/** The pod of a workspace: the user's image, in which the agent runs that the bootstrap container copies there. Pure. */
import {
  bootstrapContainer,
  dynamicEnvVariable,
  labelsOfWorkspace,
  pulumiContainer,
  shareFolder,
  shareVolume,
  workspaceFolder,
  type NormalWorkspace,
} from "@pko/api";
import { isRecord } from "@pko/rpc";
import type {
  Container,
  EnvVar,
  PodSpec,
  PodTemplateSpec,
  ResourceRequirements,
  Volume,
  VolumeMount,
} from "kubernetes-types/core/v1";

import { agentPort } from "../../agents/agents.ts";
import { agentPortName, certificateNameOf } from "../names.ts";
import { credentialsVariable, tokenScope, type TokenExchange } from "./oidc.ts";
import type { AppliedClass } from "../../shared/workspace-classes.ts";
import { applyClass } from "../classes/apply.ts";
import type { ClassReason } from "../outcome.ts";
import { enforceProfile, fillProfile } from "./security-profile.ts";
import type { WorkspaceSettings } from "../settings.ts";
import { limitStorage } from "./storage-limits.ts";
import { podTemplateFaults } from "./template-shape.ts";
import { MergeError, podTemplateSchema, strategicMerge, type JsonMap } from "../../shared/objects/strategic-merge.ts";

/** The agent's path in its own image, and where the bootstrap container copies it. */
const agentInImage = "/agent";
const agentInPod = `${shareFolder}/agent-bin`;

const tlsVolume = "agent-tls";
const tlsFolder = "/var/run/secrets/auto.pulumi.com/tls";
const oidcVolume = "pulumi-oidc";
const oidcFolder = "/var/run/secrets/auto.pulumi.com/oidc";
/** The kubelet renews it in time. */
const oidcTokenSeconds = 3600;
const credentialsVolume = "pulumi-credentials";
const credentialsFolder = "/var/run/secrets/auto.pulumi.com/credentials";
/** Containers append to it; the first one that does creates it. */
const dynamicEnvFile = `${shareFolder}/.env`;

/** Time to cancel a run gracefully: the agent's own grace period is a little shorter. */
const terminationGraceSeconds = 600;

export type BuiltPod =
  | { readonly ok: true; readonly template: PodTemplateSpec }
  /** Sentences, each with the field that is wrong. */
  | { readonly ok: false; readonly problems: readonly string[]; readonly reason?: ClassReason };

/** What the pod is built from, in addition to the spec. */
export interface PodParts {
  readonly settings: WorkspaceSettings;
  /** Of the Workspace: it identifies its updates. */
  readonly uid?: string;
  readonly exchange?: TokenExchange;
  /** The WorkspaceClass of the namespace. */
  readonly applied?: AppliedClass;
}

export function buildPodTemplate(workspace: NormalWorkspace, parts: PodParts): BuiltPod {
  const generated: PodTemplateSpec = {
    metadata: { labels: labelsOfWorkspace(workspace.name), annotations: {} },
    spec: podSpecOf(workspace, parts),
  };
  const merged = mergeTemplate(generated, workspace);
  if (typeof merged === "string") return { ok: false, problems: [merged] };
  for (const check of [podTemplateFaults, missingParts]) {
    const problems = check(merged);
    if (problems.length > 0) return { ok: false, problems };
  }
  const classed = applyClass(bootstrapFirst(withFetchSettings(merged)), parts.applied, workspace.securityProfile);
  if (!classed.ok) return { ...classed, reason: "WorkspaceClassLimitExceeded" };
  const adapted = withImageFlag(limitStorage(withDynamicEnv(classed.template)));
  const secure = (parts.settings.enforceSecurityProfile ?? true) ? enforceProfile : fillProfile;
  const { template, violations } = secure(adapted, workspace.securityProfile);
  if (violations.length > 0) return { ok: false, problems: violations };
  const labels = { ...template.metadata?.labels, ...labelsOfWorkspace(workspace.name) };
  return { ok: true, template: { ...template, metadata: { ...template.metadata, labels } } };
}

function podSpecOf(workspace: NormalWorkspace, parts: PodParts): PodSpec {
  return {
    serviceAccountName: workspace.serviceAccountName,
    terminationGracePeriodSeconds: terminationGraceSeconds,
    securityContext: workspace.securityProfile === "restricted" ? restrictedIdentity : {},
    initContainers: [bootstrapContainerOf(workspace, parts.settings)],
    containers: [pulumiContainerOf(workspace, parts)],
    volumes: [
      { name: shareVolume, emptyDir: {} },
      // Readable for any user that the image runs as.
      { name: tlsVolume, secret: { secretName: certificateNameOf(workspace.name), defaultMode: 0o444 } },
      ...(parts.exchange ? exchangeVolumes(parts.exchange) : []),
    ],
  };
}

const audienceOf = (organization: string): string => `urn:pulumi:org:${organization}`;

function exchangeVolumes({ organization }: TokenExchange): Volume[] {
  const audience = audienceOf(organization);
  const serviceAccountToken = { audience, expirationSeconds: oidcTokenSeconds, path: "token" };
  return [
    { name: oidcVolume, projected: { sources: [{ serviceAccountToken }] } },
    // The CLI stores its token there: in memory, and deleted with the pod.
    { name: credentialsVolume, emptyDir: { medium: "Memory", sizeLimit: "16Mi" } },
  ];
}

function exchangeFlags({ organization, holder, expirationSeconds }: TokenExchange): string[] {
  const scope = tokenScope(holder);
  return [
    `--oidc-token=${oidcFolder}/token`,
    `--oidc-organization=${organization}`,
    ...(scope === "" ? [] : [`--oidc-scope=${scope}`]),
    `--oidc-expiration-seconds=${expirationSeconds}`,
    `--oidc-credentials=${credentialsFolder}`,
  ];
}

const restrictedIdentity = {
  runAsNonRoot: true,
  runAsUser: 1000,
  runAsGroup: 1000,
  fsGroup: 1000,
  fsGroupChangePolicy: "OnRootMismatch",
  seccompProfile: { type: "RuntimeDefault" },
};

function bootstrapContainerOf(workspace: NormalWorkspace, settings: WorkspaceSettings): Container {
  const { agentImage, agentImagePullPolicy } = settings;
  return {
    name: bootstrapContainer,
    image: agentImage,
    ...(agentImagePullPolicy && { imagePullPolicy: agentImagePullPolicy }),
    command: bootstrapCommand(workspace),
    ...terminationMessage,
    env: [dynamicEnv],
    resources: bootstrapResources(workspace),
    volumeMounts: [{ name: shareVolume, mountPath: shareFolder }],
  };
}

/** The Pulumi container's working folder must exist; without a source an init container creates it. */
function bootstrapCommand({ source }: NormalWorkspace): string[] {
  return [agentInImage, "install", agentInPod, ...(source.kind === "none" ? [] : [workspaceFolder])];
}

/** The same as the main container's: less would save nothing, and more would raise what the pod as a whole requests. */
function bootstrapResources({ resources }: NormalWorkspace): ResourceRequirements {
  const { cpu, memory } = (resources as ResourceRequirements).requests ?? {};
  return { requests: { ...(cpu !== undefined && { cpu }), ...(memory !== undefined && { memory }) } };
}

/** The end of its output shows why it failed: explain-pod.ts reports it. */
const terminationMessage = { terminationMessagePolicy: "FallbackToLogsOnError" };

const dynamicEnv: EnvVar = { name: dynamicEnvVariable, value: dynamicEnvFile };

function pulumiContainerOf(workspace: NormalWorkspace, { settings, uid, exchange }: PodParts): Container {
  const { image, imagePullPolicy, envFrom } = workspace;
  const flags = [
    ...(uid === undefined ? [] : [`--workspace-uid=${uid}`]),
    ...(exchange ? exchangeFlags(exchange) : []),
    ...(settings.agentFlags ?? []),
  ];
  return {
    name: pulumiContainer,
    image,
    ...(imagePullPolicy && { imagePullPolicy }),
    command: [agentInPod, `--share=${shareFolder}`, `--tls=${tlsFolder}`, `--port=${agentPort}`, ...flags],
    workingDir: workspaceFolder,
    env: environmentOf(workspace, exchange),
    ...(envFrom.length > 0 && { envFrom: [...envFrom] }),
    ports: [{ name: agentPortName, containerPort: agentPort }],
    ...terminationMessage,
    // The agent accepts only clients with a certificate of its CA, so a probe can only check that it listens.
    readinessProbe: { tcpSocket: { port: agentPort }, periodSeconds: 5, failureThreshold: 3 },
    resources: workspace.resources as ResourceRequirements,
    volumeMounts: [
      { name: shareVolume, mountPath: shareFolder },
      { name: tlsVolume, mountPath: tlsFolder, readOnly: true },
      ...(exchange ? exchangeMounts : []),
    ],
  };
}

const exchangeMounts = [
  { name: oidcVolume, mountPath: oidcFolder, readOnly: true },
  { name: credentialsVolume, mountPath: credentialsFolder },
];

/** What the agent needs, and what commands in a shell of the container need. */
function environmentOf({ env }: NormalWorkspace, exchange: TokenExchange | undefined): EnvVar[] {
  const fixed: EnvVar[] = [
    { name: "POD_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
    { name: "POD_SA_NAME", valueFrom: { fieldRef: { fieldPath: "spec.serviceAccountName" } } },
    dynamicEnv,
    // An existing stack keeps its secrets provider even if its settings file is not in the repository.
    { name: "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER", value: "true" },
    // A variable takes precedence over the same one in envFrom.
    ...(exchange && !exchange.hasCredentialsPath ? [{ name: credentialsVariable, value: credentialsFolder }] : []),
  ];
  const given = new Set(env.map(({ name }) => name));
  return [...fixed.filter(({ name }) => !given.has(name)), ...(env as EnvVar[])];
}

function mergeTemplate(generated: PodTemplateSpec, { podTemplate }: NormalWorkspace): PodTemplateSpec | string {
  const original = generated as unknown as JsonMap;
  const patch = podTemplate as unknown as JsonMap;
  try {
    return strategicMerge(original, replacingSources(original, patch), podTemplateSchema);
  } catch (error) {
    if (error instanceof MergeError) return `spec.podTemplate.${error.message}`;
    throw error;
  }
}

/** An approved plan is applied only in the image in which it was made, even if a template sets the image. */
function withImageFlag(template: PodTemplateSpec): PodTemplateSpec {
  const { spec } = template;
  if (!spec) return template;
  const containers = spec.containers.map((container) => {
    const { command = [], image = "" } = container;
    return command[0] === agentInPod ? { ...container, command: [...command, `--image=${image}`] } : container;
  });
  return { ...template, spec: { ...spec, containers } };
}

/** A volume has one source: if a template sets another one for a volume of ours, such as a claim, that replaces ours. */
function replacingSources(original: JsonMap, patch: JsonMap): JsonMap {
  const spec = patch["spec"];
  if (!isRecord(spec) || !Array.isArray(spec["volumes"])) return patch;
  const own = (original["spec"] as unknown as { volumes: Volume[] }).volumes.map(({ name }) => name);
  const isOwn = (volume: JsonMap): boolean => own.some((name) => name === volume["name"]);
  const volumes = spec["volumes"].map((volume) => {
    if (!isRecord(volume) || "$patch" in volume || "$retainKeys" in volume || !isOwn(volume)) {
      return volume;
    }
    return Object.keys(volume).length > 1 ? { ...volume, $retainKeys: Object.keys(volume) } : volume;
  });
  return { ...patch, spec: { ...spec, volumes } };
}

/**
 * Earlier operators fetched programs in an init container, for which templates set proxies and certificate authorities.
 * Now the agent fetches them, so it gets what templates set for that container.
 */
function withFetchSettings(template: PodTemplateSpec): PodTemplateSpec {
  const { spec } = template;
  const former = spec?.initContainers?.find(({ name, image }) => name === "fetch" && image === undefined);
  if (!spec || !former) return template;
  const given = (container: Container): Container => {
    const { env = [], envFrom = [], volumeMounts = [] } = container;
    const isNew = ({ name }: EnvVar): boolean => !env.some((each) => each.name === name);
    const isFree = ({ mountPath }: VolumeMount): boolean => !volumeMounts.some((each) => each.mountPath === mountPath);
    return {
      ...container,
      env: [...env, ...(former.env ?? []).filter(isNew)],
      ...(former.envFrom && { envFrom: [...envFrom, ...former.envFrom] }),
      volumeMounts: [...volumeMounts, ...(former.volumeMounts ?? []).filter(isFree)],
    };
  };
  const containers = spec.containers.map((each) => (each.name === pulumiContainer ? given(each) : each));
  const initContainers = spec.initContainers?.filter((each) => each !== former);
  return { ...template, spec: { ...spec, containers, ...(initContainers && { initContainers }) } };
}

/** Every container, also a sidecar, may append to $PULUMI_ENV: it needs the variable and the volume for that. */
function withDynamicEnv(template: PodTemplateSpec): PodTemplateSpec {
  const { spec } = template;
  if (!spec) return template;
  const { initContainers, containers } = spec;
  const shared = {
    ...(initContainers && { initContainers: initContainers.map(withShare) }),
    containers: containers.map(withShare),
  };
  return { ...template, spec: { ...spec, ...shared } };
}

function withShare(container: Container): Container {
  const { env = [], volumeMounts = [] } = container;
  const hasVariable = env.some(({ name }) => name === dynamicEnvVariable);
  const hasShare = volumeMounts.some(({ name, mountPath }) => name === shareVolume || mountPath === shareFolder);
  return {
    ...container,
    env: hasVariable ? env : [...env, dynamicEnv],
    volumeMounts: hasShare ? volumeMounts : [...volumeMounts, { name: shareVolume, mountPath: shareFolder }],
  };
}

/** A strategic merge puts a template's init containers first. They may rely on bootstrap, so bootstrap is moved before them. */
function bootstrapFirst(template: PodTemplateSpec): PodTemplateSpec {
  const { spec } = template;
  if (!spec?.initContainers) return template;
  const isFirst = ({ name }: Container): boolean => name === bootstrapContainer;
  const others = spec.initContainers.filter((each) => !isFirst(each));
  return { ...template, spec: { ...spec, initContainers: [...spec.initContainers.filter(isFirst), ...others] } };
}

/** What the agent needs and a template can remove. */
function missingParts({ spec }: PodTemplateSpec): string[] {
  const containers = spec?.containers ?? [];
  const pulumi = containers.find(({ name }) => name === pulumiContainer);
  const mounts = (container: Container | undefined, path: string): boolean =>
    (container?.volumeMounts ?? []).some(({ mountPath }) => mountPath === path);
  const bootstrap = spec?.initContainers?.find(({ name }) => name === bootstrapContainer);
  const field = "spec.podTemplate.spec";
  return [
    ...(pulumi ? [] : [`${field}.containers: the container ${pulumiContainer} is removed; keep it`]),
    ...(bootstrap ? [] : [`${field}.initContainers: the container bootstrap is removed; keep it`]),
    ...(pulumi && !mounts(pulumi, shareFolder) ? [`${field}.containers[pulumi]: ${shareFolder} is not mounted`] : []),
    ...(pulumi && !mounts(pulumi, tlsFolder) ? [`${field}.containers[pulumi]: ${tlsFolder} is not mounted`] : []),
  ];
}
