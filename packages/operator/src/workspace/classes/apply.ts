/** Applies the WorkspaceClass of the namespace to the merged pod template: caches, policy packs, then limits. Pure. */
import { pulumiContainer, type SecurityProfile } from "@pko/api";
import type { PodTemplateSpec } from "kubernetes-types/core/v1";

import type { AppliedClass } from "../../shared/workspace-classes.ts";
import { cacheFlags, withCaches } from "./caches.ts";
import { boundResources } from "./limits.ts";
import { policyFlags, withPolicyPacks } from "./policies.ts";

type ClassedTemplate =
  | { readonly ok: true; readonly template: PodTemplateSpec }
  | { readonly ok: false; readonly problems: readonly string[] };

export function applyClass(
  template: PodTemplateSpec,
  applied: AppliedClass | undefined,
  profile: SecurityProfile,
): ClassedTemplate {
  if (!applied || !template.spec) return { ok: true, template };
  const bounded = boundResources(withPolicyPacks(withCaches(template.spec, applied, profile), applied), applied);
  if (!bounded.ok) return bounded;
  const flags = [...cacheFlags(applied, profile), ...policyFlags(applied)];
  const containers = bounded.spec.containers.map((container) =>
    container.name === pulumiContainer
      ? { ...container, command: [...(container.command ?? []), ...flags] }
      : container,
  );
  return { ok: true, template: { ...template, spec: { ...bounded.spec, containers } } };
}
