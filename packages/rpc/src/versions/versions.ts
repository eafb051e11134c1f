/**
 * The versions of the protocol: which one an operator and an agent use, and how requests are translated between them.
 * Both sides support their own version and the previous one, so either may be one version ahead of the other.
 *
 *   operator 2 ── /v1/info ──▶ agent      { protocol }: both use the older of 2 and `protocol`
 *   operator 2 ── /v2/start ─▶ agent 2, 3
 *   operator 2 ── /v1/start ─▶ agent 1    the operator translates the request down
 *   operator 1 ── /v1/start ─▶ agent 2    the agent translates the request up and its answers down
 */
import type { TSchema } from "typebox";
import { Clean } from "typebox/value";
import { checkValue } from "../json/check.ts";
import type { StartRequest } from "../run.ts";
import type { PrepareRequest } from "../source.ts";
import { PrepareRequestV1, StartRequestV1, vocabularyV1 } from "./v1.ts";
import { currentVocabulary, type Vocabulary } from "./vocabulary.ts";

export const contractVersions = [1, 2] as const;
export type ContractVersion = (typeof contractVersions)[number];

/** The current version. Before you change the protocol, freeze it: test/skew/README.md. */
export const protocolVersion = 2 satisfies ContractVersion;

/** The newest version that both sides support; undefined for an agent that is too old. */
export function agreedVersion(agentProtocol: number): ContractVersion | undefined {
  return contractVersions.findLast((version) => version <= agentProtocol);
}

/** The operator reads `info` before it knows the agent's version, so its answer is the same in all versions. */
export const infoVersion: ContractVersion = 1;

export const vocabularies: Readonly<Record<ContractVersion, Vocabulary>> = { 1: vocabularyV1, 2: currentVocabulary };

/** A request in an older version, or why that version does not support it. */
export type Translated =
  { readonly ok: true; readonly request: object } | { readonly ok: false; readonly message: string };

const olderAgent = "the agent in the workspace's pod is older than the operator";
const remedy =
  "the operator replaces the pod when no run is active in it; if the agent's image tag has not changed, delete the pod";

export function prepareIn(version: ContractVersion, request: PrepareRequest): Translated {
  if (version === protocolVersion) return { ok: true, request };
  const { stacks, source, knownClis: _, origin: __, ...rest } = request;
  const [stack, ...others] = stacks;
  if (!stack || others.length > 0) {
    return { ok: false, message: `${olderAgent} and supports exactly one stack per Workspace; ${remedy}` };
  }
  return checked(PrepareRequestV1, { ...rest, source: withoutComparison(source), stack });
}

/** An agent of version 1 compares no commits. What has changed is then not known, and the update runs. */
function withoutComparison(source: PrepareRequest["source"]): PrepareRequest["source"] {
  if (source.kind !== "git") return source;
  const { compareWith: _, ...rest } = source;
  return rest;
}

/**
 * In version 1 a run uses the prepared stack. Lost runs are omitted: an agent of version 1 breaks locks by time alone, and
 * a run in another cluster may have acquired the lock at that time. Its origin is omitted as well, because nothing depends on it. An agent
 * of version 1 does not name its preparations.
 */
export function startIn(version: ContractVersion, request: StartRequest): Translated {
  if (version === protocolVersion) return { ok: true, request };
  const { stack: _, lostRuns: __, origin: ___, preparation: ____, ...rest } = request;
  return checked(StartRequestV1, rest);
}

/**
 * Why a run on `stack` must not start in an agent of version 1 that has another stack prepared. That agent reports the
 * name as it was requested, so whether `dev` and `acme/dev` are the same stack is unknown.
 */
export function wrongStack(stack: string, prepared: string | undefined): string | undefined {
  const isSame = prepared === undefined || prepared === stack;
  return isSame ? undefined : `${olderAgent} and can run only the stack ${prepared}, not ${stack}; ${remedy}`;
}

export function tooOld(agentProtocol: number): string {
  return `the agent in the workspace's pod uses version ${agentProtocol} of the protocol, which the operator no longer supports; ${remedy}`;
}

/** Rejects a request with fields that version 1 lacks: without them the operation could do more than requested. */
function checked(schema: TSchema, request: object): Translated {
  const valid = checkValue(schema, request);
  if (valid.ok) return { ok: true, request };
  const what = unknownField(request, Clean(schema, structuredClone(request))) ?? `this request (${valid.problem})`;
  return { ok: false, message: `${olderAgent} and does not support ${what}; ${remedy}` };
}

/** The path of the first field that `known` lacks. */
function unknownField(value: unknown, known: unknown): string | undefined {
  if (typeof value !== "object" || value === null || typeof known !== "object" || known === null) return undefined;
  const others = new Map<string, unknown>(Object.entries(known));
  for (const [field, inner] of Object.entries(value)) {
    if (!others.has(field)) return field;
    const below = unknownField(inner, others.get(field));
    if (below !== undefined) return `${field}.${below}`;
  }
  return undefined;
}

/** Translates a request of an operator of version 1 to the current version. */
export function prepareFromV1({ stack, ...rest }: PrepareRequestV1): PrepareRequest {
  return { ...rest, stacks: [stack] };
}
