/** Keeps a workspace pod within the resources that its WorkspaceClass allows. Pure. */
import { pulumiContainer } from "@pko/api";
import type { Container, PodSpec, ResourceRequirements } from "kubernetes-types/core/v1";

import type { AppliedClass } from "../../shared/workspace-classes.ts";
import * as messages from "../messages.ts";
import { bytesOf } from "../pod/storage-limits.ts";

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
    max: String(max),
  }));
  const problems = maxima.flatMap((maximum) => problemsWith(spec, maximum));
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, spec: maxima.reduce(withLimits, spec) };
}

/** Of the pod as a whole, from Kubernetes 1.34 on; the types do not have them. An older API server ignores them. */
const resourcesOfPod = (spec: PodSpec): ResourceRequirements =>
  (spec as { readonly resources?: ResourceRequirements }).resources ?? {};

/** Init containers that keep running count like containers. */
const isSidecar = ({ restartPolicy }: Container): boolean => restartPolicy === "Always";
const sidecars = ({ initContainers = [] }: PodSpec): Container[] => initContainers.filter(isSidecar);
const initOnly = ({ initContainers = [] }: PodSpec): Container[] => initContainers.filter((each) => !isSidecar(each));

const limitOf = ({ resources }: Container, resource: string): string | undefined => resources?.limits?.[resource];

/** What runs at the same time, except for the container pulumi. */
const companions = (spec: PodSpec): Container[] =>
  [...spec.containers, ...sidecars(spec)].filter(({ name }) => name !== pulumiContainer);

const amount = (quantity: string | number | undefined): number =>
  quantity === undefined ? 0 : (bytesOf(quantity) ?? 0);

const total = (containers: readonly Container[], resource: string): number =>
  containers.reduce((sum, each) => sum + amount(limitOf(each, resource)), 0);

function problemsWith(spec: PodSpec, maximum: Maximum): string[] {
  const { resource, max } = maximum;
  const { limits, requests } = resourcesOfPod(spec);
  const ofPod = Math.max(amount(limits?.[resource]), amount(requests?.[resource]));
  if (ofPod > amount(max)) return [messages.ownLimitExceeded({ ...maximum, own: quantityOf(ofPod, resource) })];
  const others = companions(spec);
  const unlimited = others.filter((each) => limitOf(each, resource) === undefined);
  if (unlimited.length > 0) return unlimited.map(({ name }) => messages.limitMissing({ ...maximum, container: name }));
  const tooLarge = initOnly(spec).filter((each) => amount(limitOf(each, resource)) > amount(max));
  if (tooLarge.length > 0) return tooLarge.map(({ name }) => messages.limitExceeded({ ...maximum, container: name }));
  const pulumi = spec.containers.find(({ name }) => name === pulumiContainer);
  const requested = pulumi?.resources?.requests?.[resource];
  const own = Math.max(amount(pulumi && limitOf(pulumi, resource)), amount(requested));
  const sum = own + total(others, resource);
  if (sum <= amount(max) && own + left(spec, maximum) > 0) return [];
  return [messages.podLimitExceeded({ ...maximum, sum: quantityOf(sum, resource) })];
}

/** What the other containers leave of the maximum. */
const left = (spec: PodSpec, { resource, max }: Maximum): number => amount(max) - total(companions(spec), resource);

/** A container without a limit could use the whole node. The API server rejects one that exceeds the limit of the pod. */
function withLimits(spec: PodSpec, maximum: Maximum): PodSpec {
  const { resource } = maximum;
  const rest = left(spec, maximum);
  const max = resourcesOfPod(spec).limits?.[resource] ?? maximum.max;
  const share = rest >= amount(max) ? max : quantityOf(rest, resource);
  const limited = (container: Container): Container => {
    if (limitOf(container, resource) !== undefined) return container;
    const limit = container.name === pulumiContainer ? share : max;
    const { resources } = container;
    return { ...container, resources: { ...resources, limits: { ...resources?.limits, [resource]: limit } } };
  };
  const { initContainers, containers } = spec;
  return {
    ...spec,
    containers: containers.map(limited),
    ...(initContainers && { initContainers: initContainers.map(limited) }),
  };
}

/** Rounded down, in the usual unit of the resource. */
function quantityOf(value: number, resource: string): string {
  return resource === "cpu" ? `${Math.floor(value * 1000)}m` : `${Math.floor(value / 2 ** 20)}Mi`;
}
