/** Reads repositories by requests of this process: a git process would take a hundred times the CPU time. */
import {
  compareCommits,
  discoverUploadPack,
  errorCode,
  httpAccess,
  keptConnections,
  listRefs,
  trustedCaCertificates,
  type Connections,
  type HttpAccess,
  type ListedRefs,
  type LsRefsOptions,
  type TreeDiff,
  type UploadPack,
} from "@pko/git";
import type { Clock } from "@pko/kube";

import {
  authenticate,
  explain,
  failed,
  movedTo,
  movedTwice,
  noRepositoryThere,
  openProblems,
  unreachable,
  unresponsive,
  type AuthenticatedRemote,
  type GitRefs,
  type GitRemote,
  type GitSettings,
} from "./git-remote.ts";
import type { CommitPair } from "./source-view.ts";

/** Only git can read this repository, or explain why it cannot be read. */
export interface NeedsGit {
  readonly kind: "needsGit";
}

const needsGit: NeedsGit = { kind: "needsGit" };

/** The paths of the files that differ between two commits; `reason` is a clause. */
export type ComparedCommits =
  | { readonly kind: "compared"; readonly paths: readonly string[] }
  | { readonly kind: "unknown"; readonly reason: string }
  /** Another attempt may succeed. */
  | { readonly kind: "unreachable"; readonly reason: string; readonly retryAfterMs?: number };

interface HttpReader {
  list(remote: GitRemote, refs: readonly string[], signal: AbortSignal): Promise<GitRefs | NeedsGit>;
  compare(remote: GitRemote, commits: CommitPair, signal: AbortSignal): Promise<ComparedCommits>;
}

/** What a repository's server supports, and where the repository is. */
interface Found {
  readonly uploadPack: UploadPack;
  /** Undefined if it is at the URL that the Stack names. */
  readonly moved?: { readonly url: string; readonly keepsCredentials: boolean };
  readonly until: number;
}

/** After this time the server is asked again what it supports, and whether the repository has moved. */
const foundMs = 10 * 60_000;
const caMs = 5 * 60_000;

export function httpReader(settings: GitSettings, clock: Clock): HttpReader {
  const reader = new Reader(settings, clock);
  return {
    list: (remote, names, signal) =>
      reader.read(remote, (url, uploadPack, options) => listRefs(url, { names, uploadPack }, options), signal),
    async compare(remote, commits, signal) {
      const compare: Ask<Exclude<ComparedCommits, { kind: "unreachable" }>> = (url, uploadPack, options) =>
        compareCommits(url, { ...commits, uploadPack }, options);
      const result = await reader.read(remote, compare, signal);
      switch (result.kind) {
        case "compared":
        case "unknown":
          return result;
        case "needsGit":
          return { kind: "unknown", reason: "only git can read the repository" };
        case "failed":
          return notCompared(result);
      }
    },
  };
}

function notCompared({ problem, message: reason, retryAfterMs }: Failed): ComparedCommits {
  if (problem !== "unreachable") return { kind: "unknown", reason };
  return { kind: "unreachable", reason, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

type RequestFailure = Exclude<ListedRefs | TreeDiff, { kind: "listed" | "compared" | "unknown" }>;

/** A request to a repository, at its current place. */
type Ask<Answer> = (url: URL, uploadPack: UploadPack, options: LsRefsOptions) => Promise<Answer | RequestFailure>;

type Failed = Extract<GitRefs, { kind: "failed" }>;

/** Succeeds with the kinds that an answer may have. */
type AnswerKind = { readonly kind: "listed" | "compared" | "unknown" };

type Looked<Answer> = { readonly result: Answer | Failed | NeedsGit | Moved; readonly uploadPack?: UploadPack };

interface Moved {
  readonly kind: "moved";
  readonly authorization?: string;
}

/** One look at a repository. */
interface Look<Answer> {
  readonly ask: Ask<Answer>;
  readonly signal: AbortSignal;
}

class Reader {
  readonly #settings: GitSettings;
  readonly #clock: Clock;
  readonly #connections: Connections;
  /** By the poller's object for the repository, with which it is forgotten. */
  readonly #found = new WeakMap<GitRemote, Found>();
  #ca: { readonly pem: Promise<string | undefined>; readonly at: number } | undefined;

  constructor(settings: GitSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#connections = keptConnections({ now: () => clock.monotonic() });
  }

  async read<Answer extends AnswerKind>(
    remote: GitRemote,
    ask: Ask<Answer>,
    signal: AbortSignal,
  ): Promise<Answer | Failed | NeedsGit> {
    const authenticated = await authenticate(remote, this.#settings, signal);
    if (authenticated.kind === "failed") return authenticated;
    const found = this.#current(remote);
    this.#found.delete(remote);
    const place = found?.moved ? atNewPlace(authenticated, found.moved) : authenticated;
    const { result, uploadPack } = await this.#look(place, { ask, signal }, found?.uploadPack);
    if (result.kind !== "moved") {
      if (uploadPack) this.#found.set(remote, found ?? { uploadPack, until: this.#clock.monotonic() + foundMs });
      return result;
    }
    return await this.#readMoved(remote, { authenticated, authorization: result.authorization }, { ask, signal });
  }

  #current(remote: GitRemote): Found | undefined {
    const found = this.#found.get(remote);
    return found && found.until > this.#clock.monotonic() ? found : undefined;
  }

  async #readMoved<Answer extends AnswerKind>(
    remote: GitRemote,
    from: { readonly authenticated: AuthenticatedRemote; readonly authorization: string | undefined },
    look: Look<Answer>,
  ): Promise<Answer | Failed | NeedsGit> {
    const { authenticated, authorization } = from;
    const sent = authorization === undefined ? {} : { authorization };
    const place = await movedTo(authenticated, sent, { settings: this.#settings, signal: look.signal });
    if (!place) return noRepositoryThere;
    const { result, uploadPack } = await this.#look(place, look);
    if (result.kind === "moved") return movedTwice;
    if (uploadPack) {
      const moved = { url: place.url, keepsCredentials: place.credentials === authenticated.credentials };
      this.#found.set(remote, { uploadPack, moved, until: this.#clock.monotonic() + foundMs });
    }
    return result;
  }

  /** `uploadPack` of the result is set if the repository was read. */
  async #look<Answer extends AnswerKind>(
    remote: AuthenticatedRemote,
    { ask, signal }: Look<Answer>,
    known?: UploadPack,
  ): Promise<Looked<Answer>> {
    const access = httpAccess(remote, this.#settings.policy);
    if (!access) return { result: needsGit };
    if (access.kind === "unopened") return { result: failed(openProblems[access.problem], access.message) };
    const options = await this.#requestOptions(remote, access, signal);
    const discovered = known ? ({ kind: "discovered", uploadPack: known } as const) : undefined;
    const supported = discovered ?? (await discoverUploadPack(access.url, options));
    if (supported.kind !== "discovered") return { result: explainResult(supported, access) };
    const { uploadPack } = supported;
    const answer = await ask(access.url, uploadPack, options);
    return isAnswer(answer) ? { result: answer, uploadPack } : { result: explainResult(answer, access) };
  }

  async #requestOptions(
    remote: AuthenticatedRemote,
    { authorization }: HttpAccess,
    signal: AbortSignal,
  ): Promise<LsRefsOptions> {
    const { policy, inherited = {} } = this.#settings;
    const ca = remote.ca ?? (await this.#trustedCas());
    return {
      policy,
      environment: inherited,
      connections: this.#connections,
      signal,
      ...(authorization !== undefined && { authorization }),
      ...(ca !== undefined && { ca }),
    };
  }

  async #trustedCas(): Promise<string | undefined> {
    const now = this.#clock.monotonic();
    if (!this.#ca || now - this.#ca.at > caMs) {
      this.#ca = { pem: trustedCaCertificates(this.#settings.inherited ?? {}), at: now };
    }
    return await this.#ca.pem;
  }
}

const answerKinds: ReadonlySet<string> = new Set<AnswerKind["kind"]>(["listed", "compared", "unknown"]);

const isAnswer = <Answer extends AnswerKind>(answer: Answer | RequestFailure): answer is Answer =>
  answerKinds.has(answer.kind);

function atNewPlace(remote: AuthenticatedRemote, { url, keepsCredentials }: NonNullable<Found["moved"]>) {
  return { ...remote, url, ...(!keepsCredentials && { credentials: { kind: "none" } as const }) };
}

/** Errors of the network; any other is one of TLS, which git can explain. */
const networkErrors: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ConnectionClosed",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EPIPE",
]);

/** Git would take the page for a repository without refs. */
const page = failed(
  "notFound",
  "the server returned a web page instead of a repository, such as a page to sign in; check the URL and the credentials",
);

/** With the texts of git, which reads the repository if it needs something else. */
function explainResult(result: RequestFailure, access: HttpAccess): Failed | NeedsGit | Moved {
  const { authorization } = access;
  switch (result.kind) {
    case "refused":
      return failed("refused", result.message);
    case "unreachable": {
      if (result.error === undefined) return failed("unreachable", result.message);
      const code = errorCode(result.error) ?? "";
      if (code === "ETIMEDOUT") return unresponsive;
      return networkErrors.has(code) ? unreachable : needsGit;
    }
    case "page":
      return page;
    case "unsupported":
      return needsGit;
    case "status": {
      // Success without refs.
      if (result.status < 300) return needsGit;
      const explained = explain(`error: ${result.status}`);
      if (explained === "moved") return { kind: "moved", ...(authorization !== undefined && { authorization }) };
      const { retryAfterSeconds } = result;
      return retryAfterSeconds === undefined ? explained : { ...explained, retryAfterMs: retryAfterSeconds * 1000 };
    }
  }
}
