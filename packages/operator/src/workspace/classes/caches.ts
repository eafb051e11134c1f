/**
 * Caches of a WorkspaceClass: a claim for each namespace, which all workspace pods of the namespace mount. Pure.
 *
 * Pods use the caches at the same time. This is safe: the Pulumi CLI and Go lock what they write, and npm and pip write to a
 * temporary file and rename it.
 */
import { cacheTools, pulumiContainer, workspaceClassKind, type CacheTool, type SecurityProfile } from "@pko/api";
import type { ApplyBody, ApiObject } from "@pko/kube";
import type { EnvVar, PersistentVolumeClaim, PodSpec } from "kubernetes-types/core/v1";

import type { AppliedClass } from "../../shared/workspace-classes.ts";

const cacheVolume = "pulumi-cache";
const cacheFolder = "/var/cache/pulumi";

export const cacheClaimOf = (className: string): string => `pulumi-cache-${className}`;

/** Owned by the class: the garbage collector deletes it with the class, once no pod uses it. */
export function cacheClaim(
  { name, uid, spec: { caches } }: AppliedClass,
  namespace: string,
): ApplyBody<ApiObject<PersistentVolumeClaim>> | undefined {
  if (!caches) return undefined;
  const { size, storageClassName, accessMode = "ReadWriteOnce" } = caches;
  const { apiVersion, kind } = workspaceClassKind;
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name: cacheClaimOf(name),
      namespace,
      ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: false }],
    },
    spec: {
      accessModes: [accessMode],
      ...(storageClassName !== undefined && { storageClassName }),
      resources: { requests: { storage: String(size) } },
    },
  };
}

/** Users of both profiles may share a claim, but cannot write to each other's files. */
const folderOf = (profile: SecurityProfile, name: string): string => `${cacheFolder}/${profile}/${name}`;

const variables: Readonly<Record<CacheTool, (profile: SecurityProfile) => EnvVar[]>> = {
  // The agent links the folder into PULUMI_HOME, which also has the credentials of the pod's own user.
  Plugins: () => [],
  Npm: (profile) => [{ name: "npm_config_cache", value: folderOf(profile, "npm") }],
  Pip: (profile) => [{ name: "PIP_CACHE_DIR", value: folderOf(profile, "pip") }],
  Go: (profile) => [
    { name: "GOMODCACHE", value: folderOf(profile, "go-mod") },
    { name: "GOCACHE", value: folderOf(profile, "go-build") },
  ],
};

/** A variable that the template sets takes precedence. */
export function withCaches(spec: PodSpec, applied: AppliedClass, profile: SecurityProfile): PodSpec {
  const { caches } = applied.spec;
  if (!caches) return spec;
  const added = toolsOf(applied).flatMap((tool) => variables[tool](profile));
  const mounted = { name: cacheVolume, mountPath: cacheFolder };
  const claim = { name: cacheVolume, persistentVolumeClaim: { claimName: cacheClaimOf(applied.name) } };
  return {
    ...spec,
    volumes: [...(spec.volumes ?? []).filter(({ name }) => name !== cacheVolume), claim],
    containers: spec.containers.map((container) => {
      if (container.name !== pulumiContainer) return container;
      const { env = [], volumeMounts = [] } = container;
      const isNew = ({ name }: EnvVar): boolean => !env.some((each) => each.name === name);
      const others = volumeMounts.filter(({ mountPath, name }) => mountPath !== cacheFolder && name !== cacheVolume);
      return { ...container, env: [...added.filter(isNew), ...env], volumeMounts: [...others, mounted] };
    }),
  };
}

/** The agent leaves out what it cannot write to. */
export function cacheFlags(applied: AppliedClass, profile: SecurityProfile): string[] {
  if (!applied.spec.caches) return [];
  const plugins = toolsOf(applied).includes("Plugins") ? [`--plugin-cache=${folderOf(profile, "plugins")}`] : [];
  return [`--caches=${cacheFolder}/${profile}`, ...plugins];
}

const toolsOf = ({ spec: { caches } }: AppliedClass): readonly CacheTool[] => caches?.tools ?? cacheTools;
