/** What the formats of all forges have in common: signatures over the raw bytes, and careful reading of JSON. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** A request as it was received. */
export interface Hook {
  /** By its name in lower case. */
  header(name: string): string | undefined;
  readonly body: Buffer;
}

/** What a verified hook reports. Commits and files in it are ignored: only the repository itself is believed. */
export type HookContent =
  | {
      readonly kind: "push";
      /** URLs of the repository, or `PROJECT/NAME` if the forge does not report its URL. */
      readonly repositories: readonly string[];
      /** Full names, such as `refs/heads/main`; any ref may have changed if there is none. */
      readonly refs: readonly string[];
    }
  /** A pull request was opened, changed or closed. */
  | { readonly kind: "pullRequest"; readonly repositories: readonly string[] }
  /** The forge tests the connection. */
  | { readonly kind: "ping" }
  /** An event that changes no ref and no pull request. */
  | { readonly kind: "other" }
  | { readonly kind: "malformed" };

export interface Forge {
  /** Whether the sender knows the secret. */
  verify(hook: Hook, secret: Buffer): boolean;
  /** Never throws. Only for a hook that was verified. */
  parse(hook: Hook): HookContent;
}

export const other: HookContent = { kind: "other" };
export const ping: HookContent = { kind: "ping" };
export const malformed: HookContent = { kind: "malformed" };

/** In hex digits, after `prefix`. */
export function hasHmac(hook: Hook, secret: Buffer, signature: { header: string; prefix: string }): boolean {
  const given = hook.header(signature.header);
  if (given === undefined || !given.startsWith(signature.prefix)) return false;
  const digest = createHmac("sha256", secret).update(hook.body).digest("hex");
  return isSameText(given.slice(signature.prefix.length).toLowerCase(), digest);
}

/** In constant time, also for texts of different lengths. */
export function isSameText(one: string, other: string | Buffer): boolean {
  const digest = (text: string | Buffer): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/** More are not needed: a hook is about one repository. */
const maxRepositories = 16;
/** A push may change many tags. With more, any ref may have changed. */
const maxRefs = 1000;

export function pushTo(repositories: readonly unknown[], refs: readonly unknown[]): HookContent {
  const urls = urlsIn(repositories);
  const names = refs.filter(isFullRef);
  if (urls.length === 0) return malformed;
  return { kind: "push", repositories: urls, refs: names.length > maxRefs ? [] : names };
}

/** `repositories`: URLs of the repository into which it is to be merged. */
export function pullRequestTo(repositories: readonly unknown[]): HookContent {
  const urls = urlsIn(repositories);
  return urls.length === 0 ? malformed : { kind: "pullRequest", repositories: urls };
}

const urlsIn = (repositories: readonly unknown[]): string[] => repositories.filter(isText).slice(0, maxRepositories);

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** No Git server has longer ones: most file systems do not allow them. */
const maxRefLength = 1024;

export const isFullRef = (value: unknown): value is string =>
  isText(value) && value.startsWith("refs/") && value.length <= maxRefLength;

/** Undefined if the body is not JSON. Some forges can send it as a field of a form. */
export function jsonOf(hook: Hook): Json | undefined {
  const text = hook.body.toString("utf8");
  const isForm = hook.header("content-type")?.startsWith("application/x-www-form-urlencoded") ?? false;
  try {
    return new Json(JSON.parse(isForm ? (new URLSearchParams(text).get("payload") ?? "") : text));
  } catch {
    return undefined;
  }
}

/** A value of any shape, of which a field that does not exist is undefined. */
export class Json {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }

  at(...path: readonly string[]): Json {
    let { value } = this;
    for (const name of path) {
      const isObject = typeof value === "object" && value !== null && Object.hasOwn(value, name);
      value = isObject ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
    }
    return new Json(value);
  }

  get items(): readonly Json[] {
    return Array.isArray(this.value) ? this.value.map((item) => new Json(item)) : [];
  }
}

/** Of a branch or tag by its short name. */
export const refNamed = (name: unknown, isTag: boolean): string | undefined =>
  isText(name) ? `refs/${isTag ? "tags" : "heads"}/${name}` : undefined;
