/** Requests with the same key run one after the other, in the order in which they were made. */
export class Lanes {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, request: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const own = before.then(request, request);
    this.#last.set(key, own);
    try {
      return await own;
    } finally {
      if (this.#last.get(key) === own) this.#last.delete(key);
    }
  }
}
