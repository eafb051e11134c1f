/** A Helm release of this clone's chart in its own namespace, which serves only the namespace of a scene. */
import { leaseName } from "@pko/api";
import { imageValues } from "@pko/cluster";
import { builtin } from "@pko/kube";

import { clusterClient, publishedImage, removeNamespace, type Place } from "../harness.ts";
import { chart, helm } from "./helm.ts";

export const release = "pulumi-kubernetes-operator";

interface Cleanups {
  defer(cleanup: () => unknown): void;
}

/** Uninstalls the release and deletes its namespace when the scene closes. */
export function uninstallAfter(scene: Cleanups, home: string): void {
  scene.defer(() => removeNamespace(home));
  scene.defer(() => helm("uninstall", release, "-n", home, "--ignore-not-found", "--wait"));
}

/** Values for a cluster that others may use, too: the chart serves one namespace and changes no CRD. */
export async function chartValues(
  home: string,
  served: Pick<Place, "namespace">,
  more: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const values = {
    watchNamespaces: `{${served.namespace}}`,
    "crds.upgrade": "false",
    fullnameOverride: home,
    // A busy machine must not cause errors in the log.
    "kubeAPI.timeout": "180s",
    ...more,
  };
  const flags = Object.entries(values).map(([name, value]) => `--set=${name}=${value}`);
  return [...imageValues(await publishedImage()), ...flags];
}

export async function installChart(home: string, values: readonly string[]): Promise<string> {
  return await helm("install", "--create-namespace", "-n", home, release, chart, ...values, "--wait");
}

/** The name of the pod that holds the Lease; undefined if none holds it, or the pod is terminating. Throws if the pod does not exist. */
export async function leaderPod(home: string): Promise<string | undefined> {
  const client = await clusterClient();
  const { spec } = await client.get(builtin.leases, { name: leaseName, namespace: home });
  const [name] = spec?.holderIdentity?.split("_") ?? [];
  if (!name) return undefined;
  const { metadata } = await client.get(builtin.pods, { name, namespace: home });
  return metadata.deletionTimestamp === undefined ? name : undefined;
}
