/** Keeps a workspace pod within the resources that its WorkspaceClass allows. Pure. */
import { defaultRequests as requestsOfWorkspaces, pulumiContainer } from "@pko/api";
import type { Container, PodSpec, ResourceRequirements } from "kubernetes-types/core/v1";

import type { AppliedClass } from "../../shared/workspace-classes.ts";
import * as messages from "../messages.ts";
import { bytesOf, defaultStorageRequest } from "../pod/storage-limits.ts";

export type BoundedPod =
  | { readonly ok: true; readonly spec: PodSpec }
  /** Sentences, each with the limit that is exceeded. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** One resource that a class limits. */
interface Maximum {
  readonly className: string;
  readonly resource: string;
  readonly max: string;
}

export function boundResources(spec: PodSpec, { name, spec: { limits } }: AppliedClass): BoundedPod {
  const maxima = Object.entries(limits?.resources ?? {}).map(([resource, max]) => ({
    className: name,
    resource,
    max: bytesOf(max) === undefined ? "0" : String(max),
  }));
  const problems = maxima.flatMap((maximum) => problemsWith(spec, maximum));
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, spec: maxima.reduce(withLimits, spec) };
}

/** A template may contain null where an object is expected. */
type Resources = ResourceRequirements | null | undefined;

/** Of the pod as a whole, from Kubernetes 1.34 on; the types do not have them. An older API server ignores them. */
const resourcesOfPod = (spec: PodSpec): Resources => (spec as { readonly resources?: ResourceRequirements }).resources;

/** Init containers that keep running count like containers. */
const isSidecar = ({ restartPolicy }: Container): boolean => restartPolicy === "Always";

/** Undefined also for a limit of 0 or null, because Kubernetes does not limit such a container. */
function limitOf(resources: Resources, resource: string): string | undefined {
  const limit = resources?.limits?.[resource] ?? undefined;
  const parsed = limit === undefined ? undefined : bytesOf(limit);
  return parsed !== undefined && parsed <= 0 ? undefined : limit;
}

/** What runs at the same time, except for the container pulumi. */
const companions = ({ initContainers = [], containers }: PodSpec): Container[] =>
  [...containers, ...initContainers.filter(isSidecar)].filter(({ name }) => name !== pulumiContainer);

/**
 * Sums of fractions are not exact, so amounts are whole numbers: of thousandths of a CPU, or of bytes. What is no quantity exceeds
 * every limit.
 */
function amount(quantity: string | null | undefined, resource: string): number {
  const parsed = bytesOf(quantity ?? "0") ?? Infinity;
  const units = resource === "cpu" ? parsed * 1000 : parsed;
  // Rounded up as by Kubernetes, but not because of the last digit of a product such as 0.07 * 1000.
  return Math.ceil(Number(units.toPrecision(15)));
}

const largest = (resources: Resources, resource: string): number =>
  Math.max(amount(limitOf(resources, resource), resource), amount(resources?.requests?.[resource], resource));

const total = (containers: readonly Container[], resource: string): number =>
  containers.reduce((sum, { resources }) => sum + amount(limitOf(resources, resource), resource), 0);

function problemsWith(spec: PodSpec, maximum: Maximum): string[] {
  const { resource, max } = maximum;
  const ofPod = largest(resourcesOfPod(spec), resource);
  if (ofPod > amount(max, resource)) {
    return [messages.ownLimitExceeded({ ...maximum, own: quantityOf(ofPod, resource) })];
  }
  const unlimited = companions(spec).filter(({ resources }) => limitOf(resources, resource) === undefined);
  if (unlimited.length > 0) return unlimited.map(({ name }) => messages.limitMissing({ ...maximum, container: name }));
  const problems = sumProblems(spec, maximum);
  return problems.length > 0 ? problems : initProblems(spec, maximum);
}

function sumProblems(spec: PodSpec, maximum: Maximum): string[] {
  const { resource, max } = maximum;
  const pulumi = spec.containers.find(({ name }) => name === pulumiContainer);
  const own = largest(pulumi?.resources, resource);
  const left = amount(max, resource) - total(companions(spec), resource);
  if (own <= left && left > 0) return [];
  const sum = amount(max, resource) - left + own;
  return [messages.podLimitExceeded({ ...maximum, sum: quantityOf(sum, resource) })];
}

/** An init container runs at the same time as the sidecars before it. */
const sidecarsBefore = ({ initContainers = [] }: PodSpec, index: number): Container[] =>
  initContainers.slice(0, index).filter(isSidecar);

function initProblems(spec: PodSpec, maximum: Maximum): string[] {
  const { resource, max } = maximum;
  return (spec.initContainers ?? []).flatMap((container, index) => {
    const before = sidecarsBefore(spec, index);
    const own = largest(container.resources, resource) + total(before, resource);
    if (isSidecar(container) || own <= amount(max, resource)) return [];
    const sidecars = before.length > 0;
    return [
      messages.initLimitExceeded({
        ...maximum,
        container: container.name,
        own: quantityOf(own, resource),
        sidecars,
      }),
    ];
  });
}

/** A container without a limit could use the whole node. */
function withLimits(spec: PodSpec, maximum: Maximum): PodSpec {
  const { initContainers, containers } = spec;
  const limited = (container: Container, others: readonly Container[]): Container =>
    withLimit(container, { ...maximum, max: limitBeside(others, { spec, maximum }) });
  return {
    ...spec,
    containers: containers.map((each) => limited(each, companions(spec))),
    ...(initContainers && {
      initContainers: initContainers.map((each, index) => limited(each, sidecarsBefore(spec, index))),
    }),
  };
}

/** What the others leave. The API server rejects a container whose limit exceeds that of the pod. */
function limitBeside(
  others: readonly Container[],
  { spec, maximum }: { readonly spec: PodSpec; readonly maximum: Maximum },
): string {
  const { resource } = maximum;
  const max = limitOf(resourcesOfPod(spec), resource) ?? maximum.max;
  const left = amount(maximum.max, resource) - total(others, resource);
  return left >= amount(max, resource) ? max : quantityOf(left, resource);
}

/** With a limit and no request, Kubernetes would request the whole limit, and no node might have that. */
function withLimit(container: Container, { resource, max }: Maximum): Container {
  const resources: Resources = container.resources;
  if (limitOf(resources, resource) !== undefined) return container;
  const least = defaultRequests[resource] ?? max;
  const request = amount(least, resource) > amount(max, resource) ? max : least;
  return {
    ...container,
    resources: {
      ...resources,
      requests: { [resource]: request, ...resources?.requests },
      limits: { ...resources?.limits, [resource]: max },
    },
  };
}

const defaultRequests: Readonly<Record<string, string>> = {
  ...requestsOfWorkspaces,
  "ephemeral-storage": defaultStorageRequest,
};

/** In the usual unit of the resource, and exact: a limit that is rounded down may be below a request. */
function quantityOf(value: number, resource: string): string {
  if (value === Infinity) return "an unknown amount";
  if (resource === "cpu") return `${value}m`;
  return value % 2 ** 20 === 0 ? `${value / 2 ** 20}Mi` : String(value);
}
