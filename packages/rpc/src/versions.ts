/**
 * The versions of the contract: which one an operator and an agent use with each other, and how a request reads in each.
 * Both ends speak their own version and the one before, so neighbors understand each other whichever is the newer one.
 *
 *   operator 2 ── /v1/info ──▶ agent      { protocol }: both use the older of 2 and `protocol`
 *   operator 2 ── /v2/start ─▶ agent 2, 3
 *   operator 2 ── /v1/start ─▶ agent 1    the operator translates the request down
 *   operator 1 ── /v1/start ─▶ agent 2    the agent translates the request up, and its answers into version 1's words
 */
import type { TSchema } from "typebox";
import { Clean } from "typebox/value";
import { checkValue } from "./check.ts";
import type { StartRequest } from "./run.ts";
import type { PrepareRequest } from "./source.ts";
import { PrepareRequestV1, StartRequestV1, vocabularyV1 } from "./v1.ts";
import { vocabulary, type Vocabulary } from "./vocabulary.ts";

export const contractVersions = [1, 2] as const;
export type ContractVersion = (typeof contractVersions)[number];

/** This version. Freeze it before you change it: test/skew/README.md. */
export const protocolVersion = 2 satisfies ContractVersion;

/** The newest version that both ends speak; undefined for an agent that is too old. */
export function agreedVersion(agentProtocol: number): ContractVersion | undefined {
  return contractVersions.findLast((version) => version <= agentProtocol);
}

/** The answer to `info` is the same in all versions: it is asked for before the version is known. */
export const infoVersion: ContractVersion = 1;

export const vocabularies: Readonly<Record<ContractVersion, Vocabulary>> = { 1: vocabularyV1, 2: vocabulary };

/** A request in some version, or why that version has no such request. */
export type Translated =
  { readonly ok: true; readonly request: object } | { readonly ok: false; readonly message: string };

const olderAgent = "the agent in the workspace's pod is of an older version than the operator";
const remedy =
  "the operator replaces the pod once nothing runs in it; if the agent's image tag has not changed, delete the pod";

export function prepareIn(version: ContractVersion, request: PrepareRequest): Translated {
  if (version === protocolVersion) return { ok: true, request };
  const { stacks, ...rest } = request;
  const [stack, ...others] = stacks;
  if (!stack || others.length > 0) {
    return { ok: false, message: `${olderAgent} and supports exactly one stack per Workspace; ${remedy}` };
  }
  return fitting(PrepareRequestV1, { ...rest, stack });
}

/**
 * In version 1 the stack is the prepared one. Lost runs are left out: an agent of version 1 breaks locks by the time at
 * which those ran, and at that time a run of another cluster may have taken the lock.
 */
export function startIn(version: ContractVersion, request: StartRequest): Translated {
  if (version === protocolVersion) return { ok: true, request };
  const { stack: _, lostRuns: __, ...rest } = request;
  return fitting(StartRequestV1, rest);
}

/**
 * Why a run on `stack` must not start at an agent of version 1 that has another stack prepared. That agent reports the name
 * as it was requested, and nothing tells whether `dev` and `acme/dev` are the same stack.
 */
export function wrongStack(stack: string, prepared: string | undefined): string | undefined {
  const isSame = prepared === undefined || prepared === stack;
  return isSame ? undefined : `${olderAgent} and works only on the stack ${prepared}, not on ${stack}; ${remedy}`;
}

export function tooOld(agentProtocol: number): string {
  return `the agent in the workspace's pod speaks version ${agentProtocol} of the contract, which is older than the operator supports; ${remedy}`;
}

/** A field that version 1 does not have is not dropped: the operation could do more than it was asked to. */
function fitting(schema: TSchema, request: object): Translated {
  const checked = checkValue(schema, request);
  if (checked.ok) return { ok: true, request };
  const what = unknownField(request, Clean(schema, structuredClone(request))) ?? `this request (${checked.problem})`;
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

/** A request of an operator of version 1 in ours. */
export function prepareFromV1({ stack, ...rest }: PrepareRequestV1): PrepareRequest {
  return { ...rest, stacks: [stack] };
}
