/** Work that must not overlap: one at a time, in the order it came. */
export class Gate {
  #last: Promise<unknown> = Promise.resolve();

  async enter<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    try {
      await before;
      return await work();
    } finally {
      resolve();
    }
  }
}
