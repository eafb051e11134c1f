/** Objects that Kubernetes would write. */
import type { KubeObject, Resource } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

/** An owner reference to a controller. */
export const controllerOf = (resource: Resource, { metadata }: Pick<KubeObject, "metadata">) => ({
  apiVersion: resource.apiVersion,
  kind: resource.kind,
  name: metadata.name ?? "",
  uid: metadata.uid ?? "",
  controller: true,
});

export function running(number: number): NonNullable<Pod["status"]> {
  const startedAt = new Date().toISOString().replace(/\.\d+/, "");
  return {
    phase: "Running",
    podIP: `10.1.0.${number}`,
    podIPs: [{ ip: `10.1.0.${number}` }],
    containerStatuses: [
      {
        name: "pulumi",
        image: "i",
        imageID: "i",
        ready: true,
        restartCount: 0,
        state: { running: { startedAt } },
      },
    ],
  };
}
