/** Which Stacks depend on which, and who runs after whom. Pure. */
import { stateOf, type Stack, type StackSpec, type StackState } from "@pko/api/browser";

export interface DependencyNode {
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  /** Missing: others depend on it, and it does not exist. */
  readonly state: StackState | "Missing";
}

/** `from` needs `to`. */
export interface DependencyEdge {
  readonly from: string;
  readonly to: string;
  readonly outputs: readonly string[];
}

export interface DependencyGraph {
  readonly nodes: readonly DependencyNode[];
  readonly edges: readonly DependencyEdge[];
}

export const stackId = (namespace: string, name: string): string => `${namespace}/${name}`;

export function dependencyGraph(stacks: readonly Stack[]): DependencyGraph {
  const nodes = new Map<string, DependencyNode>();
  for (const stack of stacks) {
    const { namespace = "", name = "" } = stack.metadata;
    const id = stackId(namespace, name);
    nodes.set(id, { id, namespace, name, state: stateOf(stack) });
  }
  const edges = stacks.flatMap(edgesFrom);
  for (const { to } of edges) {
    const [namespace = "", name = ""] = to.split("/");
    if (!nodes.has(to)) nodes.set(to, { id: to, namespace, name, state: "Missing" });
  }
  return { nodes: [...nodes.values()].toSorted((a, b) => a.id.localeCompare(b.id)), edges };
}

function edgesFrom({ metadata, spec }: Stack): DependencyEdge[] {
  const { namespace = "", name = "" } = metadata;
  const needed = new Map<string, Set<string>>();
  const need = (stack: string): Set<string> => {
    const outputs = needed.get(stack) ?? new Set();
    needed.set(stack, outputs);
    return outputs;
  };
  for (const stack of prerequisiteNames(spec)) need(stack);
  for (const { stack, output } of outputReferences(spec)) need(stack).add(output);
  return [...needed].map(([stack, outputs]) => ({
    from: stackId(namespace, name),
    to: stackId(namespace, stack),
    outputs: [...outputs].toSorted(),
  }));
}

/** A Stack without a spec was created before the API server validated it. */
type MaybeSpec = StackSpec | undefined;

/** Both spellings: `name`, or `type: Stack` with the name in `requirement`. */
export function prerequisiteNames(spec: MaybeSpec): string[] {
  return (spec?.prerequisites ?? []).flatMap(({ name, requirement }) => {
    const stack = name || (typeof requirement === "string" ? requirement : "");
    return stack === "" ? [] : [stack];
  });
}

export function outputReferences(spec: MaybeSpec): { readonly stack: string; readonly output: string }[] {
  const references = [...Object.values(spec?.envRefs ?? {}), ...Object.values(spec?.secretsRef ?? {})];
  return references.flatMap(({ type, stack, output }) =>
    type === "StackOutput" && stack && output ? [{ stack, output }] : [],
  );
}

/** Names of Stacks of the same namespace, each once. */
export const neededStacks = (spec: MaybeSpec): string[] => [
  ...new Set([...prerequisiteNames(spec), ...outputReferences(spec).map(({ stack }) => stack)]),
];

/** All Stacks that need this one, directly or through others, the nearest first. */
export function dependentsOf(id: string, { edges }: DependencyGraph): string[] {
  const found = new Set<string>();
  const queue = [id];
  for (let current = queue.shift(); current !== undefined; current = queue.shift()) {
    const next = edges.filter(({ to, from }) => to === current && from !== id && !found.has(from));
    for (const { from } of next) {
      found.add(from);
      queue.push(from);
    }
  }
  return [...found];
}

/** Only Stacks that have dependencies or dependents: the others would be a long list of single boxes. */
export function connected({ nodes, edges }: DependencyGraph): DependencyGraph {
  const ids = new Set(edges.flatMap(({ from, to }) => [from, to]));
  return { nodes: nodes.filter(({ id }) => ids.has(id)), edges };
}
