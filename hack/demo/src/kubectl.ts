/** kubectl on the demo's cluster. */
import { kubectlCommand, run } from "@pko/cluster";

export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  return await run(kubectlCommand(...args), input === undefined ? {} : { input });
}
