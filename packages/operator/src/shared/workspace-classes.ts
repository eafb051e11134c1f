/** Which WorkspaceClass applies to a namespace. Pure, apart from what the stores contain. */
import { isDeepStrictEqual } from "node:util";

import type { ApprovalRequirement, LabelSelector, WorkspaceClass, WorkspaceClassSpec } from "@pko/api";
import { keyOf, refKey, watching, type Change, type Key, type KubeObject, type Reflector, type Store } from "@pko/kube";

export interface AppliedClass {
  readonly name: string;
  readonly uid: string;
  readonly spec: WorkspaceClassSpec;
}

export type ClassView =
  /** Also where the operator may not read classes. */
  | { readonly kind: "none" }
  | ({ readonly kind: "one" } & AppliedClass)
  /** More than one class selects the namespace. */
  | { readonly kind: "conflict"; readonly names: readonly string[] }
  /** The cache does not contain the namespace yet: its labels are unknown. */
  | { readonly kind: "unknown" };

interface ClassStores {
  readonly classes: Store<WorkspaceClass>;
  /** Only their metadata. */
  readonly namespaces: Store<KubeObject>;
}

/** Absent where the operator may not read classes. */
export interface ClassReflectors {
  readonly classes: Reflector<WorkspaceClass>;
  readonly namespaces: Reflector<KubeObject>;
}

export const noClass: ClassView = { kind: "none" };

/** The class that applies to a namespace; always none where the operator may not read classes. */
export type ClassReader = (namespace: string) => ClassView;

export function classReader(reflectors: ClassReflectors | undefined): ClassReader {
  if (!reflectors) return () => noClass;
  const stores = { classes: reflectors.classes.store, namespaces: reflectors.namespaces.store };
  return (namespace) => classOf(stores, namespace);
}

/** How many updates may run in a namespace at the same time: its class decides, if it says so. */
export function namespaceLimit(classes: ClassReader, byDefault: number): (namespace: string) => number {
  return (namespace) => {
    const view = classes(namespace);
    return (view.kind === "one" ? view.spec.maxConcurrentUpdates : undefined) ?? byDefault;
  };
}

/** What the updates of all Stacks of the namespace need at least. Nothing starts while the class is unknown, or there are two. */
export const leastApproval = (view: ClassView): ApprovalRequirement =>
  (view.kind === "one" ? view.spec.approval?.required : undefined) ?? "Never";

export function classOf({ classes, namespaces }: ClassStores, namespace: string): ClassView {
  const all = classes.list();
  if (all.length === 0) return noClass;
  const found = namespaces.get(refKey({ name: namespace }));
  if (!found) return { kind: "unknown" };
  const [first, ...others] = all.filter((each) => selectsNamespace(each, found));
  if (!first) return noClass;
  if (others.length > 0) return { kind: "conflict", names: [first, ...others].map(nameOf).toSorted() };
  return { kind: "one", name: nameOf(first), uid: first.metadata.uid ?? "", spec: first.spec ?? nothingSelected };
}

const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? "";

/** The CRD requires a spec. */
const nothingSelected: WorkspaceClassSpec = { namespaceSelector: { matchExpressions: [] } };

function selectsNamespace({ spec }: WorkspaceClass, { metadata }: KubeObject): boolean {
  return spec !== undefined && matchesLabels(spec.namespaceSelector, metadata.labels ?? {});
}

type Labels = Readonly<Record<string, string>>;
type Requirement = NonNullable<LabelSelector["matchExpressions"]>[number];

/** An empty selector matches everything. */
export function matchesLabels({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([label, value]) => labels[label] === value) &&
    matchExpressions.every((requirement) => meets(requirement, labels))
  );
}

/** As in Kubernetes, NotIn is also met by a namespace without the label. */
function meets({ key, operator, values = [] }: Requirement, labels: Labels): boolean {
  const value = labels[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
  }
}

type Watch = ReturnType<typeof watching>;

/** Reconciles the objects of a store whose class may have changed. */
export function classWatches(reflectors: ClassReflectors | undefined, objects: Store<KubeObject>): Watch[] {
  if (!reflectors) return [];
  const { classes, namespaces } = reflectors;
  const keysIn = (names: ReadonlySet<string>): Key[] =>
    objects.list().flatMap((object) => (names.has(object.metadata.namespace ?? "") ? [keyOf(object)] : []));
  return [
    watching({ reflector: classes, map: (change) => keysIn(selectedBy(change, namespaces.store)) }),
    watching({
      reflector: namespaces,
      map: (change) => (isRelabeled(change) ? keysIn(new Set([nameOf(change.after ?? change.before ?? unnamed)])) : []),
    }),
  ];
}

const unnamed: KubeObject = { apiVersion: "v1", kind: "Namespace", metadata: {} };

/** The namespaces that the class selects, before or after its change. */
function selectedBy({ before, after }: Change<WorkspaceClass>, namespaces: Store<KubeObject>): Set<string> {
  const versions = [before, after].filter((each) => each !== undefined);
  const selected = namespaces.list().filter((each) => versions.some((version) => selectsNamespace(version, each)));
  return new Set(selected.map(nameOf));
}

const isRelabeled = ({ before, after }: Change<KubeObject>): boolean =>
  before === undefined || !isDeepStrictEqual(before.metadata.labels ?? {}, after?.metadata.labels ?? {});
