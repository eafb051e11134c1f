/** Indexes of the stores: from an object that changes to the Stacks that it concerns. */
import { stackKind, stackNameLabel, type Stack, type Update } from "@pko/api";
import { refKey, type IndexFunction, type Key, type ObjectMeta } from "@pko/kube";

import { dependenciesOf } from "./stack-dependencies.ts";

/** Updates by the UID of the Stack that owns them. */
export const updateOwnerIndex = "stackUid";
/** Updates by `namespace/name` of the Stack that owns them, or that did before it was deleted. */
export const updateStackIndex = "stackKey";
/** Stacks by `namespace/name` of those on which they depend. */
export const dependsOnIndex = "dependsOn";
/** Stacks by `namespace/name` of their Program. */
export const programIndex = "program";

/** For the store of Stacks. */
export const stackIndexers: Readonly<Record<string, IndexFunction<Stack>>> = {
  [dependsOnIndex]: (stack) => dependenciesOf(stack).map((name) => `${stack.metadata.namespace ?? ""}/${name}`),
  [programIndex](stack) {
    const spec: Partial<Stack["spec"]> | undefined = stack.spec;
    const name = spec?.programRef?.name;
    return name ? [`${stack.metadata.namespace ?? ""}/${name}`] : [];
  },
};

/** For the store of Updates. */
export const ownedUpdateIndexers: Readonly<Record<string, IndexFunction<Update>>> = {
  [updateOwnerIndex]: ({ metadata }) => stackReferences(metadata).map(({ uid }) => uid),
  [updateStackIndex]: stackKeysOf,
};

/**
 * The Stacks of an Update. When a Stack is deleted and the Workspace of the Update still exists, the garbage collector removes
 * the owner reference to the Stack from the Update; the label stays.
 */
export function stackKeysOf({ metadata }: Update): Key[] {
  const label = metadata.labels?.[stackNameLabel];
  const names = [...stackReferences(metadata).map(({ name }) => name), ...(label === undefined ? [] : [label])];
  return [...new Set(names)].map((name) => refKey({ namespace: metadata.namespace ?? "", name }));
}

const stackReferences = ({ ownerReferences = [] }: ObjectMeta): NonNullable<ObjectMeta["ownerReferences"]> =>
  ownerReferences.filter(({ kind }) => kind === stackKind.kind);
