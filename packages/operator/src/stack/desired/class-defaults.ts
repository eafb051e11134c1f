/** The defaults of a WorkspaceClass for the Workspaces of Stacks. Pure. */
import type { JsonObject, WorkspaceClassSpec } from "@pko/api";

export interface ClassDefaults {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: JsonObject;
}

export const noDefaults: ClassDefaults = { labels: {}, annotations: {}, spec: {} };

/** As in a Stack's workspaceTemplate, all init containers are in podTemplate. */
export function classDefaults({ template = {} }: WorkspaceClassSpec): ClassDefaults {
  const { metadata, spec: { initContainers, ...spec } = {} } = template;
  const { podTemplate } = spec;
  const all = [...(podTemplate?.spec?.initContainers ?? []), ...(initContainers ?? [])];
  const pod = all.length > 0 && {
    podTemplate: { ...podTemplate, spec: { ...podTemplate?.spec, initContainers: all } },
  };
  return {
    labels: metadata?.labels ?? {},
    annotations: metadata?.annotations ?? {},
    spec: JSON.parse(JSON.stringify({ ...spec, ...pod })) as JsonObject,
  };
}
