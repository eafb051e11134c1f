/** What all tests of a process share, because starting it takes seconds of CPU. */

const stops: (() => Promise<unknown>)[] = [];

/** The first test that needs it starts it. It is stopped after the last test. */
export function shared<T>(start: () => Promise<T>, stop: (started: T) => Promise<unknown>): () => Promise<T> {
  let started: Promise<T> | undefined;
  return async () => {
    if (!started) {
      started = start();
      stops.push(async () => {
        const running = await started?.catch(() => undefined);
        started = undefined;
        if (running !== undefined) await stop(running);
      });
    }
    return await started;
  };
}

/** preload.ts calls it after the last test. Programs that are not tests call it at their end. */
export async function stopShared(): Promise<void> {
  await Promise.all(stops.splice(0).map((stop) => stop()));
}
