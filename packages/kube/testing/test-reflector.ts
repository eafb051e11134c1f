/** A reflector that a test fills by hand. */
import { IndexedStore } from "../src/store/indexed-store.ts";
import type { KubeObject } from "../src/resource.ts";
import type { Reflector } from "../src/store/store.ts";

export interface TestReflector extends Reflector<KubeObject> {
  readonly store: IndexedStore<KubeObject>;
  healthy: boolean;
  /** Whether `run` is active. */
  running: boolean;
  sync(): void;
}

export function testReflector(...objects: readonly KubeObject[]): TestReflector {
  const reflector = archivingReflector(() => undefined);
  for (const each of objects) reflector.store.set(each);
  return reflector;
}

export function archivingReflector(archive: (object: KubeObject) => number | undefined): TestReflector {
  const store = new IndexedStore<KubeObject>({ archive, onError: () => undefined });
  const synced = Promise.withResolvers<void>();
  const reflector: TestReflector = {
    store,
    async run(signal) {
      reflector.running = true;
      await rejectOnAbort(signal).catch(() => undefined);
      reflector.running = false;
    },
    waitForSync: async (signal) => await Promise.race([synced.promise, rejectOnAbort(signal)]),
    healthy: true,
    running: false,
    sync() {
      store.hasSynced = true;
      synced.resolve();
    },
    counts: { lists: 0, watches: 0, comparisons: 0, differences: 0 },
  };
  return reflector;
}

async function rejectOnAbort(signal: AbortSignal | undefined): Promise<never> {
  return await new Promise((_, reject) => {
    if (signal?.aborted) reject(new Error("aborted"));
    signal?.addEventListener("abort", () => reject(new Error("aborted")));
  });
}
