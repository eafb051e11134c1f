/** Requests to the API of one repository: the URL, the credentials, JSON, pages and errors. */
import { retryAfter } from "@pko/git";

import { ForgeError, ResponseTooLarge, type ForgeErrorKind } from "./errors.ts";
import type { ForgeHttp, ForgeMethod, ForgeResponse } from "./http.ts";
import { isRecord, type Json } from "./json.ts";
import type { ForgeCredentials, ForgeTarget, ForgeType } from "./types.ts";

export interface ForgeApi {
  /** Without a slash at the end. */
  readonly root: string;
  /** The parts of the repository's path, such as owner and name. */
  readonly repository: readonly string[];
  /** Paths are relative to the root, or the URL of a page, which is read at the origin of the root. */
  get(path: string): Promise<Answer>;
  post(path: string, body: object): Promise<Answer>;
  put(path: string, body: object): Promise<Answer>;
  patch(path: string, body: object): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly json: Json;
  /** Of the JSON text. */
  readonly length: number;
  header(name: string): string | undefined;
}

export function forgeApi(target: ForgeTarget, credentials: ForgeCredentials, http: ForgeHttp): ForgeApi {
  const root = rootOf(target);
  const send = async (method: ForgeMethod, path: string, body?: object): Promise<Answer> => {
    const url = urlOf(root, path);
    const { ca } = credentials;
    const response = await http({
      method,
      url,
      authorization: authorizationOf(target.type, credentials),
      headers: headersOf(target.type),
      ...(body && { body }),
      ...(ca !== undefined && { ca }),
    });
    const error = errorOf(target.type, url, response);
    if (error) throw error;
    const { status, text } = response;
    return { status, json: jsonIn(url, response), length: text.length, header: (name) => response.header(name) };
  };
  return {
    root,
    repository: partsOf(target),
    get: (path) => send("GET", path),
    post: (path, body) => send("POST", path, body),
    put: (path, body) => send("PUT", path, body),
    patch: (path, body) => send("PATCH", path, body),
  };
}

function rootOf({ type, url }: ForgeTarget): string {
  const parsed = url === undefined ? null : URL.parse(url);
  if (!parsed || parsed.username || parsed.password || parsed.search || parsed.hash) {
    throw new ForgeError("invalid", `the URL of the ${type} API is not valid; use https://, a host and a path`);
  }
  return parsed.href.replace(/(?<!\/)\/+$/, "");
}

/** Anybody may write the repository: two parts of a pattern that match the same text take exponential time. */
const partForm = /^[\w.~-]+(?: [\w.~-]+)*$/;
/** The longest name at GitLab. */
const maxPartLength = 255;

const isPart = (text: string): boolean => text.length <= maxPartLength && partForm.test(text) && !/^\.+$/.test(text);

function partsOf({ type, repository }: ForgeTarget): string[] {
  const parts = repository.split("/");
  if (!parts.every(isPart) || parts.length < 2 || (parts.length > 2 && type !== "GitLab")) {
    throw new ForgeError("invalid", `the repository is not a valid ${type} repository; use owner/name`);
  }
  return parts;
}

/**
 * A forge names the next page by its URL, with the address that it knows of itself. The operator may use another one, such as that
 * of a Service. Only the path and the query count, so the credentials stay at the host of the API.
 */
function urlOf(root: string, path: string): URL {
  if (!/^https?:/.test(path)) return new URL(`${root}/${path}`);
  const { origin, host } = new URL(root);
  const page = URL.parse(path);
  if (!page) throw new ForgeError("unavailable", `${host} responded with a link to the next page that is not a URL`);
  return Object.assign(new URL(origin), { pathname: page.pathname, search: page.search });
}

function authorizationOf(type: ForgeType, credentials: ForgeCredentials): string {
  switch (credentials.kind) {
    case "basic":
      return `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64")}`;
    case "token":
      return `${type === "Gitea" ? "token" : "Bearer"} ${credentials.token}`;
  }
}

function headersOf(type: ForgeType): Record<string, string> {
  if (type !== "GitHub") return { accept: "application/json" };
  return { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" };
}

function jsonIn(url: URL, { text }: ForgeResponse): Json {
  if (text.trim() === "") return null;
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new ForgeError(
      "unavailable",
      `${url.host} responded with something that is not JSON; check the URL of the API`,
      { cause: error },
    );
  }
}

function errorOf(type: ForgeType, url: URL, response: ForgeResponse): ForgeError | undefined {
  const { status } = response;
  if (status >= 200 && status <= 299) return undefined;
  const retryAfterMs = retryAfterMsOf(response);
  const kind = kindOf(response, retryAfterMs !== undefined);
  const message = `${type} at ${url.host} ${explanations[kind]} (status ${status})`;
  return new ForgeError(kind, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

const explanations: Readonly<Record<ForgeErrorKind, string>> = {
  unauthorized: "does not accept the credentials, or they lack a permission",
  notFound: "has no such repository, commit or pull request, or the credentials may not see it",
  rateLimited: "limits the rate of requests",
  invalid: "rejects the request",
  unavailable: "cannot process the request",
};

function kindOf(response: ForgeResponse, isLimited: boolean): ForgeErrorKind {
  const { status } = response;
  if (status === 429) return "rateLimited";
  // GitHub reports its limits with 403.
  if (status === 403 && (isLimited || response.header("x-ratelimit-remaining") === "0")) return "rateLimited";
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 404 || status === 410) return "notFound";
  return status >= 400 && status <= 499 && status !== 408 ? "invalid" : "unavailable";
}

/** The longest that the documentation of a forge names. One that names a longer time, such as one in another unit, is called earlier. */
const maxRetryAfterMs = 60 * 60_000;

function retryAfterMsOf(response: ForgeResponse): number | undefined {
  const ms = namedMs(response);
  return ms === undefined ? undefined : Math.min(ms, maxRetryAfterMs);
}

function namedMs(response: ForgeResponse): number | undefined {
  const { retryAfterSeconds } = retryAfter(response);
  if (retryAfterSeconds !== undefined) return retryAfterSeconds * 1000;
  if (response.header("x-ratelimit-remaining") !== "0") return undefined;
  const reset = Number(response.header("x-ratelimit-reset") ?? Number.NaN);
  const now = Date.parse(response.header("date") ?? "");
  return Number.isNaN(reset) || Number.isNaN(now) ? undefined : Math.max(0, reset * 1000 - now);
}

export interface Entries {
  readonly entries: readonly Readonly<Record<string, Json>>[];
  /** Whether these are all. */
  readonly isComplete: boolean;
}

/**
 * The entries of all pages until there are `limit`, or until they are too long. Pages that are too large are read again in smaller
 * pieces, from the beginning: a forge may name the next page by something other than its number.
 */
export async function entriesOf(api: ForgeApi, first: string, reader: PageReader): Promise<Entries> {
  const read = await readPages(api, first, reader);
  if (!read.isCut) return read;
  return await readPages(api, first.replace(/\b(per_page|pagelen|limit)=\d+/, `$1=${smallPageSize}`), reader);
}

/** The longest description at GitHub has 256 KiB. */
const smallPageSize = 10;

/** `isCut`: a page was too large, and the list ends before it. */
async function readPages(
  api: ForgeApi,
  first: string,
  { limit, read, next }: PageReader,
): Promise<Entries & { readonly isCut: boolean }> {
  const entries: Readonly<Record<string, Json>>[] = [];
  let path: string | undefined = first;
  let length = 0;
  for (let page = 0; path !== undefined && page < maxPages && entries.length < limit; page += 1) {
    const answer = await unlessTooLarge(api.get(path));
    if (!answer) return { entries, isComplete: false, isCut: true };
    // Not all as arguments of one call, which overflows the stack if there are very many.
    for (const entry of read(answer.json)) if (isRecord(entry)) entries.push(entry);
    path = next(answer, path);
    length += answer.length;
    if (length > maxListLength) break;
  }
  const isComplete = path === undefined && entries.length <= limit;
  return { entries: entries.slice(0, limit), isComplete, isCut: false };
}

async function unlessTooLarge(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ResponseTooLarge) return undefined;
    throw error;
  }
}

/** No page is read beyond this: all are in memory at the same time. 300 pull requests have less than 9 MB at GitHub, unless their descriptions are long. */
const maxListLength = 16 * 1024 * 1024;

interface PageReader {
  readonly limit: number;
  readonly read: (json: Json) => readonly Json[];
  /** The path of the page after the one that was read at `path`. */
  readonly next: (answer: Answer, path: string) => string | undefined;
}

const maxPages = 50;

/** Undefined if the forge does not have it. */
export async function findAt(api: ForgeApi, path: string): Promise<Json | undefined> {
  try {
    return (await api.get(path)).json;
  } catch (error) {
    if (error instanceof ForgeError && error.kind === "notFound") return undefined;
    throw error;
  }
}

/** The next page in a Link header, as GitHub, GitLab and Gitea send it. */
export function linkedPage(answer: Answer): string | undefined {
  const links = (answer.header("link") ?? "").split(",");
  return links.map((link) => /^\s*<([^>]+)>\s*;.*\brel="?next"?/.exec(link)?.[1]).find((url) => url !== undefined);
}
