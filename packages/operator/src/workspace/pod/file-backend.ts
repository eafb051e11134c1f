/** A file backend keeps the state of stacks in the pod's own files: without a volume that stays, they die with the pod. */
import { pulumiContainer } from "@pko/api";
import type { PodSpec, Volume } from "kubernetes-types/core/v1";

import { valueOfVariable, type Readings } from "./references.ts";

export const backendVariable = "PULUMI_BACKEND_URL";

/** The folder that would be lost; undefined when there is none. */
export function ephemeralBackend(spec: PodSpec, readings: Readings): string | undefined {
  const container = spec.containers.find(({ name }) => name === pulumiContainer);
  const url = container && valueOfVariable(container, backendVariable, readings);
  if (!url?.startsWith("file://")) return undefined;
  // A query is for the backend; ~ is the home folder, which is the image's or the agent's.
  const folder = url.slice("file://".length).split("?", 1)[0] || "~";
  const kept = (container?.volumeMounts ?? []).some(({ name, mountPath, readOnly }) => {
    const volume = spec.volumes?.find((each) => each.name === name);
    return volume && !readOnly && staysWithout(volume) && isWithin(folder, mountPath);
  });
  return kept ? undefined : folder;
}

/** Whether what is written to it is there for the next pod. */
function staysWithout(volume: Volume): boolean {
  return Object.keys(volume).some((kind) => kind !== "name" && !passing.has(kind));
}

const passing = new Set([
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
  const top = folder.replace(/\/+$/, "");
  return path === top || path.startsWith(`${top}/`);
}
