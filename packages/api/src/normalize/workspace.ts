/** Converts a Workspace to a normal form with defaults for its controller. Pure; never throws, for any input. */
import { Type, type Static } from "typebox";

import { optional, type JsonValue } from "../schema/field.ts";
import { defaultImages, defaultRequests, securityProfiles, type SecurityProfile } from "../workspace/pod-facts.ts";
import { WorkspaceSpec } from "../workspace/spec.ts";
import { Findings, type Normalized } from "./findings.ts";
import { normalOidc, type NormalOidc } from "./oidc.ts";
import { parseGitUrl, type GitRepository } from "./git.ts";
import { directoryBelowRoot, isArgument, isObjectName, isServicePrefix } from "./rules.ts";
import { NamedMetadata, checkShape } from "./shape.ts";

type GivenGit = NonNullable<WorkspaceSpec["git"]>;
type GivenStack = NonNullable<WorkspaceSpec["stacks"]>[number];
type GivenConfig = NonNullable<GivenStack["config"]>[number];

export type WorkspaceSource =
  | {
      readonly kind: "git";
      readonly repository: GitRepository;
      /** A commit, or the name of a branch or tag. */
      readonly ref: string;
      readonly dir: string;
      readonly shallow: boolean;
      readonly auth: NonNullable<GivenGit["auth"]>;
      readonly compareWith?: NonNullable<GivenGit["compareWith"]>;
    }
  | { readonly kind: "flux"; readonly url: string; readonly digest: string; readonly dir: string }
  | { readonly kind: "local"; readonly dir: string }
  /** A Program object, at this generation or a later one. */
  | { readonly kind: "program"; readonly name: string; readonly generation: number }
  | { readonly kind: "projectInfo"; readonly name: string; readonly runtime: string }
  /** The operator or an init container provides the program. */
  | { readonly kind: "none" };

type WorkspaceConfigSource =
  | { readonly kind: "value"; readonly value: JsonValue }
  | { readonly kind: "env"; readonly name: string; readonly json: boolean }
  | { readonly kind: "file"; readonly path: string; readonly json: boolean };

interface WorkspaceConfigItem {
  readonly key: string;
  readonly isPath: boolean;
  readonly secret: boolean;
  readonly from: WorkspaceConfigSource;
}

export interface NormalWorkspaceStack {
  readonly name: string;
  readonly create: boolean;
  readonly secretsProvider?: string;
  readonly config: readonly WorkspaceConfigItem[];
  readonly environments: readonly string[];
}

export interface NormalWorkspace {
  readonly name: string;
  readonly namespace: string;
  readonly serviceAccountName: string;
  readonly securityProfile: SecurityProfile;
  readonly image: string;
  readonly imagePullPolicy?: string;
  readonly source: WorkspaceSource;
  readonly env: NonNullable<WorkspaceSpec["env"]>;
  readonly envFrom: NonNullable<WorkspaceSpec["envFrom"]>;
  /** Undefined if the spec does not set it. */
  readonly oidc?: NormalOidc;
  readonly resources: NonNullable<WorkspaceSpec["resources"]>;
  readonly podTemplate: NonNullable<WorkspaceSpec["podTemplate"]>;
  readonly serviceTemplate: NonNullable<WorkspaceSpec["serviceTemplate"]>;
  /** Undefined for no debug logs. */
  readonly logLevel?: number;
  /** Undefined for the operator's default; 0 for never. */
  readonly idleTimeoutMs?: number;
  readonly stacks: readonly NormalWorkspaceStack[];
}

const WorkspaceShape = Type.Object({ metadata: NamedMetadata, spec: optional(WorkspaceSpec) });

export function normalizeWorkspace(workspace: unknown): Normalized<NormalWorkspace> {
  const findings = new Findings("workspace");
  const shape = checkShape(WorkspaceShape, workspace, findings);
  return findings.outcome(shape && normalForm(shape, findings));
}

function normalForm(
  { metadata, spec = {} }: Static<typeof WorkspaceShape>,
  findings: Findings,
): NormalWorkspace | undefined {
  if (!isServicePrefix(metadata.name)) {
    const remedy = "start with a letter, and use only lowercase letters, digits and hyphens";
    findings.problem("metadata.name", { message: "is not a valid name for the workspace's Service", remedy });
  }
  const securityProfile = securityProfileIn(spec, findings);
  const source = workspaceSource(spec, findings);
  const stacks = (spec.stacks ?? []).map((stack, index) => workspaceStack(stack, `spec.stacks[${index}]`, findings));
  const oidc = normalOidc(
    spec.oidc,
    stacks.map(({ name }) => name),
    findings,
  );
  if (!securityProfile || !source) return undefined;
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    ...podSettings(spec, securityProfile),
    source,
    ...(oidc && { oidc }),
    stacks,
  };
}

function securityProfileIn({ securityProfile }: WorkspaceSpec, findings: Findings): SecurityProfile | undefined {
  const profile = securityProfiles.find((known) => known === (securityProfile || "restricted"));
  const remedy = `use ${securityProfiles.join(" or ")}`;
  if (!profile) findings.problem("spec.securityProfile", { message: "is not a supported security profile", remedy });
  return profile;
}

function podSettings(spec: WorkspaceSpec, securityProfile: SecurityProfile) {
  const { imagePullPolicy, pulumiLogLevel, resources, idleTimeoutSeconds } = spec;
  return {
    serviceAccountName: spec.serviceAccountName || "default",
    securityProfile,
    image: spec.image || defaultImages[securityProfile],
    ...(imagePullPolicy && { imagePullPolicy }),
    env: spec.env ?? [],
    envFrom: spec.envFrom ?? [],
    resources: { ...resources, requests: { ...defaultRequests, ...resources?.requests } },
    podTemplate: spec.podTemplate ?? {},
    serviceTemplate: spec.serviceTemplate ?? {},
    ...(pulumiLogLevel && { logLevel: pulumiLogLevel }),
    ...(idleTimeoutSeconds !== undefined && { idleTimeoutMs: Math.max(0, idleTimeoutSeconds) * 1000 }),
  };
}

function workspaceSource(spec: WorkspaceSpec, findings: Findings): WorkspaceSource | undefined {
  const { git, flux, local, program, projectInfo } = spec;
  const given = [git, flux, local, program, projectInfo].filter(Boolean);
  if (given.length > 1) {
    const remedy = "keep only one of git, flux, local, program and projectInfo";
    findings.problem("spec", { message: "the program has more than one source", remedy });
    return undefined;
  }
  if (git) return gitSource(git, findings);
  if (flux) return fluxSource(flux, findings);
  if (local) return localSource(local.dir, findings);
  if (program) return programSource(program, findings);
  return projectInfo ? { kind: "projectInfo", ...projectInfo } : { kind: "none" };
}

function gitSource(
  { url = "", ref = "", dir, auth = {}, shallow = false, compareWith }: GivenGit,
  findings: Findings,
): WorkspaceSource | undefined {
  const repository = parseGitUrl(url);
  if (!repository) {
    const remedy = "use https://HOST/PATH, ssh://USER@HOST/PATH or USER@HOST:PATH";
    findings.problem("spec.git.url", { message: "is not a valid URL of a Git repository", remedy });
  }
  if (!isArgument(ref)) {
    findings.problem("spec.git.ref", { message: "is not a valid revision", remedy: "set a commit, a tag or a branch" });
  }
  const directoryPath = directory(dir, "spec.git.dir", findings);
  return repository && directoryPath !== undefined
    ? { kind: "git", repository, ref, dir: directoryPath, shallow, auth, ...(compareWith && { compareWith }) }
    : undefined;
}

function fluxSource(
  { url = "", digest = "", dir }: NonNullable<WorkspaceSpec["flux"]>,
  findings: Findings,
): WorkspaceSource | undefined {
  const protocol = URL.parse(url)?.protocol;
  if (protocol !== "http:" && protocol !== "https:") {
    findings.problem("spec.flux.url", {
      message: "is not a valid URL of an artifact",
      remedy: "use an HTTP or HTTPS URL",
    });
  }
  if (!/^sha(256|384|512):[0-9a-f]+$/.test(digest)) {
    findings.problem("spec.flux.digest", { message: "is not a valid digest", remedy: "use the format sha256:…" });
  }
  const directoryPath = directory(dir, "spec.flux.dir", findings);
  return directoryPath === undefined ? undefined : { kind: "flux", url, digest, dir: directoryPath };
}

function localSource(dir: string | undefined, findings: Findings): WorkspaceSource | undefined {
  if (dir) return { kind: "local", dir };
  findings.problem("spec.local.dir", {
    message: "is required",
    remedy: "set it to the program's directory in the image",
  });
  return undefined;
}

function programSource(
  { name, generation = 0 }: NonNullable<WorkspaceSpec["program"]>,
  findings: Findings,
): WorkspaceSource {
  if (!isObjectName(name)) {
    findings.problem("spec.program.name", {
      message: "is not a valid name of a Program",
      remedy: "set the name of a Program",
    });
  }
  return { kind: "program", name, generation };
}

function directory(path: string | undefined, field: string, findings: Findings): string | undefined {
  const directoryPath = directoryBelowRoot(path ?? "");
  const remedy = "use a directory below the source's root";
  if (directoryPath === undefined) findings.problem(field, { message: "is outside the source", remedy });
  return directoryPath;
}

function workspaceStack(stack: GivenStack, field: string, findings: Findings): NormalWorkspaceStack {
  if (!isArgument(stack.name)) {
    findings.problem(`${field}.name`, {
      message: "is not a valid name of a Pulumi stack",
      remedy: "set the name of a stack",
    });
  }
  return {
    name: stack.name,
    create: stack.create ?? false,
    ...(stack.secretsProvider && { secretsProvider: stack.secretsProvider }),
    config: (stack.config ?? []).map((item, index) => configItem(item, `${field}.config[${index}]`, findings)),
    environments: stack.environment ?? [],
  };
}

function configItem(item: GivenConfig, field: string, findings: Findings): WorkspaceConfigItem {
  const from = configSource(item);
  if (!from) findings.problem(field, { message: "has no value", remedy: "set value, valueFrom.env or valueFrom.path" });
  return {
    key: item.key,
    isPath: item.path ?? false,
    secret: item.secret ?? false,
    from: from ?? { kind: "value", value: null },
  };
}

function configSource({ value, valueFrom }: GivenConfig): WorkspaceConfigSource | undefined {
  if (value !== undefined) return { kind: "value", value };
  const { env, path, json = false } = valueFrom ?? {};
  if (env) return { kind: "env", name: env, json };
  return path ? { kind: "file", path, json } : undefined;
}
