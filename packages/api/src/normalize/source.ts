/** The source of the program as a closed union. */
import type { StackSpec } from "../stack/spec.ts";
import { stackMessages as messages } from "../stack/messages.ts";
import { rootedPattern, unmatchedPattern } from "../stack/source.ts";
import type { ValidationMessage } from "../schema/cel.ts";
import { isRecord } from "../schema/record.ts";
import { bootstrapContainer, pulumiContainer } from "../workspace/pod-facts.ts";
import { parseGitUrl, stackGitAuth, stackGitRef, type GitAuth, type GitRef, type GitRepository } from "./git.ts";
import { directoryBelowRoot, isObjectName } from "./rules.ts";
import type { Scope } from "./scope.ts";

export type Source =
  | {
      readonly kind: "git";
      readonly repository: GitRepository;
      readonly ref: GitRef;
      /** Relative to the repository's root, without leading and trailing slashes. */
      readonly dir: string;
      readonly shallow: boolean;
      /** Which files a new commit must change; all if empty. */
      readonly pathFilters: readonly string[];
      readonly auth: GitAuth;
    }
  | {
      readonly kind: "flux";
      readonly sourceRef: { readonly apiVersion: string; readonly kind: string; readonly name: string };
      readonly dir: string;
    }
  | { readonly kind: "program"; readonly name: string }
  /** A directory in the workspace's image. */
  | { readonly kind: "local"; readonly dir: string }
  /** The workspace template provides the program. The operator does not follow its revision. */
  | { readonly kind: "template" };

/** Undefined if there is a problem. */
export function stackSource(spec: StackSpec, scope: Scope): Source | undefined {
  const { findings } = scope;
  const template = spec.workspaceTemplate?.spec;
  const given = [spec.projectRepo, spec.fluxSource, spec.programRef, template?.local].filter(Boolean);
  checkGitFields(spec, scope);
  if (given.length > 1) findings.problem("spec", messages.severalSources);
  if (given.length !== 1) return given.length === 0 ? templateSource(spec, scope) : undefined;
  if (spec.projectRepo) return gitSource(spec, spec.projectRepo, scope);
  if (spec.fluxSource) return fluxSource(spec.fluxSource, scope);
  if (spec.programRef) return programSource(spec.programRef.name, scope);
  return localSource(template?.local?.dir, scope);
}

function templateSource(
  { workspaceTemplate, branch, tag, commit }: StackSpec,
  { findings }: Scope,
): Source | undefined {
  const template = workspaceTemplate?.spec ?? {};
  const isProvided = !branch && !tag && !commit && mayProvideProgram(template);
  if (template.git || template.flux || isProvided) return { kind: "template" };
  if (!branch && !tag && !commit) findings.problem("spec", messages.noSource);
  return undefined;
}

/**
 * Whether the template may provide a program in the workspace's directory: with an additional container, or with a volume.
 * An image is not sufficient, because the directory is on a volume of the pod.
 */
function mayProvideProgram({ initContainers, podTemplate }: TemplateSpec): boolean {
  // The schema does not describe pod specs, so these values can have any type.
  const pod: Readonly<Record<string, unknown>> = { ...podTemplate?.spec };
  const containers = [initContainers, pod["initContainers"], pod["containers"]].flatMap(elementsOf);
  return containers.some(isAdditionalContainer) || elementsOf(pod["volumes"]).length > 0;
}

type TemplateSpec = NonNullable<NonNullable<StackSpec["workspaceTemplate"]>["spec"]>;

const elementsOf = (list: unknown): unknown[] => (Array.isArray(list) ? list : []);

/** An entry without an image, or with the name of a generated container, only patches the generated pod. */
const isAdditionalContainer = (container: unknown): boolean =>
  isRecord(container) && Boolean(container["image"]) && !generatedContainers.has(container["name"]);

const generatedContainers: ReadonlySet<unknown> = new Set([bootstrapContainer, pulumiContainer]);

/** Fields that require a repository. */
function checkGitFields(spec: StackSpec, { findings }: Scope): void {
  if (spec.projectRepo) return;
  if (spec.branch || spec.tag || spec.commit) findings.problem("spec.projectRepo", messages.revisionWithoutRepository);
  if (spec.pathFilters?.length) findings.problem("spec.projectRepo", messages.filtersWithoutRepository);
  if (spec.repoDir) {
    const remedy = "set projectRepo, or use fluxSource.dir for a Flux source";
    findings.problem("spec.repoDir", { message: "requires a Git repository", remedy });
  }
  for (const field of ["gitAuth", "gitAuthSecret", "shallow"] as const) {
    const remedy = "remove it";
    if (spec[field]) findings.advise(`spec.${field}`, { message: "has no effect without projectRepo", remedy });
  }
}

function gitSource(spec: StackSpec, url: string, scope: Scope): Source | undefined {
  const { findings } = scope;
  const repository = parseGitUrl(url);
  if (!repository) {
    const remedy = "use https://HOST/PATH, ssh://USER@HOST/PATH or USER@HOST:PATH";
    findings.problem("spec.projectRepo", { message: "is not a valid URL of a Git repository", remedy });
  }
  if (hasPassword(url)) {
    findings.advise("spec.projectRepo", { message: "contains a password in plain text", remedy: "use gitAuth" });
  }
  const { pathFilters = [] } = spec;
  const wrongFilter = filterProblem(pathFilters);
  if (wrongFilter) findings.problem("spec.pathFilters", wrongFilter);
  const ref = stackGitRef(spec, findings);
  const auth = stackGitAuth(spec, scope);
  const dir = directory(spec.repoDir, "spec.repoDir", scope);
  if (!repository || !ref || dir === undefined) return undefined;
  return { kind: "git", repository, ref, dir, shallow: spec.shallow ?? false, pathFilters, auth };
}

const [rooted, unmatched] = [new RegExp(rootedPattern), new RegExp(unmatchedPattern)];

/** "In doubt, it runs": a filter that never selects anything must not go unnoticed. */
function filterProblem(filters: readonly string[]): ValidationMessage | undefined {
  if (filters.some((filter) => rooted.test(filter))) return messages.rootedFilter;
  return filters.some((filter) => unmatched.test(filter)) ? messages.unmatchedFilter : undefined;
}

const hasPassword = (url: string): boolean => Boolean(URL.parse(url)?.password);

function fluxSource({ sourceRef, dir }: Required<StackSpec>["fluxSource"], scope: Scope): Source | undefined {
  const field = "spec.fluxSource.sourceRef";
  const { apiVersion, kind, name } = sourceRef;
  if (!/^([^/\s]+\/)?[^/\s]+$/.test(apiVersion)) {
    const remedy = "use an API version such as source.toolkit.fluxcd.io/v1";
    scope.findings.problem(`${field}.apiVersion`, { message: "is not a valid API version", remedy });
  } else if (!/^[^./]*\.[^/]*\//.test(apiVersion)) {
    // Sources are custom resources, so the group contains a dot.
    const remedy = "include the group of the source, such as source.toolkit.fluxcd.io/v1";
    scope.findings.problem(`${field}.apiVersion`, { message: "is an API version without sources", remedy });
  }
  if (!/^[A-Za-z][A-Za-z0-9]*$/.test(kind)) {
    const remedy = "use GitRepository, OCIRepository, Bucket or another kind of source";
    scope.findings.problem(`${field}.kind`, { message: "is not a valid kind", remedy });
  }
  if (!isObjectName(name)) {
    scope.findings.problem(`${field}.name`, { message: "is not a valid name of a source", remedy: "correct the name" });
  }
  const directoryPath = directory(dir, "spec.fluxSource.dir", scope);
  return directoryPath === undefined
    ? undefined
    : { kind: "flux", sourceRef: { apiVersion, kind, name }, dir: directoryPath };
}

function programSource(name: string, { findings }: Scope): Source {
  if (!isObjectName(name)) {
    findings.problem("spec.programRef.name", {
      message: "is not a valid name of a Program",
      remedy: "correct the name",
    });
  }
  return { kind: "program", name };
}

function localSource(dir: string | undefined, { findings }: Scope): Source | undefined {
  if (dir) return { kind: "local", dir };
  const remedy = "set it to the program's directory in the image";
  findings.problem("spec.workspaceTemplate.spec.local.dir", { message: "is required", remedy });
  return undefined;
}

function directory(path: string | undefined, field: string, { findings }: Scope): string | undefined {
  const directoryPath = directoryBelowRoot(path ?? "");
  if (directoryPath !== undefined) return directoryPath;
  findings.problem(field, { message: "is outside the source", remedy: "use a directory below the source's root" });
  return undefined;
}
