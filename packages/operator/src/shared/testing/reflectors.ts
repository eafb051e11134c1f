/** For tests of controllers without an API server. */
import { keyOf, type KubeObject, type Reflector } from "@pko/kube";

/** Of objects that never change. */
export function reflectorOf<T extends KubeObject>(...objects: readonly T[]): Reflector<T> {
  const list = (): T[] => [...objects];
  return {
    store: {
      get: (key) => objects.find((object) => keyOf(object) === key),
      list,
      active: list,
      size: objects.length,
      byIndex: () => [],
      activeByIndex: () => [],
      archived: () => [],
      restsUntil: () => undefined,
      hasSynced: true,
      subscribe: () => () => undefined,
    },
    run: () => Promise.resolve(),
    waitForSync: () => Promise.resolve(),
    healthy: true,
    counts: { lists: 0, watches: 0, comparisons: 0, differences: 0 },
  };
}
