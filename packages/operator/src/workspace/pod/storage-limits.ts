/**
 * Bounds the disk that a workspace pod may fill: a program that writes without end is evicted, and not its neighbors on the
 * node. docs/workspaces.md says how the amount was chosen, and how to change it.
 *
 * The kubelet adds up the limits of all containers that have one, and compares the sum with everything that the pod has
 * written, disk-backed volumes included. So a limit on one container bounds the pod; the other containers are left alone,
 * because a limit of theirs would need an explicit request of 0, which a LimitRange may refuse.
 */
import { pulumiContainer, shareVolume } from "@pko/api";
import type { Container, PodTemplateSpec, ResourceRequirements, Volume } from "kubernetes-types/core/v1";

const storage = "ephemeral-storage";
const defaultLimit = "10Gi";
/** Without a request a pod is the first to be evicted when its node's disk fills. */
const defaultRequest = "256Mi";

type Quantity = string | number;

/** After the merge: what a template says of requests and limits is kept. */
export function limitStorage(template: PodTemplateSpec): PodTemplateSpec {
  const { spec } = template;
  if (!spec) return template;
  const { volumes } = spec;
  const room = roomForVolumes(volumes ?? []);
  const containers = spec.containers.map((each) => (each.name === pulumiContainer ? limited(each, room) : each));
  const limit = containers.find(({ name }) => name === pulumiContainer)?.resources?.limits?.[storage];
  return {
    ...template,
    spec: { ...spec, containers, ...(volumes && { volumes: volumes.map((volume) => sized(volume, limit)) }) },
  };
}

/** What the disk-backed volumes may hold together: undefined if one of the template has no bound. A size of 0 is none. */
function roomForVolumes(volumes: readonly Volume[]): Quantity | undefined {
  const onDisk = volumes.filter(({ emptyDir }) => emptyDir && !emptyDir.medium);
  const isUnbounded = ({ name, emptyDir }: Volume): boolean =>
    name !== shareVolume && !bytesOf(emptyDir?.sizeLimit ?? 0);
  if (onDisk.some(isUnbounded)) return undefined;
  const sizes: Quantity[] = onDisk.flatMap(({ emptyDir }) => emptyDir?.sizeLimit ?? []);
  const [only = "0", ...others] = sizes;
  return others.length === 0 ? only : `${Math.ceil(sizes.reduce(addBytes, 0) / 2 ** 20)}Mi`;
}

const addBytes = (sum: number, size: Quantity): number => sum + (bytesOf(size) ?? 0);

function limited(container: Container, room: Quantity | undefined): Container {
  const given = container.resources ?? {};
  if (given.limits?.[storage] !== undefined) return container;
  const request = given.requests?.[storage] ?? defaultRequest;
  const resources: ResourceRequirements = {
    ...given,
    requests: { [storage]: request, ...given.requests },
    ...(room !== undefined && { limits: { ...given.limits, [storage]: largest(defaultLimit, request, room) } }),
  };
  return { ...container, resources };
}

/** The first of equals; what is not a quantity does not count. */
function largest(first: string, ...others: readonly Quantity[]): string {
  const more = (a: Quantity, b: Quantity): Quantity => ((bytesOf(b) ?? 0) > (bytesOf(a) ?? 0) ? b : a);
  return others.reduce<Quantity>(more, first) as string;
}

/** The volume that holds the program: as large as the container that fills it may be. */
function sized(volume: Volume, limit: string | undefined): Volume {
  const { emptyDir } = volume;
  if (volume.name !== shareVolume || !emptyDir || emptyDir.medium || limit === undefined) return volume;
  return { ...volume, emptyDir: { sizeLimit: limit, ...emptyDir } };
}

const suffixes: Readonly<Record<string, number>> = {
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Of a Kubernetes quantity; undefined for what is none. */
export function bytesOf(quantity: string | number): number | undefined {
  const [, digits = "", suffix = ""] = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(String(quantity)) ?? [];
  const bytes = Number.parseFloat(digits) * (suffixes[suffix] ?? Number.NaN);
  return Number.isNaN(bytes) ? undefined : bytes;
}
