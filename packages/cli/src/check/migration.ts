/** What behaves differently from the Go operator, by Stack: the list of docs/migration.md as pure rules. */
import { normalizeStack, pulumiContainer, type Stack, type StackSpec } from "@pko/api";

import { severities, type Severity, type StackDifference } from "../documents.ts";

type Difference = Omit<StackDifference, "namespace" | "name" | "severity">;

interface Migrated {
  readonly stack: Stack;
  readonly spec: StackSpec;
  /** All Stacks of the namespace, by name. */
  readonly others: ReadonlyMap<string, Stack>;
}

type Rule = (of: Migrated) => Difference | readonly Difference[] | undefined;

/**
 * "What stops a Stack" of docs/migration.md blocks, if its spec or its status proves it. What depends on an image, a
 * Secret or a script, which is not read, may block. Everything else on that page differs.
 */
const rules: Readonly<Record<Severity, readonly Rule[]>> = {
  blocks: [
    rejectedSpec, // this operator rejects the spec
    updateInProgress, // this operator cannot follow a run of the Go operator
    plainHttp, // http:// repositories are rejected by default
    forbiddenTemplate, // templates that violate their security profile are rejected
    previewedPrerequisite, // a previewed prerequisite is not deployed
  ],
  mayBlock: [
    unknownSshHost, // the key of the host must be in known_hosts
    initContainersWithSource, // init containers do not see the program
    customImage, // needs glibc, and git for a Git source
  ],
  differs: [
    advice, // this operator accepts the spec, and advises against a field
    continuedRetries, // retries continue after three failures
    refreshChanges, // expectNoRefreshChanges works
    sameArtifact, // content with the same digest is not deployed again
    changedValues, // a changed Secret or ConfigMap triggers an update
    fileBackend, // the pod is kept, and its state is at risk
    verboseLog, // from level 9 on, the verbose log stays in the pod
    longOutputs, // long outputs are only in the Secret
  ],
};

/** Everything that differs for these Stacks: what blocks first, then by Stack. */
export function migrationDifferences(stacks: readonly Stack[]): StackDifference[] {
  const sorted = stacks.toSorted((a, b) => idOf(a).localeCompare(idOf(b)));
  const namespaces = Map.groupBy(sorted, ({ metadata }) => metadata.namespace ?? "");
  const migrated = [...namespaces.values()].flatMap(migratedStacks);
  return severities.flatMap((severity) => migrated.flatMap((each) => differencesOf(each, severity)));
}

const idOf = ({ metadata }: Stack): string => `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;

/** Of the Stacks of one namespace. */
function migratedStacks(stacks: readonly Stack[]): Migrated[] {
  const others = new Map(stacks.map((each) => [each.metadata.name ?? "", each]));
  return stacks.map((stack) => ({ stack, spec: stack.spec, others }));
}

function differencesOf(migrated: Migrated, severity: Severity): StackDifference[] {
  const { namespace = "", name = "" } = migrated.stack.metadata;
  const found = rules[severity].flatMap((rule) => rule(migrated) ?? []);
  return found.map((difference) => Object.assign({ severity, namespace, name }, difference));
}

function rejectedSpec({ stack }: Migrated): Difference[] {
  const normal = normalizeStack(stack);
  const problems = normal.ok ? [] : normal.problems;
  return problems.map(({ field, message, remedy }) => ({
    field,
    message: `the Stack is rejected: ${message}`,
    fix: remedy,
  }));
}

function advice({ stack }: Migrated): Difference[] {
  return normalizeStack(stack).advice.map(({ field, message, remedy }) => ({ field, message, fix: remedy }));
}

function updateInProgress({ stack }: Migrated): Difference | undefined {
  const update = stack.status?.currentUpdate?.name;
  return update === undefined
    ? undefined
    : {
        field: "status.currentUpdate",
        message: `Update ${update} is running; it would be reported as Aborted and retried`,
        fix: "wait until it has finished before you migrate",
      };
}

const plainHttpUrl = /^http:\/\//i;

function plainHttp({ spec }: Migrated): Difference | undefined {
  return plainHttpUrl.test(spec.projectRepo ?? "")
    ? {
        field: "spec.projectRepo",
        message: "plain http is rejected by default",
        fix: "use https, or set the chart value git.allowHttp",
      }
    : undefined;
}

const knownHosts: ReadonlySet<string> = new Set(["github.com", "gitlab.com", "bitbucket.org"]);

/** ssh://USER@HOST/PATH or USER@HOST:PATH, each also without the user. */
const sshForms = [/^ssh:\/\/(?:[^@/]*@)?([^:/]+)/i, /^(?!https?:)(?:[^@/:]+@)?([^@/:]+):(?!\/\/)/i];

function unknownSshHost({ spec }: Migrated): Difference | undefined {
  const [host] = sshForms.flatMap((form) => form.exec(spec.projectRepo ?? "")?.[1]?.toLowerCase() ?? []);
  return host !== undefined && !knownHosts.has(host)
    ? {
        field: "spec.gitAuth",
        message: `the SSH key of ${host} must be known`,
        fix: "add known_hosts to the Secret of the SSH key",
      }
    : undefined;
}

const podSpecOf = ({ workspaceTemplate }: StackSpec): Record<string, unknown> => ({
  ...workspaceTemplate?.spec?.podTemplate?.spec,
});
const listAt = (value: Record<string, unknown>, key: string): Record<string, unknown>[] =>
  Array.isArray(value[key]) ? (value[key] as Record<string, unknown>[]) : [];

function initContainersWithSource({ spec }: Migrated): Difference | undefined {
  const own = spec.workspaceTemplate?.spec?.initContainers ?? [];
  const hasContainers = own.length > 0 || listAt(podSpecOf(spec), "initContainers").length > 0;
  const hasSource = Boolean(spec.projectRepo ?? spec.fluxSource ?? spec.programRef);
  return hasContainers && hasSource
    ? {
        field: "spec.workspaceTemplate.spec.podTemplate.spec.initContainers",
        message: "init containers run before the program is fetched, and do not see it",
        fix: "do in the program, or in the image, what needs the program",
      }
    : undefined;
}

function customImage({ spec }: Migrated): Difference | undefined {
  const inPod = listAt(podSpecOf(spec), "containers").some(({ name, image }) => name === pulumiContainer && image);
  const field = inPod ? "podTemplate.spec.containers" : spec.workspaceTemplate?.spec?.image && "image";
  return field
    ? {
        field: `spec.workspaceTemplate.spec.${field}`,
        message: `the image needs glibc${spec.projectRepo ? ", and git" : ""}`,
        fix: "check the image: see docs/workspaces.md",
      }
    : undefined;
}

const hostFields = ["hostNetwork", "hostPID", "hostIPC"] as const;

interface Identity {
  readonly privileged?: boolean;
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
}

const identityOf = ({ securityContext }: Record<string, unknown>): Identity => securityContext ?? {};

/** The violations that are likely; the operator checks every rule of the profile. */
function forbiddenTemplate({ spec }: Migrated): Difference | undefined {
  const { securityProfile, initContainers = [] } = spec.workspaceTemplate?.spec ?? {};
  const pod = podSpecOf(spec);
  const containers = [...initContainers, ...listAt(pod, "initContainers"), ...listAt(pod, "containers")];
  const identities = [pod, ...containers].map((each) => identityOf({ ...each }));
  const isRoot = identities.some(({ runAsUser, runAsNonRoot }) => runAsUser === 0 || runAsNonRoot === false);
  const [what] = [
    ...hostFields.filter((name) => pod[name] === true),
    ...(listAt(pod, "volumes").some(({ hostPath }) => hostPath !== undefined) ? ["a hostPath volume"] : []),
    ...(identities.some(({ privileged }) => privileged) ? ["a privileged container"] : []),
    ...(isRoot && securityProfile !== "baseline" ? ["running as root"] : []),
  ];
  return what === undefined
    ? undefined
    : {
        field: "spec.workspaceTemplate.spec.podTemplate.spec",
        message: `${what} violates the security profile, and the pod is rejected`,
        fix: "change the template, or set the chart value workspace.enforceSecurityProfile to false",
      };
}

function fileBackend({ spec }: Migrated): Difference | undefined {
  return spec.backend?.startsWith("file://") && listAt(podSpecOf(spec), "volumes").length === 0
    ? {
        field: "spec.backend",
        message: "no volume keeps the state: the pod is never scaled to zero, and the Workspace warns",
        fix: "mount a volume: see docs/backends.md",
      }
    : undefined;
}

const unmaskedLevel = 9;

function verboseLog({ spec }: Migrated): Difference | undefined {
  return (spec.workspaceTemplate?.spec?.pulumiLogLevel ?? 0) >= unmaskedLevel
    ? {
        field: "spec.workspaceTemplate.spec.pulumiLogLevel",
        message: "the verbose log stays in a file in the pod, because it cannot be masked",
        fix: "read it with kubectl exec, or set 8 or less",
      }
    : undefined;
}

const stallingFailures = 3;

function continuedRetries({ stack }: Migrated): Difference | undefined {
  const { state, failures = 0 } = stack.status?.lastUpdate ?? {};
  return state === "failed" && failures >= stallingFailures
    ? {
        field: "status.lastUpdate.failures",
        message: "the Go operator has stopped retrying; this operator retries with backoff",
        fix: "fix the program first, or suspend all Stacks during the switch: see docs/migration.md",
      }
    : undefined;
}

function refreshChanges({ spec }: Migrated): Difference | undefined {
  return spec.refresh && spec.expectNoRefreshChanges
    ? {
        field: "spec.expectNoRefreshChanges",
        message: "an update stops if the refresh finds changes; the Go operator ignores the field",
        fix: "remove the field to keep the behavior",
      }
    : undefined;
}

function previewedPrerequisite({ stack, spec, others }: Migrated): Difference | undefined {
  if (spec.preview) return undefined;
  const normal = normalizeStack(stack);
  const names = normal.ok ? normal.value.prerequisites.map((each) => each.stack) : [];
  const previewed = names.find((name) => others.get(name)?.spec.preview);
  return previewed === undefined
    ? undefined
    : {
        field: "spec.prerequisites",
        message: `Stack ${previewed} is only previewed, so this Stack waits until it is deployed`,
        fix: `set preview to false in Stack ${previewed}, or remove the prerequisite`,
      };
}

function sameArtifact({ spec }: Migrated): Difference | undefined {
  return spec.fluxSource
    ? {
        field: "spec.fluxSource",
        message: "an artifact with another revision and the same digest triggers no update",
        fix: "nothing, unless you rely on such updates",
      }
    : undefined;
}

function changedValues({ spec }: Migrated): Difference | undefined {
  const field = (["configRef", "configRefs", "secretsRef"] as const).find((name) => spec[name] !== undefined);
  return field === undefined
    ? undefined
    : {
        field: `spec.${field}`,
        message: "a changed value in a Secret or ConfigMap triggers an update, usually within a minute",
        fix: "nothing, unless you rely on the opposite",
      };
}

const longestOutput = 16 * 1024;

function longOutputs({ stack }: Migrated): Difference | undefined {
  const long = Object.entries(stack.status?.outputs ?? {}).find(
    ([, value]) => JSON.stringify(value).length > longestOutput,
  );
  return long === undefined
    ? undefined
    : {
        field: `status.outputs.${long[0]}`,
        message: "the output is longer than 16 KiB, so the status shows [too long]",
        fix: "read it from the Secret STACK-outputs",
      };
}
