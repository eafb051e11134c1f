/**
 * How the agent gets into the container of the user's image: `bootstrap` copies it to the shared volume. Pure.
 *
 *   as an init container     The container `pulumi` starts afterwards. The kubelet notices the end of an init container at
 *                            its next check, up to a second later.
 *   as a helper container    The container `pulumi` starts at the same time, and its shell waits for the agent. This is
 *                            faster (docs/adr/0025-helper-container.md), but not always possible.
 */
import { bootstrapContainer, pulumiContainer, shareVolume, type NormalWorkspace } from "@pko/api";
import { isRecord } from "@pko/rpc";
import type { Container, Pod, PodTemplateSpec } from "kubernetes-types/core/v1";

const shell = "/bin/sh";
/** The exit code of a shell that lacks a program. */
const notFound = 127;
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container";

/**
 * $0 is the agent's path. The shell checks less and less often, because each `sleep` is a process, and many pods may start at
 * the same time. Not every `sleep` accepts fractions. An image without `sleep` must not keep a CPU busy: the shell ends, and
 * the image counts as one without a shell. The shell is PID 1, which ignores SIGTERM without a trap.
 */
const waitForAgent = [
  "trap 'exit 143' TERM",
  `pause() { sleep $1 2>/dev/null || sleep 1 2>/dev/null || [ -x "$0" ] || exit ${notFound}; }`,
  'for t in 0.02 0.03 0.05 0.05 0.1 0.1; do [ -x "$0" ] || pause $t; done',
  'until [ -x "$0" ]; do pause 0.25; done',
  'exec "$0" "$@"',
].join("; ");

/**
 * A restarted helper replaces only a copy of which a node that lost power kept a part. Afterwards it only waits for the end
 * of the pod.
 */
const installAndWait = [
  "trap 'exit 0' TERM",
  'if [ -x "$0" ]; then /agent repair "$0"; else /agent install "$0" "$@" || exit; fi',
  "sleep infinity & wait",
].join("; ");

/** Undefined if `bootstrap` must remain an init container. */
export function withHelperContainer(
  template: PodTemplateSpec,
  { podTemplate }: Pick<NormalWorkspace, "podTemplate">,
): PodTemplateSpec | undefined {
  const { metadata, spec } = template;
  const [bootstrap, ...others] = spec?.initContainers ?? [];
  if (!spec || !bootstrap || others.length > 0 || isPatched(podTemplate) || !isNewWithPod(template)) return undefined;
  if (isLimited(bootstrap)) return undefined;
  const pulumi = spec.containers.find(({ name }) => name === pulumiContainer);
  if (!pulumi || pulumi.command?.[0] !== agentPathIn(bootstrap) || hasEarlyChecks(pulumi)) return undefined;
  const { initContainers: _, containers, ...rest } = spec;
  const waiting = containers.map((each) => (each === pulumi ? waitingForAgent(each) : each));
  const annotations = { [defaultContainerAnnotation]: pulumiContainer, ...metadata?.annotations };
  return {
    ...template,
    metadata: { ...metadata, annotations },
    // The kubelet starts containers in this order.
    spec: { ...rest, containers: [helper(bootstrap), ...waiting] },
  };
}

const agentPathIn = ({ command = [] }: Container): string | undefined => command[2];

/** Probes and hooks of a template would run before the agent exists. */
const hasEarlyChecks = ({ livenessProbe, startupProbe, lifecycle }: Container): boolean =>
  Boolean(livenessProbe ?? startupProbe ?? lifecycle);

function helper(bootstrap: Container): Container {
  const { command = [] } = bootstrap;
  return {
    ...bootstrap,
    command: [shell, "-c", installAndWait, ...command.slice(2)],
    // Not unset: a LimitRange could set more, and a quota requires a value.
    resources: { requests: { cpu: "0", memory: "0" } },
  };
}

const waitingForAgent = (container: Container): Container => ({
  ...container,
  command: [shell, "-c", waitForAgent, ...(container.command ?? [])],
});

/** A template that changes `bootstrap` names it in its init containers. */
function isPatched({ spec }: NormalWorkspace["podTemplate"]): boolean {
  const patches: unknown = isRecord(spec) ? spec["initContainers"] : undefined;
  return Array.isArray(patches) && patches.some((each) => isRecord(each) && each["name"] === bootstrapContainer);
}

/** By a WorkspaceClass, for the pod as a whole. A helper would take a part of it from `pulumi` as long as the pod exists. */
const isLimited = ({ resources }: Container): boolean => Object.keys(resources?.limits ?? {}).length > 0;

/** An agent of an earlier pod, or a dangling link to its program, would be found before `bootstrap` replaces it. */
const isNewWithPod = ({ spec }: PodTemplateSpec): boolean =>
  spec?.volumes?.some(({ name, emptyDir }) => name === shareVolume && emptyDir) ?? false;

/** The image of the pod if it cannot be started, because it has no shell, or no `sleep`, to wait for the agent. */
export function imageWithoutShell({ spec, status }: Pick<Pod, "spec" | "status">): string | undefined {
  const container = spec?.containers.find(({ name }) => name === pulumiContainer);
  if (container?.command?.[0] !== shell) return undefined;
  const { state, lastState } = status?.containerStatuses?.find(({ name }) => name === pulumiContainer) ?? {};
  const ends = [state?.terminated, lastState?.terminated];
  const errors = [
    state?.waiting?.message,
    ...ends.filter((end) => end?.reason === startError).map((end) => end?.message),
  ];
  const isMissing =
    ends.some((end) => end?.exitCode === notFound) ||
    errors.some((error) => error !== undefined && isShellMissing(error));
  return isMissing ? container.image : undefined;
}

/** The reason for a container whose command could not be started. */
const startError = "StartError";

const isShellMissing = (error: string): boolean =>
  error.includes(shell) && /no such file|not found|permission denied/i.test(error);
