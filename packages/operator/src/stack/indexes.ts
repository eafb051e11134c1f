/** Indexes of the stores that the Stack controller looks things up in: from what changes to the Stacks it concerns. */
import { stackKind, type Stack, type Update } from "@pko/api";
import type { IndexFunction, ObjectMeta } from "@pko/kube";

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
  [updateStackIndex]: ({ metadata }) => ownersOf(metadata).map(({ name }) => `${metadata.namespace ?? ""}/${name}`),
};

const ownersOf = ({ ownerReferences = [] }: ObjectMeta): NonNullable<ObjectMeta["ownerReferences"]> =>
  ownerReferences.filter(({ kind }) => kind === stackKind.kind);
