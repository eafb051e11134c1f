/**
 * Bounds the disk that a workspace pod may fill: a program that writes without end is evicted, and not its neighbors on the
 * node. docs/workspaces.md says how the amount was chosen, and how to change it.
 *
 * The kubelet adds up the limits of all containers, and compares the sum with all that the pod has written, volumes included.
 * So each container has one, also those that a template adds.
 */
import { pulumiContainer, shareVolume } from "@pko/api";
import type { Container, PodTemplateSpec, ResourceRequirements, Volume } from "kubernetes-types/core/v1";

const storage = "ephemeral-storage";
const defaultLimit = "10Gi";
/** Without a request a pod is the first to be evicted when its node's disk fills. */
const defaultRequest = "256Mi";

/** After the merge: what a template says of requests and limits is kept. */
export function limitStorage(template: PodTemplateSpec): PodTemplateSpec {
  const { spec } = template;
  if (!spec) return template;
  const { initContainers, volumes } = spec;
  const containers = spec.containers.map(limited);
  const limit = containers.find(({ name }) => name === pulumiContainer)?.resources?.limits?.[storage];
  return {
    ...template,
    spec: {
      ...spec,
      ...(initContainers && { initContainers: initContainers.map(limited) }),
      containers,
      ...(volumes && { volumes: volumes.map((volume) => sized(volume, limit)) }),
    },
  };
}

function limited(container: Container): Container {
  return { ...container, resources: withLimit(container.resources ?? {}, container.name) };
}

function withLimit(given: ResourceRequirements, name: string): ResourceRequirements {
  if (given.limits?.[storage] !== undefined) return given;
  // Where there is none, the API server takes the limit for the request.
  const request = given.requests?.[storage] ?? (name === pulumiContainer ? defaultRequest : "0");
  const isMore = (bytesOf(request) ?? 0) > (bytesOf(defaultLimit) ?? 0);
  return {
    ...given,
    requests: { [storage]: request, ...given.requests },
    limits: { ...given.limits, [storage]: isMore ? request : defaultLimit },
  };
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
