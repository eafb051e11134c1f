/**
 * For tests: a server with the part of a forge's API that the operator uses, as its public documentation describes it. It records
 * every call, and responds as the test requests: with errors, with rate limits or not at all.
 */
import type { ForgeType, PullRequest } from "../types.ts";
import { bitbucketRoutes, bitbucketDataCenterRoutes, giteaRoutes, githubRoutes, gitlabRoutes } from "./routes.ts";
import type { Content, Route, StandInStatus } from "./routes.ts";

export type { StandInStatus } from "./routes.ts";

export interface RecordedCall {
  readonly method: string;
  /** With the query, without the origin. */
  readonly path: string;
  readonly authorization: string | null;
  readonly body: unknown;
  /** Of the response. */
  readonly status: number;
}

export interface StandInForge extends Disposable {
  readonly type: ForgeType;
  /** The root of the API. */
  readonly url: string;
  readonly repository: string;
  /** Calls with another token are rejected. */
  token: string;
  readonly calls: RecordedCall[];
  /** All that were set, oldest first. */
  readonly statuses: StandInStatus[];
  /** By pull request, oldest first. */
  readonly comments: Map<number, { id: number; body: string; version: number }[]>;
  /** Open ones, newest first. */
  pullRequests: PullRequest[];
  closedPullRequests: PullRequest[];
  /** Entries of a page. */
  pageSize: number;
  /** Commits that do not exist. */
  readonly missingCommits: Set<string>;
  /** IDs of comments that only another user may change. */
  readonly foreignComments: Set<number>;
  /** Answers the next calls instead of the API, in this order. */
  readonly answers: ((request: Request) => Response | Promise<Response>)[];
  /** Whether a call fails with status 503. */
  fails: (call: Pick<RecordedCall, "method" | "path">) => boolean;
  /** Answers a call only when this has ended. */
  delay: (call: Pick<RecordedCall, "method" | "path">) => Promise<void> | undefined;
}

const roots: Readonly<Record<ForgeType, string>> = {
  GitHub: "/api/v3",
  GitLab: "/api/v4",
  Gitea: "/api/v1",
  Bitbucket: "/2.0",
  BitbucketDataCenter: "/rest",
};

const routesOf: Readonly<Record<ForgeType, readonly Route[]>> = {
  GitHub: githubRoutes,
  GitLab: gitlabRoutes,
  Gitea: giteaRoutes,
  Bitbucket: bitbucketRoutes,
  BitbucketDataCenter: bitbucketDataCenterRoutes,
};

export function standInForge(type: ForgeType, repository = "acme/web"): StandInForge {
  return new Server(type, repository);
}

class Server implements StandInForge, Content {
  readonly calls: RecordedCall[] = [];
  readonly statuses: StandInStatus[] = [];
  readonly comments = new Map<number, { id: number; body: string; version: number }[]>();
  readonly missingCommits = new Set<string>();
  readonly foreignComments = new Set<number>();
  readonly answers: ((request: Request) => Response | Promise<Response>)[] = [];
  pullRequests: PullRequest[] = [];
  closedPullRequests: PullRequest[] = [];
  fails: StandInForge["fails"] = () => false;
  delay: StandInForge["delay"] = () => undefined;
  pageSize = 2;
  token = "stand-in-token";
  readonly type: ForgeType;
  readonly repository: string;
  readonly #server: Bun.Server<undefined>;
  #lastId = 100;

  constructor(type: ForgeType, repository: string) {
    this.type = type;
    this.repository = repository;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      // Responses can be delayed.
      idleTimeout: 240,
      fetch: (request) => this.#answer(request),
    });
  }

  get origin(): string {
    return this.#server.url.origin;
  }

  get url(): string {
    return `${this.origin}${roots[this.type]}`;
  }

  nextId(): number {
    return ++this.#lastId;
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const text = await request.text();
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    const planned = this.answers.shift();
    const authorization = request.headers.get("authorization");
    const call = { method: request.method, path: `${pathname}${search}`, authorization, body };
    await this.delay(call);
    const usual = (): Response =>
      this.fails(call) ? new Response("down", { status: 503 }) : this.#route(request, pathname, body);
    const response = planned ? await planned(request) : usual();
    this.calls.push({ ...call, status: response.status });
    return response;
  }

  #route(request: Request, pathname: string, body: unknown): Response {
    const authorization = request.headers.get("authorization") ?? "";
    const [scheme = "", credentials = ""] = authorization.split(" ");
    if (this.type === "GitHub" && /\/app\/installations\/\d+\/access_tokens$/.test(pathname)) {
      return this.#exchange(credentials);
    }
    const accepted = this.type === "Gitea" ? ["token", "Bearer"] : ["Bearer"];
    if (!accepted.includes(scheme) || credentials !== this.token) {
      return Response.json({ message: `Bad credentials: ${credentials}` }, { status: 401 });
    }
    for (const { method, path, handle } of routesOf[this.type]) {
      const pattern = path.replaceAll("{repository}", () => this.#repositoryPattern());
      const match = new RegExp(`^${roots[this.type]}${pattern}$`).exec(pathname);
      if (!match || method !== request.method) continue;
      const [, ...parameters] = match;
      const query = new URL(request.url).searchParams;
      return handle({ content: this, parameters, query, body: (body ?? {}) as Record<string, unknown> });
    }
    return Response.json({ message: "Not Found" }, { status: 404 });
  }

  /** The JWT of a GitHub App for a token of its installation. Its signature is not verified. */
  #exchange(jwt: string): Response {
    if (jwt.split(".").length !== 3) return Response.json({ message: "Bad credentials" }, { status: 401 });
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    return Response.json({ token: this.token, expires_at: expires }, { status: 201 });
  }

  #repositoryPattern(): string {
    const [project = "", name = ""] = this.repository.split("/");
    switch (this.type) {
      case "GitLab":
        return encodeURIComponent(this.repository);
      case "BitbucketDataCenter":
        return `${project}/repos/${name}`;
      case "GitHub":
      case "Gitea":
      case "Bitbucket":
        return this.repository;
    }
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}
