/** Policy packs of a WorkspaceClass: copied from their images into the pod, and passed to every preview and update. Pure. */
import { posix } from "node:path";
import { pulumiContainer } from "@pko/api";
import type { Container, PodSpec, VolumeMount } from "kubernetes-types/core/v1";

import type { AppliedClass } from "../../shared/workspace-classes.ts";

type PolicyPack = NonNullable<AppliedClass["spec"]["policyPacks"]>[number];

const packVolume = "pulumi-policy-packs";
/** Not below a link, as /var/run is in most images: a mount at its target would cover the packs. */
const packFolder = "/pulumi-policy-packs";
const packsSize = "1Gi";

const folderOf = ({ name, image, path }: PolicyPack): string => (image === undefined ? path : `${packFolder}/${name}`);

export const policyFlags = ({ spec: { policyPacks = [] } }: AppliedClass): string[] =>
  policyPacks.map((pack) => `--policy-pack=${folderOf(pack)}`);

/** After the merge, so that a template cannot remove or replace them. */
export function withPolicyPacks(spec: PodSpec, { spec: { policyPacks = [] } }: AppliedClass): PodSpec {
  const copied = policyPacks.filter(({ image }) => image !== undefined).map(copyingContainer);
  if (copied.length === 0) return spec;
  const names = new Set(copied.map(({ name }) => name));
  const others = (spec.initContainers ?? []).filter(({ name }) => !names.has(name));
  return {
    ...spec,
    volumes: [
      ...(spec.volumes ?? []).filter(({ name }) => name !== packVolume),
      { name: packVolume, emptyDir: { sizeLimit: packsSize } },
    ],
    // Last: an init container of the template must not change them.
    initContainers: [...others.map(withoutPacks), ...copied],
    containers: spec.containers
      .map(withoutPacks)
      .map((each) => (each.name === pulumiContainer ? withPacks(each) : each)),
  };
}

function copyingContainer(pack: PolicyPack): Container {
  const { name, image = "", path } = pack;
  return {
    name: `policy-pack-${name}`,
    image,
    command: ["cp", "-R", `${path}/.`, folderOf(pack)],
    terminationMessagePolicy: "FallbackToLogsOnError",
    resources: { requests: { cpu: "10m", memory: "16Mi" } },
    volumeMounts: [{ name: packVolume, mountPath: packFolder }],
  };
}

/** A container with the volume could change the packs, and a mount in their folder could cover them. */
function withoutPacks(container: Container): Container {
  const { volumeMounts } = container;
  return volumeMounts ? { ...container, volumeMounts: volumeMounts.filter((mount) => !isOfPacks(mount)) } : container;
}

/** The kubelet takes a relative path as one from the root. */
const isOfPacks = ({ name, mountPath }: VolumeMount): boolean =>
  name === packVolume || `${posix.resolve("/", mountPath)}/`.startsWith(`${packFolder}/`);

const withPacks = (container: Container): Container => ({
  ...container,
  volumeMounts: [...(container.volumeMounts ?? []), { name: packVolume, mountPath: packFolder, readOnly: true }],
});
