/** The source of a Stack: looked up where it is kept as state, never waited for. */
import type { NormalStack, Program, Source, Stack } from "@pko/api";
import { refKey, type Key, type Store } from "@pko/kube";
import { assertNever } from "@pko/rpc";

import type { FluxSources } from "../sources/flux-sources.ts";
import { readCredentials, type ReadSecret, type WorkspaceAuth } from "../sources/git-credentials.ts";
import type { GitPoller } from "../sources/git-poller.ts";
import { programView } from "../sources/program-source.ts";
import { unavailable, type SourceSpec, type SourceView } from "../sources/source-view.ts";
import { requestOf } from "./trigger.ts";

export interface SourceWorld {
  readonly programs: Store<Program>;
  readonly git: GitPoller;
  readonly flux: FluxSources;
}

interface SourceQuestion {
  readonly key: Key;
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly readSecret: ReadSecret;
}

export async function observeSource(world: SourceWorld, question: SourceQuestion): Promise<SourceView> {
  const { key, spec } = question;
  const { source, namespace } = spec;
  if (source.kind !== "git" || source.ref.kind === "commit") world.git.forget(key);
  if (source.kind !== "flux") world.flux.forget(key);
  switch (source.kind) {
    case "git":
      return await gitView(world, source, question);
    case "flux":
      return world.flux.follow(key, { namespace, ref: source.sourceRef, dir: source.dir });
    case "program":
      return programView(world.programs.get(refKey({ namespace, name: source.name })), source.name);
    case "local":
      return { kind: "ready", revision: "", aliases: [], spec: { local: { dir: source.dir } } };
    case "template":
      return { kind: "ready", revision: "", aliases: [], spec: {} };
    default:
      return assertNever(source);
  }
}

type GitSource = Extract<Source, { kind: "git" }>;

async function gitView(world: SourceWorld, source: GitSource, question: SourceQuestion): Promise<SourceView> {
  const { key, stack, spec, readSecret } = question;
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
    request: JSON.stringify([stack.metadata.generation, requestOf(stack)]),
  });
  switch (polled.kind) {
    case "pending":
      return { kind: "pending", what: `the first read of the repository ${withoutPassword(url)}` };
    case "found":
      return gitReady(source, polled.commit, access.auth);
    case "failed":
      return unavailable(polled.trouble, `the repository ${withoutPassword(url)}: ${polled.message}`);
    default:
      return assertNever(polled);
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
