/** An example: a folder of manifests for `kubectl apply -f`, and optionally a change. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Stack } from "@pko/api";
import { repositoryRoot, UserError } from "@pko/cluster";
import { parseAllDocuments } from "yaml";

import type { StackName } from "./follow.ts";

export interface Example {
  readonly name: string;
  /** Relative to the repository, as a user types it. */
  readonly folder: string;
  /** Prerequisites come first. */
  readonly stacks: readonly Stack[];
  /** A merge patch of the last Stack, if the example has one. */
  readonly change?: string;
}

const examples = join(repositoryRoot, "examples");

/** The patch is in a subfolder, which `kubectl apply -f` ignores. */
const changeFile = join("change", "stack.yaml");

export function readExample(name: string): Example {
  const folder = join("examples", name);
  if (!/^[a-z0-9-]+$/.test(name) || stackFiles(folder).length === 0) {
    throw new UserError([`there is no example ${name}: choose from ${exampleNames().join(", ")}`]);
  }
  const stacks = inOrder(readStacks(folder));
  const change = join(folder, changeFile);
  return { name, folder, stacks, ...(existsSync(join(repositoryRoot, change)) && { change }) };
}

/** `namespace` is that of the context: kubectl creates objects there that name no other. */
export function stackName({ metadata }: Stack, namespace: string): StackName {
  return { name: metadata.name ?? "", namespace: metadata.namespace ?? namespace };
}

export function stackNames({ stacks }: Example, namespace: string): StackName[] {
  return stacks.map((stack) => stackName(stack, namespace));
}

/** Whether it claims a volume of the cluster's default StorageClass. */
export function needsDefaultStorage({ folder }: Pick<Example, "folder">): boolean {
  const claims = readObjects<VolumeClaim>(folder, "PersistentVolumeClaim");
  return claims.some(({ spec }) => spec.storageClassName === undefined);
}

interface VolumeClaim {
  readonly kind: string;
  readonly spec: { readonly storageClassName?: string };
}

export function exampleNames(): string[] {
  return readdirSync(examples, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && stackFiles(join("examples", entry.name)).length > 0)
    .map(({ name }) => name)
    .toSorted();
}

/** Explains why the demo cannot show an example; undefined if it can. */
export function obstacleOf(example: Example, isLocalCluster: boolean): string | undefined {
  return personNeededFor(example) ?? (isLocalCluster ? missingFor(example) : undefined);
}

/** The demo waits until Stacks are ready, and deletes those of an earlier demo. */
function personNeededFor({ name, stacks }: Example): string | undefined {
  const stack = stacks.find(needsPerson);
  if (stack === undefined) return undefined;
  return (
    `the example ${name} waits for a person (Stack ${stack.metadata.name} is suspended, protected, or needs an ` +
    `approval or an update window): follow examples/${name}/README.md, or choose from ${runnableNames().join(", ")}`
  );
}

function needsPerson({ spec }: Stack): boolean {
  const { suspend = false, protect = false, approval, updateWindows = [] } = spec;
  return suspend || protect || approval !== undefined || updateWindows.length > 0;
}

function missingFor({ name, stacks }: Example): string | undefined {
  const stack = stacks.find((one) => !isSelfContained(one));
  if (stack === undefined) return undefined;
  return (
    `the example ${name} needs more than a cluster (Stack ${stack.metadata.name} has its state, program or image ` +
    `elsewhere): follow examples/${name}/README.md on your own cluster, or choose from ${runnableNames().join(", ")}`
  );
}

function runnableNames(): string[] {
  return exampleNames().filter((name) =>
    readStacks(join("examples", name)).every((stack) => isSelfContained(stack) && !needsPerson(stack)),
  );
}

/** Its state is on a volume, its program is a Program object, and it uses the default image. */
function isSelfContained({ spec }: Stack): boolean {
  const isOnVolume = spec.backend?.startsWith("file://") ?? false;
  return isOnVolume && spec.programRef !== undefined && spec.workspaceTemplate?.spec?.image === undefined;
}

/** Each Stack after its prerequisites. */
function inOrder(stacks: readonly Stack[]): Stack[] {
  const depth = (stack: Stack, seen: readonly string[] = []): number => {
    const { name = "" } = stack.metadata;
    if (seen.includes(name)) return 0;
    const before = stacks.filter((other) => dependsOn(stack, other));
    return Math.max(0, ...before.map((other) => 1 + depth(other, [...seen, name])));
  };
  return stacks.toSorted((a, b) => depth(a) - depth(b));
}

function dependsOn({ spec }: Stack, other: Stack): boolean {
  const named = [
    ...(spec.prerequisites ?? []).flatMap(({ name, requirement }) => [name, requirement]),
    ...Object.values(spec.envRefs ?? {}).map((reference) => ("stack" in reference ? reference.stack : undefined)),
  ];
  return named.includes(other.metadata.name);
}

const readStacks = (folder: string): Stack[] => readObjects<Stack>(folder, "Stack");

const stackFiles = (folder: string): string[] => filesWith(folder, "Stack");

function readObjects<T extends { readonly kind: string }>(folder: string, kind: string): T[] {
  return filesWith(folder, kind).flatMap((file) =>
    parseAllDocuments(readFileSync(join(repositoryRoot, folder, file), "utf8"))
      .map((document) => document.toJS() as T | null)
      .filter((object): object is T => object?.kind === kind),
  );
}

/** The manifests with an object of the kind. */
function filesWith(folder: string, kind: string): string[] {
  const path = join(repositoryRoot, folder);
  if (!existsSync(path)) return [];
  const line = new RegExp(`^kind: ${kind}$`, "m");
  return readdirSync(path).filter(
    (file) => file.endsWith(".yaml") && line.test(readFileSync(join(path, file), "utf8")),
  );
}
