/** The child Stack that previews a pull request. Pure. */
import { isDeepStrictEqual } from "node:util";
import {
  cancellationRequestAnnotation,
  nameLimit,
  previewOfLabel,
  previewSpec,
  pullRequestAnnotation,
  stackKind,
  type Stack,
  type StackSpec,
} from "@pko/api";
import { targetOf } from "@pko/forge";

import { textHash } from "../shared/digest.ts";
import { ownerReference } from "../shared/objects/owner-reference.ts";

/** A pull request at a commit. */
export interface Head {
  readonly number: number;
  readonly commit: string;
  /** The URL of the repository with the commit, if the repository of the Stack does not have it. */
  readonly projectRepo?: string;
}

/** A failure may be an accident, such as a lost node; a program that fails twice is reported. */
const maxFailures = 2;

/** `present`: the child as it is, if it exists. */
export function previewStack(parent: Stack, head: Head, present: Stack | undefined): Stack {
  const { apiVersion, kind } = stackKind;
  const { name = "", namespace = "" } = parent.metadata;
  const outdated = outdatedRun(present, head.commit);
  return {
    apiVersion,
    kind,
    metadata: {
      name: previewNameOf(name, head.number),
      namespace,
      labels: { [previewOfLabel]: name },
      annotations: {
        [pullRequestAnnotation]: String(head.number),
        ...(outdated !== undefined && { [cancellationRequestAnnotation]: outdated }),
      },
      ownerReferences: [
        ownerReference({ ...parent, apiVersion, kind }, { controller: true, blockOwnerDeletion: false }),
      ],
    },
    spec: {
      ...withPreviewInputs(previewSpec(parent.spec, { commit: head.commit }), parent.spec.pullRequests ?? {}),
      ...(head.projectRepo !== undefined && { projectRepo: head.projectRepo }),
      maxFailures,
      ...reportOf(parent.spec, head),
      ...(parent.spec.suspend && { suspend: true }),
    },
  };
}

/** A name that was shortened has a hash of the whole one: two Stacks with long names do not share it. */
export function previewNameOf(parent: string, number: number): string {
  const suffix = `-pr-${number}`;
  if (parent.length + suffix.length <= nameLimit) return `${parent}${suffix}`;
  const end = `-${textHash(parent, 6)}${suffix}`;
  return `${parent.slice(0, nameLimit - end.length).replace(/[.-]+$/, "")}${end}`;
}

/** To the forge of the pull request, unless the Stack reports somewhere else. */
export function reportSettings({ report, pullRequests = {} }: StackSpec): StackSpec["report"] {
  const { type, url, repository, secretRef } = pullRequests;
  if (report || !type || !secretRef) return report;
  return { type, secretRef, ...(url && { url }), ...(repository && { repository }) };
}

function reportOf(spec: StackSpec, { projectRepo }: Head): Pick<StackSpec, "report"> {
  const report = reportSettings(spec);
  if (!report) return {};
  // Otherwise, the repository would be derived from the URL, which is that of the fork.
  const target = projectRepo === undefined ? undefined : targetOf(report, spec.projectRepo || undefined);
  return { report: { ...report, ...(target && { repository: target.repository }) } };
}

/** The last two parts of a path. Without the beginning of a part, it takes quadratic time. */
const repositoryEnd = /(?<![^/:])[^/:]+\/[^/:]+?(\.git)?\/*$/;
const forkForm = /^[\w.~-]+\/[\w.~-]+$/;

/**
 * The URL of a fork, read like the repository of the Stack: over HTTPS or SSH, at the same host. Undefined if the forge reports a
 * name that no repository can have.
 */
export function forkURL(repository: string, fork: string): string | undefined {
  if (!forkForm.test(fork) || fork.includes("..")) return undefined;
  return repository.replace(repositoryEnd, (_, suffix: string | undefined) => `${fork}${suffix ?? ""}`);
}

/** The run of an earlier head: its result is of no use. */
function outdatedRun(present: Stack | undefined, commit: string): string | undefined {
  const { name, commit: running } = present?.status?.currentUpdate ?? {};
  return running !== undefined && running !== commit ? name : undefined;
}

type PreviewInputs = Pick<NonNullable<StackSpec["pullRequests"]>, "serviceAccountName" | "envRefs" | "environment">;

/** Inputs of previews replace those of the Stack: with both, the code of a pull request would still have the Stack's. */
function withPreviewInputs(spec: StackSpec, inputs: PreviewInputs): StackSpec {
  const { serviceAccountName, envRefs, environment } = inputs;
  const { envRefs: _, envs: _envs, envSecrets: _secrets, accessTokenSecret: _token, ...withoutEnv } = spec;
  return {
    ...(envRefs ? { ...withoutEnv, envRefs } : spec),
    ...(environment && { environment }),
    ...(serviceAccountName && {
      serviceAccountName,
      ...(spec.workspaceTemplate && { workspaceTemplate: withoutServiceAccount(spec.workspaceTemplate) }),
    }),
  };
}

type Template = NonNullable<StackSpec["workspaceTemplate"]>;

/** The template would take precedence over the service account of previews. */
function withoutServiceAccount(template: Template): Template {
  const { serviceAccountName: _, podTemplate, ...spec } = template.spec ?? {};
  if (!podTemplate) return { ...template, spec };
  const { serviceAccountName: _name, serviceAccount: _account, ...pod } = podTemplate.spec ?? {};
  return { ...template, spec: { ...spec, podTemplate: { ...podTemplate, spec: pod } } };
}

/** Whether the child is as it should be. */
export function isPreviewCurrent(present: Stack, wanted: Stack): boolean {
  const { annotations = {}, labels = {} } = present.metadata;
  const cancelled = wanted.metadata.annotations?.[cancellationRequestAnnotation];
  return (
    isDeepStrictEqual(present.spec, asJson(wanted.spec)) &&
    labels[previewOfLabel] === wanted.metadata.labels?.[previewOfLabel] &&
    annotations[pullRequestAnnotation] === wanted.metadata.annotations?.[pullRequestAnnotation] &&
    // People may request a cancellation, too, and an old request has no effect.
    (cancelled === undefined || annotations[cancellationRequestAnnotation] === cancelled)
  );
}

/** As the API server returns it. */
const asJson = (spec: StackSpec): unknown => JSON.parse(JSON.stringify(spec));
