/**
 * How long a repository is left alone after failures: its own ones, and those of its server. What a repository reports that was
 * not read the last time counts only for repositories like it. Otherwise, a few that always fail would stop polling all others.
 */
import type { Endpoint, Endpoints } from "./endpoints.ts";
import type { GitRefs } from "./git-remote.ts";

export interface RestingRepository {
  readonly id: string;
  /** With the credentials. */
  readonly server: string;
  /** Whether the last poll read it. */
  readonly isRead: boolean;
  /** Of the Stacks that follow it. What the server does to one tenant must not delay another. Iterated once. */
  readonly namespaces: Iterable<string>;
}

export class Rests {
  readonly #endpoints: Endpoints;

  constructor(endpoints: Endpoints) {
    this.#endpoints = endpoints;
  }

  /** `repository`: as it was before the poll. */
  record({ id, server, isRead, namespaces }: RestingRepository, result: GitRefs, startedAt: number): void {
    const isResponse = result.kind === "listed" || result.problem !== "unreachable";
    this.#endpoints.record(`repository ${id}`, result, startedAt);
    for (const namespace of namespaces) {
      this.#endpoints.record(serverId(namespace, { server, isRead: false }), result, startedAt);
      if (isRead || isResponse)
        this.#endpoints.record(serverId(namespace, { server, isRead: true }), result, startedAt);
    }
  }

  /** While it is left alone. The server rests only if it does for all of the namespaces. */
  resting(repository: RestingRepository): Endpoint | undefined {
    const own = this.#endpoints.resting(`repository ${repository.id}`);
    let server: Endpoint | undefined;
    for (const namespace of repository.namespaces) {
      const found = this.#endpoints.resting(serverId(namespace, repository));
      if (!found) return own;
      if (!server || found.restsUntil < server.restsUntil) server = found;
    }
    return own && server && own.restsUntil > server.restsUntil ? own : (server ?? own);
  }

  /** For any of its repositories. */
  isServerFailing(server: string, namespace: string): boolean {
    const ids = [true, false].map((isRead) => serverId(namespace, { server, isRead }));
    return ids.some((id) => this.#endpoints.failing(id) !== undefined);
  }

  isFailing(repository: Omit<RestingRepository, "namespaces">, namespace: string): boolean {
    const ids = [`repository ${repository.id}`, serverId(namespace, repository)];
    return ids.some((id) => this.#endpoints.failing(id) !== undefined);
  }
}

const serverId = (namespace: string, { server, isRead }: Pick<RestingRepository, "server" | "isRead">): string =>
  `${namespace} ${server} ${isRead ? "read" : "failed"}`;
