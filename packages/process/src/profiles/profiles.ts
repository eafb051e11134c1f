/** What can be recorded of this process, in the formats that Chrome's developer tools open. */
import { Session } from "node:inspector";

export type ProfileKind = "heap" | "cpu";
export const profileKinds: readonly ProfileKind[] = ["heap", "cpu"];

/** Contains every value in memory, keys and tokens included. The process does nothing else until it is complete. */
export const heapSnapshot = (): ArrayBuffer => Bun.generateHeapSnapshot("v8", "arraybuffer");

/** Records until `end` resolves. Only one can be recorded at a time. */
export async function cpuProfile(end: Promise<unknown>): Promise<string> {
  const session = new Session();
  session.connect();
  try {
    await request(session, "Profiler.enable");
    await request(session, "Profiler.start");
    await end;
    const { profile } = (await request(session, "Profiler.stop")) as { readonly profile: unknown };
    return JSON.stringify(profile);
  } finally {
    session.disconnect();
  }
}

async function request(session: Session, method: string): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    session.post(method, (error, result) => (error ? reject(error) : resolve(result)));
  });
}
