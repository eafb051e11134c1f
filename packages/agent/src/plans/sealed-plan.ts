/**
 * A plan with everything that it depends on. The operator stores it without reading it, and passes it to the agent that
 * applies it, possibly in another pod. Its digest is what people approve.
 *
 * Inputs contain secrets, so the plan has only keyed hashes of them. The key is in the plan, which is stored in a Secret:
 * it keeps equal inputs of different plans from having equal hashes, and the digest, which everyone can read, from being
 * a hash of the inputs alone.
 */
import { createHmac, randomBytes } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { canonicalJson, checkValue, maxPlanChars, type SealedPlan } from "@pko/rpc";
import { Type, type Static } from "typebox";
import { textDigest } from "../system/digest.ts";

/** Keyed hashes of what a plan depends on. */
export const Bindings = Type.Object({
  /** The backend, the project and the stack. */
  target: Type.String(),
  program: Type.String(),
  /** What the operation does, with its options. */
  options: Type.String(),
  /** Configuration and environment, including secrets. */
  inputs: Type.String(),
  image: Type.String(),
  cli: Type.String(),
  /** How the stack's secrets are encrypted. */
  stackKey: Type.String(),
  /** The stack's state. */
  state: Type.String(),
  /** When an update last wrote the state; absent for a new stack. Not hashed, because messages contain it. */
  stateTime: Type.Optional(Type.String()),
});
export type Bindings = Static<typeof Bindings>;
/** What a user changes on purpose. The state changes by itself. */
export type Bound = Exclude<keyof Bindings, "state" | "stateTime">;

/** A step of a destroy, with a hash of the resource that it deletes. */
export const DestroyStep = Type.Object({ op: Type.String(), urn: Type.String(), digest: Type.String() });
export type DestroyStep = Static<typeof DestroyStep>;

export const Plan = Type.Union([
  Type.Object({ kind: Type.Literal("up"), file: Type.Unknown() }),
  Type.Object({ kind: Type.Literal("destroy"), steps: Type.Array(DestroyStep) }),
]);
export type Plan = Static<typeof Plan>;

const PlanContent = Type.Object({
  version: Type.Literal(1),
  /** Of the keyed hashes, in base64. */
  key: Type.String(),
  bindings: Bindings,
  plan: Plan,
});
export type PlanContent = Static<typeof PlanContent>;

/** More than a plan of the largest allowed size: plans compress to about a twentieth. */
const maxUnpackedBytes = 512 * 1024 * 1024;

export function newKey(): string {
  return randomBytes(32).toString("base64");
}

export function keyedHash(key: string, value: unknown): string {
  return createHmac("sha256", Buffer.from(key, "base64")).update(canonicalJson(value)).digest("hex");
}

export function planDigest(content: PlanContent): string {
  return textDigest(canonicalJson(content));
}

/** Undefined if the plan is too large for a request. */
export function seal(content: PlanContent): SealedPlan | undefined {
  const text = canonicalJson(content);
  const packed = gzipSync(text).toString("base64");
  return packed.length > maxPlanChars ? undefined : { digest: textDigest(text), content: packed };
}

/** Undefined if the content does not have the plan's digest. */
export function unseal({ digest, content }: SealedPlan): PlanContent | undefined {
  try {
    const text = gunzipSync(Buffer.from(content, "base64"), { maxOutputLength: maxUnpackedBytes }).toString("utf8");
    if (textDigest(text) !== digest) return undefined;
    const parsed = checkValue(PlanContent, JSON.parse(text));
    return parsed.ok ? parsed.value : undefined;
  } catch {
    return undefined;
  }
}
