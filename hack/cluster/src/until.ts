/** Waits for another program, with a timeout. */
const deadlineMs = 120_000;

/** A condition that throws counts as not met. */
export async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  while (!(await condition().catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`timed out after ${deadlineMs / 1000} s waiting for ${what}`);
    await Bun.sleep(100);
  }
}
