/** The Stacks that depend on one that is being deleted. */
import type { Stack } from "@pko/api";
import { keyOf, refKey, type Store } from "@pko/kube";

import { dependsOnIndex } from "../indexes.ts";
import { allDependencies, dependenciesOf } from "../stack-dependencies.ts";
import { hasFinalizer, isDeleting, wantsDestroy, type DependentView } from "../view.ts";

export function observeDependents(stacks: Store<Stack>, stack: Stack): DependentView[] {
  if (!isDeleting({ stack })) return [];
  const { name = "", namespace = "" } = stack.metadata;
  const others = stacks.byIndex(dependsOnIndex, keyOf(stack)).filter((other) => other.metadata.name !== name);
  const isLeft = (other: Stack): boolean => !isDeleting({ stack: other }) || hasFinalizer({ stack: other });
  const dependsOn = allDependencies(name, (each) => {
    const found = each === name ? stack : stacks.get(refKey({ namespace, name: each }));
    return found ? dependenciesOf(found) : [];
  });
  return others.filter(isLeft).map((other) => ({
    name: other.metadata.name ?? "",
    deleting: isDeleting({ stack: other }),
    wantsDestroy: wantsDestroy({ stack: other }),
    isInCycle: dependsOn.has(other.metadata.name ?? ""),
  }));
}
