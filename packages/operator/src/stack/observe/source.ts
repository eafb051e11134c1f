/**
 * The source of a Stack, as last read. Nothing here waits for a repository: at the end of the pass the Stack follows what it has
 * read (`followSource`), and is reconciled when the revision changes.
 */
import { withoutPassword, type NormalStack, type Program, type Source, type Stack } from "@pko/api";
import { globSelector } from "@pko/git";
import { refKey, type Key, type Store } from "@pko/kube";

import type { FluxSources } from "../../sources/flux-sources.ts";
import { readCredentials, type ReadSecret, type WorkspaceAuth } from "../../sources/git-credentials.ts";
import type { GitFollow, GitPoller, GitPollResult } from "../../sources/git-poller.ts";
import type { GitRemote } from "../../sources/git-remote.ts";
import type { Comparison, PathComparisons } from "../../sources/path-comparisons.ts";
import { programView } from "../../sources/program-source.ts";
import { unavailable, type SourceSpec, type SourceView } from "../../sources/source-view.ts";
import { contentOfPlan } from "../history/planned-content.ts";
import { neededComparison } from "../history/skipped-commit.ts";
import { reconcileRequestOf } from "../history/trigger.ts";
import * as messages from "../messages.ts";
import type { StackView } from "../view.ts";

export interface SourceWorld {
  readonly programs: Store<Program>;
  readonly git: Pick<GitPoller, "latest">;
  readonly flux: Pick<FluxSources, "latest">;
  readonly comparisons: Pick<PathComparisons, "latest">;
}

interface SourceContext {
  readonly key: Key;
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly readSecret: ReadSecret;
}

type Observed = Pick<StackView, "source" | "followed">;

export async function observeSource(world: SourceWorld, context: SourceContext): Promise<Observed> {
  const { source, namespace } = context.spec;
  switch (source.kind) {
    case "git":
      return await observeGit(world, source, context);
    case "flux": {
      const wanted = { namespace, ref: source.sourceRef, dir: source.dir };
      const seen = world.flux.latest(wanted);
      return { source: seen, followed: { kind: "flux", wanted, seen } };
    }
    case "program":
      return { source: programView(world.programs.get(refKey({ namespace, name: source.name })), source.name) };
    case "local":
      return { source: { kind: "ready", revision: "", aliases: [], spec: { local: { dir: source.dir } } } };
    case "template":
      return { source: { kind: "ready", revision: "", aliases: [], spec: {} } };
  }
}

type GitSource = Extract<Source, { kind: "git" }>;

async function observeGit(world: SourceWorld, source: GitSource, context: SourceContext): Promise<Observed> {
  const { key, stack, spec, readSecret } = context;
  const { url } = source.repository;
  const access = await readCredentials(source.auth, readSecret);
  if (access.kind === "missing") return { source: unavailable("auth", access.message) };
  if (source.ref.kind === "commit") return { source: gitReady(source, source.ref.sha, access.auth) };
  const wanted: GitFollow = {
    url,
    credentials: access.credentials,
    ...(access.ca !== undefined && { ca: access.ca }),
    ref: source.ref,
    everyMs: spec.resync.everyMs,
    request: JSON.stringify([stack.metadata.generation, reconcileRequestOf(stack)]),
  };
  const seen = world.git.latest(key, wanted);
  const view = gitView(source, seen, access.auth);
  const { source: compared, comparisons } = observeContent(world, view, { stack, source, remote: remoteOf(wanted) });
  return { source: compared, followed: { kind: "git", wanted, seen, comparisons } };
}

const remoteOf = ({ url, credentials, ca }: GitRemote): GitRemote => ({
  url,
  credentials,
  ...(ca !== undefined && { ca }),
});

interface Compared {
  readonly stack: Stack;
  readonly source: GitSource;
  readonly remote: GitRemote;
}

interface ComparedSource {
  readonly source: SourceView;
  readonly comparisons: readonly Comparison[];
}

type ReadySource = Extract<SourceView, { kind: "ready" }>;

/** An old plan says nothing about what is deployed, so the commit is compared with both. */
function observeContent(world: SourceWorld, view: SourceView, compared: Compared): ComparedSource {
  if (view.kind !== "ready") return { source: view, comparisons: [] };
  const { comparisons, ...content } = observePlanned(world, view, compared);
  const changed = observeChanges(world, view, compared);
  const all = [...comparisons, ...changed.comparisons];
  if (changed.source.kind !== "ready") return { source: changed.source, comparisons: all };
  return { source: { ...changed.source, ...content }, comparisons: all };
}

interface PlannedContent extends Pick<ReadySource, "contentOfPlan" | "contentProblem"> {
  readonly comparisons: readonly Comparison[];
}

/** What cannot be compared has another content. */
function observePlanned(
  { comparisons }: SourceWorld,
  { revision }: ReadySource,
  { stack, source, remote }: Compared,
): PlannedContent {
  const needed = contentOfPlan(stack, revision);
  switch (needed.kind) {
    case "noPlan":
      return { comparisons: [] };
    case "same":
      return { contentOfPlan: "same", comparisons: [] };
    case "commits": {
      const comparison = { ...remote, ...needed.pair };
      const followed = { comparisons: [comparison] };
      const result = comparisons.latest(comparison);
      if (!result) return { ...followed, contentOfPlan: "uncompared" };
      if (result.kind === "unreachable")
        return { ...followed, contentOfPlan: "uncompared", contentProblem: result.reason };
      if (result.kind === "unknown") return { ...followed, contentProblem: result.reason };
      const isSame = !result.paths.some(globSelector(source.pathFilters));
      return { ...followed, ...(isSame && { contentOfPlan: "same" }) };
    }
  }
}

/** With path filters, the source is pending until the commit has been compared. What the operator cannot compare, the agent does. */
function observeChanges(
  { comparisons }: SourceWorld,
  view: ReadySource,
  { stack, source, remote }: Compared,
): ComparedSource {
  if (source.pathFilters.length === 0) return { source: view, comparisons: [] };
  const needed = neededComparison(stack, view.revision);
  switch (needed.kind) {
    case "none":
      return { source: view, comparisons: [] };
    case "known":
      return { source: { ...view, changes: needed.changes }, comparisons: [] };
    case "commits": {
      const comparison = { ...remote, ...needed.pair };
      const followed = [comparison];
      const result = comparisons.latest(comparison);
      if (!result)
        return { source: { kind: "pending", what: messages.comparing(view.revision) }, comparisons: followed };
      const pathFilters = [...source.pathFilters];
      if (result.kind !== "compared") {
        const uncompared = { since: needed.since, compareWith: { commit: needed.pair.from, pathFilters } };
        return { source: { ...view, uncompared }, comparisons: followed };
      }
      const paths = result.paths.filter(globSelector(pathFilters));
      return { source: { ...view, changes: { since: needed.since, paths } }, comparisons: followed };
    }
  }
}

function gitView(source: GitSource, polled: GitPollResult, auth: WorkspaceAuth): SourceView {
  const { url } = source.repository;
  switch (polled.kind) {
    case "pending":
      return { kind: "pending", what: messages.firstCheck(withoutPassword(url)) };
    case "found":
      return gitReady(source, polled.commit, auth);
    case "failed":
      return unavailable(polled.problem, messages.repositoryFailed(withoutPassword(url), polled.message));
  }
}

function gitReady({ repository, dir, shallow }: GitSource, commit: string, auth: WorkspaceAuth): SourceView {
  const git: SourceSpec["git"] = {
    url: repository.url,
    ref: commit,
    ...(dir && { dir }),
    ...(Object.keys(auth).length > 0 && { auth }),
    ...(shallow && { shallow }),
  };
  return { kind: "ready", revision: commit, aliases: [], spec: { git } };
}
