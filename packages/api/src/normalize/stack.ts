/** Converts every accepted spelling of a Stack to one normal form for the controller. Pure; never throws, for any input. */
import { Type, type Static } from "typebox";

import type { Oidc } from "../shared/oidc.ts";
import { StackSpec } from "../stack/spec.ts";
import { nameLimit, stackMessages as messages } from "../stack/messages.ts";
import { boundedMs, stackControl, type Control, type ControlOptions } from "./control.ts";
import { stackConfig, type ConfigItem } from "./configuration.ts";
import { stackEnvFrom, stackEnv, type EnvBundle, type EnvVariable } from "./environment.ts";
import { Findings, type Normalized } from "./findings.ts";
import { normalOidc } from "./oidc.ts";
import { normalPrerequisites, type NormalPrerequisite } from "./prerequisites.ts";
import { normalPullRequests, type NormalPullRequests } from "./pull-requests.ts";
import { isArgument, isServicePrefix } from "./rules.ts";
import type { Scope } from "./scope.ts";
import { checkSecretsProvider } from "./secrets-provider.ts";
import { NamedMetadata, checkShape } from "./shape.ts";
import { stackSource, type Source } from "./source.ts";
import {
  updateSettings,
  workspaceOverlay,
  type ObjectOverlay,
  type UpdateSettings,
  type WorkspaceOverlay,
} from "./templates.ts";

export interface NormalStack extends Control {
  readonly name: string;
  readonly namespace: string;
  /** The name of the Pulumi stack. */
  readonly stackName: string;
  readonly source: Source;
  readonly env: readonly EnvVariable[];
  readonly envFrom: readonly EnvBundle[];
  readonly config: readonly ConfigItem[];
  /** Copied to the Workspace without changes. */
  readonly oidc?: Oidc;
  readonly secretsProvider?: string;
  /** Pulumi ESC environments. */
  readonly environments: readonly string[];
  readonly prerequisites: readonly NormalPrerequisite[];
  /** Whether updates change resources or only preview changes. */
  readonly operation: "up" | "preview";
  readonly refresh: boolean;
  /** The update fails before it changes anything if the refresh finds changes. */
  readonly expectNoRefreshChanges: boolean;
  readonly targets: readonly string[];
  readonly targetDependents: boolean;
  /** Whether to create the Pulumi stack if it does not exist. */
  readonly create: boolean;
  readonly destroyOnFinalize: boolean;
  readonly runProgramOnDestroy: boolean;
  /** `everyMs` is also the interval between checks for new commits; `always` updates even if nothing has changed. */
  readonly resync: { readonly everyMs: number; readonly always: boolean };
  readonly retry: { readonly maxBackoffMs: number; readonly onConflict: boolean };
  readonly workspace: ObjectOverlay<WorkspaceOverlay> & {
    readonly serviceAccountName?: string;
    readonly reclaim: "Retain" | "Delete";
  };
  readonly update: UpdateSettings;
  /** Undefined if pull requests are not previewed. */
  readonly pullRequests?: NormalPullRequests;
}

const defaultMinResyncSeconds = 60;
const maxBackoffSeconds = 86_400;

const StackShape = Type.Object({ metadata: NamedMetadata, spec: StackSpec });

interface NormalizeOptions extends ControlOptions {
  /** For tests: a shorter interval than users can have. */
  readonly minResyncSeconds?: number;
}

export function normalizeStack(stack: unknown, options: NormalizeOptions = {}): Normalized<NormalStack> {
  const findings = new Findings("stack");
  const shape = checkShape(StackShape, stack, findings);
  return findings.outcome(shape && normalForm(shape, findings, options));
}

/** Checks every part even if one has problems, so that all problems are reported together. */
function normalForm(
  { metadata, spec }: Static<typeof StackShape>,
  findings: Findings,
  { minResyncSeconds = defaultMinResyncSeconds, ...options }: NormalizeOptions,
): NormalStack | undefined {
  const scope: Scope = { name: metadata.name, namespace: metadata.namespace ?? "", findings };
  checkNames(spec, scope);
  adviseOnFields(spec, scope);
  const source = stackSource(spec, scope);
  const pullRequests = normalPullRequests(spec, source, findings);
  const parts = {
    ...programInputs(spec, scope),
    ...updateBehavior(spec),
    ...stackControl(spec, findings, options),
    resync: resyncSettings(spec, scope, minResyncSeconds),
    workspace: workspaceSettings(spec, scope),
    update: updateSettings(spec, scope),
    ...(pullRequests && { pullRequests }),
  };
  if (!source) return undefined;
  return { name: scope.name, namespace: scope.namespace, stackName: spec.stack, source, ...parts };
}

function checkNames({ stack }: StackSpec, { name, findings }: Scope): void {
  if (name.length > nameLimit) findings.problem("metadata.name", messages.nameTooLong);
  if (!isServicePrefix(name)) {
    const remedy = "start with a letter, and use only lowercase letters, digits and hyphens";
    findings.problem("metadata.name", { message: "is not a valid name for the workspace's Service", remedy });
  }
  if (!isArgument(stack)) {
    const remedy = "use ORGANIZATION/PROJECT/STACK or only STACK";
    findings.problem("spec.stack", { message: "is not a valid name of a Pulumi stack", remedy });
  }
}

/** The inputs of the program. */
function programInputs(spec: StackSpec, scope: Scope) {
  normalOidc(spec.oidc, [spec.stack], scope.findings);
  checkSecretsProvider(spec.secretsProvider, scope.findings);
  return {
    env: stackEnv(spec, scope),
    ...(spec.oidc && { oidc: spec.oidc }),
    envFrom: stackEnvFrom(spec, scope),
    config: stackConfig(spec, scope),
    environments: spec.environment ?? [],
    ...(spec.secretsProvider && { secretsProvider: spec.secretsProvider }),
    prerequisites: normalPrerequisites(spec.prerequisites ?? [], scope),
  };
}

/** How updates run. */
function updateBehavior(spec: StackSpec) {
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
      maxBackoffMs: boundedMs(seconds > 0 ? seconds : maxBackoffSeconds),
      onConflict: spec.retryOnUpdateConflict ?? false,
    },
  };
}

function resyncSettings(spec: StackSpec, { findings }: Scope, minResyncSeconds: number): NormalStack["resync"] {
  const seconds = spec.resyncFrequencySeconds ?? minResyncSeconds;
  const field = "spec.resyncFrequencySeconds";
  if (seconds < 0) findings.problem(field, messages.negativeResync);
  else if (seconds < minResyncSeconds) {
    findings.advise(field, { message: `is treated as ${minResyncSeconds}`, remedy: `set ${minResyncSeconds} or more` });
  }
  return { everyMs: boundedMs(Math.max(seconds, minResyncSeconds)), always: spec.continueResyncOnCommitMatch ?? false };
}

function workspaceSettings(spec: StackSpec, scope: Scope): NormalStack["workspace"] {
  return {
    ...workspaceOverlay(spec.workspaceTemplate, scope),
    ...(spec.serviceAccountName && { serviceAccountName: spec.serviceAccountName }),
    reclaim: spec.workspaceReclaimPolicy ?? "Retain",
  };
}

function adviseOnFields(spec: StackSpec, { findings }: Scope): void {
  const noEffect = { message: "has no effect", remedy: "remove this field" };
  if (spec.expectNoRefreshChanges && !spec.refresh) {
    const remedy = "set refresh to true, or remove this field";
    findings.advise("spec.expectNoRefreshChanges", { message: "has no effect without refresh", remedy });
  } else if (spec.expectNoRefreshChanges && spec.preview) {
    const remedy = "remove this field, and check the changes that the preview reports";
    findings.advise("spec.expectNoRefreshChanges", { message: "has no effect for previews", remedy });
  }
  if (spec.initOnCreate && spec.useLocalStackOnly) findings.advise("spec.initOnCreate", noEffect);
  if (spec.oidc && (spec.accessTokenSecret || spec.envRefs?.["PULUMI_ACCESS_TOKEN"])) {
    const remedy = "remove this field or PULUMI_ACCESS_TOKEN";
    findings.advise("spec.oidc", { message: "has no effect if PULUMI_ACCESS_TOKEN is set", remedy });
  }
}
