/**
 * The switch that suspends all Stacks of the operator: an annotation of its Lease, which the elector receives with every
 * renewal. Without leader election there is no Lease, and the switch stays off.
 */
import { isOperatorSuspended, suspendAnnotation } from "@pko/api";
import type { Logger, Registry } from "@pko/kube";

export interface Suspension {
  /** Whether all Stacks are suspended. */
  readonly isOn: boolean;
  /** Calls the listener after each change, until the returned function is called. */
  follow(listener: () => void): () => void;
}

export interface SuspensionSwitch extends Suspension {
  /** Sets the switch from the annotations of the Lease. */
  read(annotations: Readonly<Record<string, string>>): void;
}

interface SwitchOptions {
  readonly log: Logger;
  readonly metrics: Registry;
}

export const neverSuspended: Suspension = { isOn: false, follow: () => () => undefined };

export function suspensionSwitch({ log, metrics }: SwitchOptions): SuspensionSwitch {
  let isOn = false;
  const listeners = new Set<() => void>();
  const gauge = metrics.gauge({
    name: "operator_suspended",
    help: "1 while the annotation pulumi.com/suspend of the Lease suspends all Stacks.",
  });
  metrics.onCollect(() => gauge.set({}, isOn ? 1 : 0));
  return {
    get isOn() {
      return isOn;
    },
    follow(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    read(annotations) {
      const wanted = isOperatorSuspended(annotations);
      if (wanted === isOn) return;
      isOn = wanted;
      log.info(isOn ? "all Stacks are suspended" : "Stacks are resumed", { annotation: suspendAnnotation });
      for (const listener of listeners) listener();
    },
  };
}
