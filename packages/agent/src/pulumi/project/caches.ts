/** The caches of a WorkspaceClass, which outlive the pod. They only save downloads, so no command fails because of them. */
import { dirname } from "node:path";
import type { Log } from "../../system/log.ts";
import { ensureWritable, linkPluginCache } from "./plugin-cache.ts";
import { pulumiHome } from "./writable-folders.ts";

interface CacheParts {
  /** Has the folders that variables of tools name. */
  readonly folder: string | undefined;
  readonly plugins: string | undefined;
  readonly log: Log;
}

export class Caches {
  readonly #parts: CacheParts;
  readonly #tried = new Map<string, Promise<boolean>>();

  constructor(parts: CacheParts) {
    this.#parts = parts;
  }

  /** The environment without variables for folders that cannot be written to, because tools fail then. */
  async usable(env: Record<string, string>): Promise<Record<string, string>> {
    const { folder, plugins } = this.#parts;
    const home = pulumiHome(env);
    if (plugins !== undefined) await this.#try(`${home}:${plugins}`, plugins, () => linkPluginCache(home, plugins));
    if (folder === undefined) return env;
    const kept = await Promise.all(
      Object.entries(env).map(
        async ([, path]) => dirname(path) !== folder || (await this.#try(path, path, () => ensureWritable(path))),
      ),
    );
    return Object.fromEntries(Object.entries(env).filter((_, index) => kept[index]));
  }

  /** Once, and not again after a failure: a running command may use the plugins that a link would replace. */
  async #try(key: string, folder: string, use: () => Promise<void>): Promise<boolean> {
    const first = this.#tried.get(key);
    if (first) return await first;
    const tried = use().then(
      () => true,
      (error: unknown) => {
        this.#parts.log.warn("cannot use the cache; commands run without it", { folder, error });
        return false;
      },
    );
    this.#tried.set(key, tried);
    return await tried;
  }
}
