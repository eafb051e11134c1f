/** Every accepted spelling of a Stack in one form, for the controller. Pure; never throws, whatever it is given. */
import { Type, type Static } from "typebox";

import type { Oidc } from "../shared/oidc.ts";
import { StackSpec } from "../stack/spec.ts";
import { nameLimit, stackWording as wording } from "../stack/wording.ts";
import { configOf, type ConfigItem } from "./configuration.ts";
import { envFromOf, envOf, type EnvBundle, type EnvVariable } from "./environment.ts";
import { Findings, type Normalised } from "./findings.ts";
import { oidcOf } from "./oidc.ts";
import { prerequisitesOf, type NormalPrerequisite } from "./prerequisites.ts";
import { isArgument, isServicePrefix } from "./rules.ts";
import type { Scope } from "./scope.ts";
import { checkSecretsProvider } from "./secrets-provider.ts";
import { NamedMetadata, shaped } from "./shape.ts";
import { sourceOf, type Source } from "./source.ts";
import {
  updateSettingsOf,
  workspaceOverlayOf,
  type ObjectOverlay,
  type UpdateSettings,
  type WorkspaceOverlay,
} from "./templates.ts";

export interface NormalStack {
  readonly name: string;
  readonly namespace: string;
  /** The name of the Pulumi stack. */
  readonly stackName: string;
  readonly source: Source;
  readonly env: readonly EnvVariable[];
  readonly envFrom: readonly EnvBundle[];
  readonly config: readonly ConfigItem[];
  /** As it is given: the Workspace takes it over. */
  readonly oidc?: Oidc;
  readonly secretsProvider?: string;
  /** Pulumi ESC environments. */
  readonly environments: readonly string[];
  readonly prerequisites: readonly NormalPrerequisite[];
  /** What an update does: previews never change anything. */
  readonly operation: "up" | "preview";
  readonly refresh: boolean;
  /** The refresh before an update may find nothing new, or the update does not begin. */
  readonly expectNoRefreshChanges: boolean;
  readonly targets: readonly string[];
  readonly targetDependents: boolean;
  /** Whether the Pulumi stack is created when it does not exist. */
  readonly create: boolean;
  readonly destroyOnFinalize: boolean;
  readonly runProgramOnDestroy: boolean;
  /** `everyMs` also paces the look for new commits; `always` updates though nothing has changed. */
  readonly resync: { readonly everyMs: number; readonly always: boolean };
  readonly retry: { readonly maxBackoffMs: number; readonly onConflict: boolean };
  readonly workspace: ObjectOverlay<WorkspaceOverlay> & {
    readonly serviceAccountName?: string;
    readonly reclaim: "Retain" | "Delete";
  };
  readonly update: UpdateSettings;
}

const minResyncSeconds = 60;
const maxBackoffSeconds = 86_400;

const StackShape = Type.Object({ metadata: NamedMetadata, spec: StackSpec });

export function normaliseStack(stack: unknown): Normalised<NormalStack> {
  const findings = new Findings("stack");
  const shape = shaped(StackShape, stack, findings);
  return findings.outcome(shape && normalForm(shape, findings));
}

/** Every part is looked at, though one has problems: all of them are told at once. */
function normalForm({ metadata, spec }: Static<typeof StackShape>, findings: Findings): NormalStack | undefined {
  const scope: Scope = { name: metadata.name, namespace: metadata.namespace ?? "", findings };
  checkNames(spec, scope);
  adviseOnFields(spec, scope);
  const source = sourceOf(spec, scope);
  const parts = {
    ...inputsOf(spec, scope),
    ...conductOf(spec),
    resync: resyncOf(spec, scope),
    workspace: workspaceOf(spec, scope),
    update: updateSettingsOf(spec, scope),
  };
  if (!source) return undefined;
  return { name: scope.name, namespace: scope.namespace, stackName: spec.stack, source, ...parts };
}

function checkNames({ stack }: StackSpec, { name, findings }: Scope): void {
  if (name.length > nameLimit) findings.problem("metadata.name", wording.nameTooLong);
  if (!isServicePrefix(name)) {
    const remedy = "start with a letter, and use small letters, digits and dashes alone";
    findings.problem("metadata.name", { message: "cannot be the name of the workspace's Service", remedy });
  }
  if (!isArgument(stack)) {
    const remedy = "write it as ORGANIZATION/PROJECT/STACK, or STACK alone";
    findings.problem("spec.stack", { message: "is not the name of a Pulumi stack", remedy });
  }
}

/** What a program is given. */
function inputsOf(spec: StackSpec, scope: Scope) {
  oidcOf(spec.oidc, [spec.stack], scope.findings);
  checkSecretsProvider(spec.secretsProvider, scope.findings);
  return {
    env: envOf(spec, scope),
    ...(spec.oidc && { oidc: spec.oidc }),
    envFrom: envFromOf(spec, scope),
    config: configOf(spec, scope),
    environments: spec.environment ?? [],
    ...(spec.secretsProvider && { secretsProvider: spec.secretsProvider }),
    prerequisites: prerequisitesOf(spec.prerequisites ?? [], scope),
  };
}

/** How its updates run. */
function conductOf(spec: StackSpec) {
  const seconds = spec.retryMaxBackoffDurationSeconds ?? 0;
  return {
    operation: spec.preview ? ("preview" as const) : ("up" as const),
    refresh: spec.refresh ?? false,
    expectNoRefreshChanges: (spec.refresh && spec.expectNoRefreshChanges) ?? false,
    targets: spec.targets ?? [],
    targetDependents: spec.targetDependents ?? false,
    create: !spec.useLocalStackOnly,
    destroyOnFinalize: spec.destroyOnFinalize ?? false,
    runProgramOnDestroy: spec.runProgram ?? false,
    retry: {
      maxBackoffMs: msOf(seconds > 0 ? seconds : maxBackoffSeconds),
      onConflict: spec.retryOnUpdateConflict ?? false,
    },
  };
}

/** Ten years stand for ever: a later time may be none that can be written. */
const msOf = (seconds: number): number => Math.min(seconds, 10 * 365 * 86_400) * 1000;

function resyncOf(spec: StackSpec, { findings }: Scope): NormalStack["resync"] {
  const seconds = spec.resyncFrequencySeconds ?? minResyncSeconds;
  const field = "spec.resyncFrequencySeconds";
  if (seconds < 0) findings.problem(field, wording.negativeResync);
  else if (seconds < minResyncSeconds) {
    findings.advise(field, { message: `counts as ${minResyncSeconds}`, remedy: `set ${minResyncSeconds} or more` });
  }
  return { everyMs: msOf(Math.max(seconds, minResyncSeconds)), always: spec.continueResyncOnCommitMatch ?? false };
}

function workspaceOf(spec: StackSpec, scope: Scope): NormalStack["workspace"] {
  return {
    ...workspaceOverlayOf(spec.workspaceTemplate, scope),
    ...(spec.serviceAccountName && { serviceAccountName: spec.serviceAccountName }),
    reclaim: spec.workspaceReclaimPolicy ?? "Retain",
  };
}

function adviseOnFields(spec: StackSpec, { findings }: Scope): void {
  const noEffect = { message: "has no effect", remedy: "remove it" };
  if (spec.expectNoRefreshChanges && !spec.refresh) {
    const remedy = "set refresh to true, or remove it";
    findings.advise("spec.expectNoRefreshChanges", { message: "has no effect without refresh", remedy });
  } else if (spec.expectNoRefreshChanges && spec.preview) {
    const remedy = "remove it, or look at the changes that the preview tells";
    findings.advise("spec.expectNoRefreshChanges", { message: "has no effect on previews", remedy });
  }
  if (spec.initOnCreate && spec.useLocalStackOnly) findings.advise("spec.initOnCreate", noEffect);
  if (spec.oidc && (spec.accessTokenSecret || spec.envRefs?.["PULUMI_ACCESS_TOKEN"])) {
    const remedy = "remove it, or remove PULUMI_ACCESS_TOKEN";
    findings.advise("spec.oidc", { message: "has no effect beside PULUMI_ACCESS_TOKEN", remedy });
  }
}
