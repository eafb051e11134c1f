/** Where the program comes from, as one closed union. */
import type { StackSpec } from "../stack/spec.ts";
import { stackWording as wording } from "../stack/wording.ts";
import { isRecord } from "../schema/record.ts";
import { bootstrapContainer, pulumiContainer } from "../workspace/pod-facts.ts";
import { gitAuthOf, gitRefOf, gitRepositoryOf, type GitAuth, type GitRef, type GitRepository } from "./git.ts";
import { folderBelowRoot, isObjectName } from "./rules.ts";
import type { Scope } from "./scope.ts";

export type Source =
  | {
      readonly kind: "git";
      readonly repository: GitRepository;
      readonly ref: GitRef;
      /** Below the repository's root, without slashes at its ends. */
      readonly dir: string;
      readonly shallow: boolean;
      readonly auth: GitAuth;
    }
  | {
      readonly kind: "flux";
      readonly sourceRef: { readonly apiVersion: string; readonly kind: string; readonly name: string };
      readonly dir: string;
    }
  | { readonly kind: "program"; readonly name: string }
  /** A folder in the workspace's image. */
  | { readonly kind: "local"; readonly dir: string }
  /** The workspace template brings it: by a Git or Flux source of its own, or an init container. Nobody follows its revision. */
  | { readonly kind: "template" };

/** Undefined when a problem was found. */
export function sourceOf(spec: StackSpec, scope: Scope): Source | undefined {
  const { findings } = scope;
  const template = spec.workspaceTemplate?.spec;
  const given = [spec.projectRepo, spec.fluxSource, spec.programRef, template?.local].filter(Boolean);
  checkGitFields(spec, scope);
  if (given.length > 1) findings.problem("spec", wording.severalSources);
  if (given.length !== 1) return given.length === 0 ? sourceOfTemplate(spec, scope) : undefined;
  if (spec.projectRepo) return gitSource(spec, spec.projectRepo, scope);
  if (spec.fluxSource) return fluxSource(spec.fluxSource, scope);
  if (spec.programRef) return programSource(spec.programRef.name, scope);
  return localSource(template?.local?.dir, scope);
}

function sourceOfTemplate(
  { workspaceTemplate, branch, tag, commit }: StackSpec,
  { findings }: Scope,
): Source | undefined {
  const template = workspaceTemplate?.spec ?? {};
  const isInPlace = !branch && !tag && !commit && bringsProgram(template);
  if (template.git || template.flux || isInPlace) return { kind: "template" };
  if (!branch && !tag && !commit) findings.problem("spec", wording.noSource);
  return undefined;
}

/**
 * Whether anything of the template can put a program into the workspace's folder: a container besides ours, or a volume.
 * An image alone cannot: the folder is on a volume of the pod.
 */
function bringsProgram({ initContainers, podTemplate }: TemplateSpec): boolean {
  // Nobody has looked at the shape of the pod's parts.
  const pod: Readonly<Record<string, unknown>> = { ...podTemplate?.spec };
  const containers = [initContainers, pod["initContainers"], pod["containers"]].flatMap(elementsOf);
  return containers.some(isBesidesOurs) || elementsOf(pod["volumes"]).length > 0;
}

type TemplateSpec = NonNullable<NonNullable<StackSpec["workspaceTemplate"]>["spec"]>;

const elementsOf = (list: unknown): unknown[] => (Array.isArray(list) ? list : []);

/** A patch for one of ours has no image, or is for the container of Pulumi. */
const isBesidesOurs = (container: unknown): boolean =>
  isRecord(container) && Boolean(container["image"]) && !ownContainers.has(container["name"]);

const ownContainers: ReadonlySet<unknown> = new Set([bootstrapContainer, pulumiContainer]);

/** Fields that speak of a repository, where there is none. */
function checkGitFields(spec: StackSpec, { findings }: Scope): void {
  if (spec.projectRepo) return;
  if (spec.branch || spec.tag || spec.commit) findings.problem("spec.projectRepo", wording.revisionWithoutRepository);
  if (spec.repoDir) {
    const remedy = "set fluxSource.dir for a Flux source, or remove repoDir";
    findings.problem("spec.repoDir", { message: "is a folder of a Git repository, and there is none", remedy });
  }
  for (const field of ["gitAuth", "gitAuthSecret", "shallow"] as const) {
    const remedy = "remove it";
    if (spec[field]) findings.advise(`spec.${field}`, { message: "has no effect without projectRepo", remedy });
  }
}

function gitSource(spec: StackSpec, url: string, scope: Scope): Source | undefined {
  const { findings } = scope;
  const repository = gitRepositoryOf(url);
  if (!repository) {
    const remedy = "write it as https://HOST/PATH, ssh://USER@HOST/PATH or USER@HOST:PATH";
    findings.problem("spec.projectRepo", { message: "is not the address of a Git repository", remedy });
  }
  if (hasPassword(url)) {
    findings.advise("spec.projectRepo", { message: "holds a password in plain text", remedy: "use gitAuth" });
  }
  const ref = gitRefOf(spec, findings);
  const auth = gitAuthOf(spec, scope);
  const dir = folder(spec.repoDir, "spec.repoDir", scope);
  if (!repository || !ref || dir === undefined) return undefined;
  return { kind: "git", repository, ref, dir, shallow: spec.shallow ?? false, auth };
}

const hasPassword = (url: string): boolean => Boolean(URL.parse(url)?.password);

function fluxSource({ sourceRef, dir }: Required<StackSpec>["fluxSource"], scope: Scope): Source | undefined {
  const field = "spec.fluxSource.sourceRef";
  const { apiVersion, kind, name } = sourceRef;
  if (!/^([^/\s]+\/)?[^/\s]+$/.test(apiVersion)) {
    const remedy = "write it as source.toolkit.fluxcd.io/v1";
    scope.findings.problem(`${field}.apiVersion`, { message: "is not an API version", remedy });
  } else if (!/\..*\//.test(apiVersion)) {
    // Sources are always defined by somebody, under a domain; what Kubernetes brings along is none.
    const remedy = "name the group of the source, such as source.toolkit.fluxcd.io/v1";
    scope.findings.problem(`${field}.apiVersion`, { message: "is of no group that has sources", remedy });
  }
  if (!/^[A-Za-z][A-Za-z0-9]*$/.test(kind)) {
    const remedy = "set GitRepository, OCIRepository, Bucket or another kind of source";
    scope.findings.problem(`${field}.kind`, { message: "is not a kind", remedy });
  }
  if (!isObjectName(name)) {
    scope.findings.problem(`${field}.name`, { message: "is not the name of a source", remedy: "correct the name" });
  }
  const below = folder(dir, "spec.fluxSource.dir", scope);
  return below === undefined ? undefined : { kind: "flux", sourceRef: { apiVersion, kind, name }, dir: below };
}

function programSource(name: string, { findings }: Scope): Source {
  if (!isObjectName(name)) {
    findings.problem("spec.programRef.name", { message: "is not the name of a Program", remedy: "correct the name" });
  }
  return { kind: "program", name };
}

function localSource(dir: string | undefined, { findings }: Scope): Source | undefined {
  if (dir) return { kind: "local", dir };
  const remedy = "set it to the program's folder in the image";
  findings.problem("spec.workspaceTemplate.spec.local.dir", { message: "is missing", remedy });
  return undefined;
}

function folder(path: string | undefined, field: string, { findings }: Scope): string | undefined {
  const below = folderBelowRoot(path ?? "");
  if (below !== undefined) return below;
  findings.problem(field, { message: "leads out of the source", remedy: "give a folder below the source's root" });
  return undefined;
}
