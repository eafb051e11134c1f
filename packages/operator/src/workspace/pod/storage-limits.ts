/**
 * Limits the disk space of a workspace pod: a program that writes endlessly is evicted, and not its neighbors on the node.
 * docs/workspaces.md explains how the amount was chosen, and how to change it.
 *
 * The kubelet adds up the limits of all containers that have one, and compares the sum with everything that the pod has
 * written, disk-backed volumes included. So a limit on one container bounds the pod; the other containers are left alone,
 * because a limit of theirs would need an explicit request of 0, which a LimitRange may refuse.
 */
import { pulumiContainer, shareVolume } from "@pko/api";
import type { Container, PodTemplateSpec, ResourceRequirements, Volume } from "kubernetes-types/core/v1";

const storage = "ephemeral-storage";
const defaultLimit = "10Gi";
/** A pod without a request is evicted first when its node's disk fills up. */
export const defaultStorageRequest = "256Mi";

type Quantity = string | number;

/** Applied after the merge: requests and limits of a template are kept. */
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

/** The total size of the disk-backed volumes; undefined if one of the template's has no limit. A size of 0 is no limit. */
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
  const request = given.requests?.[storage] ?? defaultStorageRequest;
  const resources: ResourceRequirements = {
    ...given,
    requests: { [storage]: request, ...given.requests },
    ...(room !== undefined && { limits: { ...given.limits, [storage]: largest(defaultLimit, request, room) } }),
  };
  return { ...container, resources };
}

/** The first of equals; invalid quantities are ignored. */
function largest(first: string, ...others: readonly Quantity[]): string {
  const more = (a: Quantity, b: Quantity): Quantity => ((bytesOf(b) ?? 0) > (bytesOf(a) ?? 0) ? b : a);
  return others.reduce<Quantity>(more, first) as string;
}

/** The volume of the program may be as large as the container that fills it. */
function sized(volume: Volume, limit: string | undefined): Volume {
  const { emptyDir } = volume;
  if (volume.name !== shareVolume || !emptyDir || emptyDir.medium || limit === undefined) return volume;
  return { ...volume, emptyDir: { sizeLimit: limit, ...emptyDir } };
}

const suffixes: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
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

/** Of a Kubernetes quantity, around which spaces are allowed; undefined if it is invalid. */
export function bytesOf(quantity: string | number): number | undefined {
  const [, digits = "", suffix = ""] =
    /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(String(quantity).trim()) ?? [];
  const bytes = Number.parseFloat(digits) * (suffixes[suffix] ?? Number.NaN);
  return Number.isNaN(bytes) ? undefined : bytes;
}
