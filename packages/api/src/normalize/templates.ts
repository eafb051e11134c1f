/** The overlays for a Stack's Workspace and Updates. */
import { durationMessage, parseDuration } from "../shared/duration.ts";
import type { TemplateMetadata } from "../shared/template-metadata.ts";
import type { StackSpec } from "../stack/spec.ts";
import type { UpdateTemplate, WorkspaceTemplate } from "../stack/templates.ts";
import { securityProfiles } from "../workspace/pod-facts.ts";
import type { Scope } from "./scope.ts";

type GivenWorkspaceSpec = NonNullable<WorkspaceTemplate["spec"]>;
type GivenUpdateSpec = NonNullable<UpdateTemplate["spec"]>;

/** A strategic merge patch for the Workspace's spec. All init containers are in podTemplate. */
export type WorkspaceOverlay = Omit<GivenWorkspaceSpec, "initContainers">;

/** Replaces fields of each Update's spec, except those that the Stack determines. */
type UpdateOverlay = Omit<GivenUpdateSpec, "workspaceName" | "stackName" | "type" | "ttlAfterCompleted">;

export interface ObjectOverlay<Spec> {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: Spec;
}

export interface UpdateSettings extends ObjectOverlay<UpdateOverlay> {
  readonly ttlAfterCompletedMs: number;
}

const defaultUpdateTtlMs = 24 * 3_600_000;

export function workspaceOverlay(
  template: WorkspaceTemplate | undefined,
  scope: Scope,
): ObjectOverlay<WorkspaceOverlay> {
  const given = template?.spec ?? {};
  checkChoices(given, scope);
  return { ...overlayMetadata(template?.metadata), spec: withInitContainers(given, scope) };
}

const pullPolicies = ["Always", "Never", "IfNotPresent"];

function checkChoices({ securityProfile, imagePullPolicy }: GivenWorkspaceSpec, { findings }: Scope): void {
  const field = "spec.workspaceTemplate.spec";
  if (securityProfile && !securityProfiles.some((profile) => profile === securityProfile)) {
    const remedy = `use ${securityProfiles.join(" or ")}`;
    findings.problem(`${field}.securityProfile`, { message: "is not a supported security profile", remedy });
  }
  if (imagePullPolicy && !pullPolicies.includes(imagePullPolicy)) {
    const remedy = `use ${pullPolicies.join(", ")}`;
    findings.problem(`${field}.imagePullPolicy`, { message: "is not a supported pull policy", remedy });
  }
}

function withInitContainers({ initContainers, ...overlay }: GivenWorkspaceSpec, { findings }: Scope): WorkspaceOverlay {
  if (!initContainers || initContainers.length === 0) return overlay;
  const { podTemplate } = overlay;
  const all = [...(podTemplate?.spec?.initContainers ?? []), ...initContainers];
  const names = all.map(({ name }) => name);
  if (new Set(names).size < names.length) {
    const field = "spec.workspaceTemplate.spec.initContainers";
    findings.problem(field, {
      message: "contains two containers with the same name",
      remedy: "use unique names here and in podTemplate",
    });
  }
  return { ...overlay, podTemplate: { ...podTemplate, spec: { ...podTemplate?.spec, initContainers: all } } };
}

export function updateSettings(spec: StackSpec, scope: Scope): UpdateSettings {
  const { workspaceName, stackName, type, ttlAfterCompleted, ...overlay } = spec.updateTemplate?.spec ?? {};
  const field = "spec.updateTemplate.spec";
  const decided = { message: "is determined by the Stack", remedy: "remove this field" };
  if (type && type !== (spec.preview ? "preview" : "up")) {
    const remedy = "remove this field; for previews, set spec.preview";
    scope.findings.problem(`${field}.type`, { ...decided, remedy });
  }
  if (workspaceName && workspaceName !== scope.name) scope.findings.problem(`${field}.workspaceName`, decided);
  if (stackName && stackName !== spec.stack) scope.findings.problem(`${field}.stackName`, decided);
  return {
    ...overlayMetadata(spec.updateTemplate?.metadata),
    spec: overlay,
    ttlAfterCompletedMs: updateTtlMs(ttlAfterCompleted, `${field}.ttlAfterCompleted`, scope),
  };
}

function updateTtlMs(text: string | undefined, field: string, { findings }: Scope): number {
  const ms = text === undefined ? defaultUpdateTtlMs : parseDuration(text);
  if (ms === undefined) findings.problem(field, durationMessage);
  return Math.max(ms ?? 0, 0);
}

function overlayMetadata(metadata: TemplateMetadata | undefined): Omit<ObjectOverlay<never>, "spec"> {
  return { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {} };
}
