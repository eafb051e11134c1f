/**
 * The full hashes of commits that a forge names only by their beginning. Which commit that is never changes, so each has to be
 * requested once. What is forgotten is requested again.
 */
export class CommitHashes {
  /** By repository and by what the forge names; those that were used last are at the end. */
  readonly #repositories = new Map<string, Map<string, string>>();

  find(repository: string, name: string): string | undefined {
    const known = this.#repositories.get(repository);
    const hash = known?.get(name);
    if (known && hash !== undefined) {
      putLast(this.#repositories, repository, known);
      putLast(known, name, hash);
    }
    return hash;
  }

  remember(repository: string, name: string, hash: string): void {
    const known = this.#repositories.get(repository) ?? new Map<string, string>();
    putLast(this.#repositories, repository, known);
    putLast(known, name, hash);
    dropFirst(known, maxHashes);
    dropFirst(this.#repositories, maxRepositories);
  }
}

/** For each repository: more than a list of pull requests has, with those that are read one by one. */
const maxHashes = 150;
/** All together take a few megabytes. */
const maxRepositories = 200;

function putLast<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
}

function dropFirst(map: Map<string, unknown>, size: number): void {
  for (const key of [...map.keys()].slice(0, -size)) map.delete(key);
}
