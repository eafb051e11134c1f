/** Indexes of the stores that the Stack controller looks things up in: from what changes to the Stacks it concerns. */
import { stackKind, stackNameLabel, type Stack, type Update } from "@pko/api";
import { refKey, type IndexFunction, type Key, type ObjectMeta } from "@pko/kube";

import { dependenciesOf } from "./prerequisites.ts";

/** Updates by the uid of the Stack that owns them. */
export const updateOwnerIndex = "stackUid";
/** Updates by `namespace/name` of the Stack that owns them, or of one that did. */
export const updateStackIndex = "stackKey";
/** Stacks by `namespace/name` of those they wait for. */
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
  [updateOwnerIndex]: ({ metadata }) => ownersOf(metadata).map(({ uid }) => uid),
  [updateStackIndex]: stackKeysOf,
};

/**
 * The Stacks that an Update is of. The garbage collector takes the reference to a Stack that is gone out of an Update whose
 * Workspace is still there; the label stays.
 */
export function stackKeysOf({ metadata }: Update): Key[] {
  const labelled = metadata.labels?.[stackNameLabel];
  const names = [...ownersOf(metadata).map(({ name }) => name), ...(labelled === undefined ? [] : [labelled])];
  return [...new Set(names)].map((name) => refKey({ namespace: metadata.namespace ?? "", name }));
}

const ownersOf = ({ ownerReferences = [] }: ObjectMeta): NonNullable<ObjectMeta["ownerReferences"]> =>
  ownerReferences.filter(({ kind }) => kind === stackKind.kind);
