/** The resource requests of a pod. Pure. */
import type { Container, PodSpec } from "kubernetes-types/core/v1";

interface Requests {
  readonly cpuMillis: number;
  readonly memoryMb: number;
}

/** Like the scheduler: the sum of all containers, or the largest init container if that is more. */
export function requestsOf(spec: PodSpec | undefined): Requests {
  const of = (containers: readonly Container[] | undefined): Requests[] => (containers ?? []).map(requestOf);
  const running = of(spec?.containers);
  const starting = of(spec?.initContainers);
  const sum = (field: keyof Requests): number => running.reduce((total, each) => total + each[field], 0);
  const most = (field: keyof Requests): number => Math.max(sum(field), ...starting.map((each) => each[field]));
  return { cpuMillis: most("cpuMillis"), memoryMb: most("memoryMb") };
}

function requestOf({ resources }: Container): Requests {
  const { cpu = "0", memory = "0" } = resources?.requests ?? {};
  return { cpuMillis: quantity(cpu) * 1000, memoryMb: quantity(memory) / 2 ** 20 };
}

const factors: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
};

export function quantity(text: string): number {
  const [, number = "0", unit = ""] = /^([0-9.]+)([a-zA-Z]*)$/.exec(text) ?? [];
  return Number(number) * (factors[unit] ?? 1);
}
