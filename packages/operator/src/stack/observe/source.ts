/**
 * The source of a Stack, as last read. Reading it registers the Stack with the poller of its repository, or with the watch of
 * its Flux object, which reconciles the Stack when the revision changes. Nothing here waits for a repository.
 */
import type { NormalStack, Program, Source, Stack } from "@pko/api";
import { refKey, type Key, type Store } from "@pko/kube";

import type { FluxSources } from "../../sources/flux-sources.ts";
import { readCredentials, type ReadSecret, type WorkspaceAuth } from "../../sources/git-credentials.ts";
import type { GitPoller } from "../../sources/git-poller.ts";
import { programView } from "../../sources/program-source.ts";
import { unavailable, type SourceSpec, type SourceView } from "../../sources/source-view.ts";
import { reconcileRequestOf } from "../history/trigger.ts";
import * as messages from "../messages.ts";

export interface SourceWorld {
  readonly programs: Store<Program>;
  readonly git: GitPoller;
  readonly flux: FluxSources;
}

interface SourceContext {
  readonly key: Key;
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly readSecret: ReadSecret;
}

export async function observeSource(world: SourceWorld, context: SourceContext): Promise<SourceView> {
  const { key, spec } = context;
  const { source, namespace } = spec;
  if (source.kind !== "git" || source.ref.kind === "commit") world.git.forget(key);
  if (source.kind !== "flux") world.flux.forget(key);
  switch (source.kind) {
    case "git":
      return await gitView(world, source, context);
    case "flux":
      return world.flux.follow(key, { namespace, ref: source.sourceRef, dir: source.dir });
    case "program":
      return programView(world.programs.get(refKey({ namespace, name: source.name })), source.name);
    case "local":
      return { kind: "ready", revision: "", aliases: [], spec: { local: { dir: source.dir } } };
    case "template":
      return { kind: "ready", revision: "", aliases: [], spec: {} };
  }
}

type GitSource = Extract<Source, { kind: "git" }>;

async function gitView(world: SourceWorld, source: GitSource, context: SourceContext): Promise<SourceView> {
  const { key, stack, spec, readSecret } = context;
  const { url } = source.repository;
  const access = await readCredentials(source.auth, readSecret);
  if (access.kind === "missing") return unavailable("auth", access.message);
  if (source.ref.kind === "commit") return gitReady(source, source.ref.sha, access.auth);
  const polled = world.git.follow(key, {
    url,
    credentials: access.credentials,
    ...(access.ca !== undefined && { ca: access.ca }),
    ref: source.ref,
    everyMs: spec.resync.everyMs,
    request: JSON.stringify([stack.metadata.generation, reconcileRequestOf(stack)]),
  });
  switch (polled.kind) {
    case "pending":
      return { kind: "pending", what: messages.firstCheck(withoutPassword(url)) };
    case "found":
      return gitReady(source, polled.commit, access.auth);
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

function withoutPassword(url: string): string {
  return url.replace(/^(\w+:\/\/)[^@/]*@/, "$1");
}
