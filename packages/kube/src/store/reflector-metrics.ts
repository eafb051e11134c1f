/** The metrics of reflectors. */
import type { Registry } from "../telemetry/metrics.ts";
import type { KubeObject } from "../resource.ts";
import type { Reflector } from "./store.ts";

export type Reflectors = Readonly<Record<string, Reflector<KubeObject>>>;

export function exposeReflectors(registry: Registry, reflectors: Reflectors): () => void {
  const labels = ["reflector"] as const;
  const gauge = (name: string, help: string) => registry.gauge({ name: `reflector_${name}`, help, labels });
  const objects = gauge("objects", "Objects in the store.");
  const healthy = gauge("healthy", "1 while the store is in sync with the API server.");
  const counted = new Map<string, number>();

  return registry.onCollect(() => {
    for (const [name, reflector] of Object.entries(reflectors)) {
      const own = { reflector: name };
      objects.set(own, reflector.store.size);
      healthy.set(own, reflector.healthy && reflector.store.hasSynced ? 1 : 0);
      const counts: Readonly<Record<string, number>> = { ...reflector.counts };
      for (const [count, total] of Object.entries(counts)) {
        const counter = registry.counter({ name: `reflector_${count}_total`, help: `Number of ${count}.`, labels });
        const id = `${count}/${name}`;
        counter.increment(own, total - (counted.get(id) ?? 0));
        counted.set(id, total);
      }
    }
  });
}
