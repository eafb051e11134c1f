/** Waiting for what another program does, with an end. */
const deadlineMs = 120_000;

/** A condition that cannot be told yet counts as not met. */
export async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  while (!(await condition().catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`gave up after ${deadlineMs / 1000} s of waiting for ${what}`);
    await Bun.sleep(100);
  }
}
