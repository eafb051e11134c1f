/** Git repositories, revisions and credentials in normal form. */
import type { StackSpec } from "../stack/spec.ts";
import { stackMessages } from "../stack/messages.ts";
import { mayHavePasswordInPath } from "../without-password.ts";
import type { Findings } from "./findings.ts";
import { secretKeyIn, type SecretKey } from "./reference.ts";
import { isArgument, isObjectName } from "./rules.ts";
import type { Scope } from "./scope.ts";

export type GitRef =
  | { readonly kind: "commit"; readonly sha: string }
  | { readonly kind: "branch"; readonly name: string }
  | { readonly kind: "tag"; readonly name: string }
  /** Any other full ref name, such as refs/pull/12/head. */
  | { readonly kind: "other"; readonly name: string };

export type GitAuth =
  | { readonly kind: "none" }
  | { readonly kind: "token"; readonly token: SecretKey }
  | { readonly kind: "ssh"; readonly privateKey: SecretKey; readonly password?: SecretKey }
  | { readonly kind: "basic"; readonly userName: SecretKey; readonly password: SecretKey }
  | {
      readonly kind: "githubApp";
      readonly appId: SecretKey;
      readonly installationId: SecretKey;
      readonly privateKey: SecretKey;
    }
  /** A Secret whose keys determine the method: sshPrivateKey, accessToken, or username and password. */
  | { readonly kind: "secret"; readonly name: string };

export interface GitRepository {
  /** The caller decides whether plain HTTP is allowed; by default it is not. */
  readonly transport: "https" | "http" | "ssh";
  readonly url: string;
}

/** Full ref names in order of precedence. As in the Go operator, `branch` may name a tag. */
export function candidateRefs(ref: Exclude<GitRef, { kind: "commit" }>): string[] {
  if (ref.kind === "branch") return [`refs/heads/${ref.name}`, `refs/tags/${ref.name}`];
  return [ref.kind === "tag" ? `refs/tags/${ref.name}` : ref.name];
}

/** git, URL parsers and `withoutPassword` agree only about URLs with a scheme and two slashes. */
const urlForm = /^(?:https?|ssh):\/\/[^/]/i;
/** A path with `@` may be the rest of a URL with a password. */
const scpForm = /^(?:[^@:/]+@)?(?<host>[^-@:/][^@:/]*):(?<path>[^/:@][^@]*|\/[^/@][^@]*)$/;

/** Undefined if the URL is not allowed. */
export function parseGitUrl(url: string): GitRepository | undefined {
  if (!isArgument(url) || /[\s\\]/.test(url)) return undefined;
  if (!/^(?:https?|ssh):/i.test(url)) return scpForm.test(url) ? { transport: "ssh", url } : undefined;
  const parsed = urlForm.test(url) && !mayHavePasswordInPath(url) ? URL.parse(url) : null;
  if (!parsed || parsed.hostname === "" || parsed.hostname.startsWith("-") || parsed.pathname.length <= 1)
    return undefined;
  if (parsed.protocol === "https:") return { transport: "https", url };
  if (parsed.protocol === "http:") return { transport: "http", url };
  if (parsed.protocol === "ssh:") return { transport: "ssh", url };
  return undefined;
}

const isHash = (text: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/i.test(text);

/** Follows git-check-ref-format, and rejects names that a command could parse as an option. */
function isRefName(name: string): boolean {
  const parts = name.split("/");
  return (
    isArgument(name) &&
    !/[ ~^:?*[\\]|\.\.|@\{/.test(name) &&
    name !== "@" &&
    !name.endsWith(".") &&
    parts.every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"))
  );
}

function namedRef(name: string): GitRef {
  if (name.startsWith("refs/heads/")) return { kind: "branch", name: name.slice("refs/heads/".length) };
  if (name.startsWith("refs/tags/")) return { kind: "tag", name: name.slice("refs/tags/".length) };
  if (name.startsWith("refs/")) return { kind: "other", name };
  return { kind: "branch", name };
}

type Revision = Pick<StackSpec, "branch" | "tag" | "commit">;

/** Undefined if not exactly one valid revision is set; then it reports a problem. */
export function stackGitRef(spec: Revision, findings: Findings): GitRef | undefined {
  const given = (["branch", "tag", "commit"] as const).filter((field) => spec[field]);
  const [field, second] = given;
  if (!field) findings.problem("spec.branch", stackMessages.noRevision);
  if (second) findings.problem("spec.branch", stackMessages.severalRevisions);
  const value = field && spec[field];
  if (!field || !value || second) return undefined;
  if (field !== "commit" && !isRefName(value)) {
    findings.problem(`spec.${field}`, {
      message: `is not a valid ${field} name`,
      remedy: "use a name such as main or v1.0",
    });
    return undefined;
  }
  return { branch: branchRef, tag: tagRef, commit: commitRef }[field](value, findings);
}

function branchRef(value: string, findings: Findings): GitRef {
  if (!isHash(value)) return namedRef(value);
  findings.advise("spec.branch", { message: "is a commit hash, which never changes", remedy: "set commit instead" });
  return { kind: "commit", sha: value.toLowerCase() };
}

function tagRef(value: string, findings: Findings): GitRef | undefined {
  if (!value.startsWith("refs/")) return { kind: "tag", name: value };
  const ref = namedRef(value);
  if (ref.kind === "tag") return ref;
  findings.problem("spec.tag", {
    message: "is not a valid tag name",
    remedy: "use a name such as v1.0 or refs/tags/v1.0",
  });
  return undefined;
}

/** As in the Go operator, `commit` may be any ref name. */
function commitRef(value: string, findings: Findings): GitRef | undefined {
  if (isHash(value)) return { kind: "commit", sha: value.toLowerCase() };
  if (/^[0-9a-f]{4,63}$/i.test(value) || !isRefName(value)) {
    findings.problem("spec.commit", {
      message: "is not a full commit hash",
      remedy: "use all 40 characters of the hash",
    });
    return undefined;
  }
  findings.advise("spec.commit", { message: "is a ref name, not a commit hash", remedy: "set branch or tag instead" });
  return namedRef(value);
}

type Auth = Pick<StackSpec, "gitAuth" | "gitAuthSecret">;

const methods = ["sshAuth", "accessToken", "githubApp", "basicAuth"] as const;

/** As in the Go operator, gitAuthSecret takes precedence, then the order of `methods`. All are validated. */
export function stackGitAuth({ gitAuth, gitAuthSecret }: Auth, scope: Scope): GitAuth {
  const given = methods.filter((method) => gitAuth?.[method]);
  const [used = none] = given.map((method) => authByMethod({ [method]: gitAuth?.[method] }, scope));
  if (gitAuthSecret) return authBySecret(gitAuthSecret, scope.findings);
  const remedy = "set exactly one of accessToken, sshAuth, basicAuth and githubApp";
  if (gitAuth && given.length === 0) {
    scope.findings.problem("spec.gitAuth", { message: "contains no credentials", remedy });
  }
  if (given.length > 1) {
    const message = `contains several credentials, of which only ${given[0]} is used`;
    scope.findings.advise("spec.gitAuth", { message, remedy });
  }
  return used;
}

const none: GitAuth = { kind: "none" };

function authBySecret(name: string, findings: Findings): GitAuth {
  findings.advise("spec.gitAuthSecret", { message: "is deprecated", remedy: "use gitAuth" });
  if (!isObjectName(name)) {
    findings.problem("spec.gitAuthSecret", { message: "is not a valid name of a Secret", remedy: "correct the name" });
  }
  return { kind: "secret", name };
}

type Methods = { readonly [Method in (typeof methods)[number]]?: Required<Auth>["gitAuth"][Method] | undefined };

function authByMethod({ sshAuth, accessToken, githubApp, basicAuth }: Methods, scope: Scope): GitAuth {
  const key = (field: string, reference: Parameters<typeof secretKeyIn>[0]): SecretKey =>
    secretKeyIn(reference, `spec.gitAuth.${field}`, scope);
  if (sshAuth) {
    const password = sshAuth.password && { password: key("sshAuth.password", sshAuth.password) };
    return { kind: "ssh", privateKey: key("sshAuth.sshPrivateKey", sshAuth.sshPrivateKey), ...password };
  }
  if (accessToken) return { kind: "token", token: key("accessToken", accessToken) };
  if (githubApp) {
    return {
      kind: "githubApp",
      appId: key("githubApp.appID", githubApp.appID),
      installationId: key("githubApp.installationID", githubApp.installationID),
      privateKey: key("githubApp.privateKey", githubApp.privateKey),
    };
  }
  if (!basicAuth) return none;
  return {
    kind: "basic",
    userName: key("basicAuth.userName", basicAuth.userName),
    password: key("basicAuth.password", basicAuth.password),
  };
}
