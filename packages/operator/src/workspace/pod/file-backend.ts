/** A file backend keeps the state of stacks in files: without a persistent volume, they are lost with the pod. */
import { pulumiContainer } from "@pko/api";
import type { PodSpec, Volume } from "kubernetes-types/core/v1";

import { valueOfVariable, type Readings } from "./references.ts";

export const backendVariable = "PULUMI_BACKEND_URL";

/** The folder whose content would be lost with the pod. */
export function ephemeralBackend(spec: PodSpec, readings: Readings): string | undefined {
  const container = spec.containers.find(({ name }) => name === pulumiContainer);
  const url = container && valueOfVariable(container, backendVariable, readings);
  if (!url?.startsWith("file://")) return undefined;
  // A query is for the backend; ~ is the home folder, which belongs to the image or the agent.
  const folder = url.slice("file://".length).split("?", 1)[0] || "~";
  const kept = (container?.volumeMounts ?? []).some(({ name, mountPath, readOnly }) => {
    const volume = spec.volumes?.find((each) => each.name === name);
    return volume && !readOnly && isPersistent(volume) && isWithin(folder, mountPath);
  });
  return kept ? undefined : folder;
}

/** Whether its content is still there for the next pod. */
function isPersistent(volume: Volume): boolean {
  return Object.keys(volume).some((kind) => kind !== "name" && !ephemeralVolumes.has(kind));
}

const ephemeralVolumes = new Set([
  "emptyDir",
  "ephemeral",
  "configMap",
  "secret",
  "projected",
  "downwardAPI",
  "image",
  "gitRepo",
]);

function isWithin(path: string, folder: string): boolean {
  const top = folder.replace(/(?<!\/)\/+$/, "");
  return path === top || path.startsWith(`${top}/`);
}
