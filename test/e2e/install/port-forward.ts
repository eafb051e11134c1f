/** `kubectl port-forward`, as the docs describe it. */
import { join } from "node:path";

import { clusterKubeconfig, toolPath } from "@pko/cluster";
import { freePort, spawnChild, waitFor } from "@pko/testkit";

import { runFolder } from "../harness.ts";

interface Forward extends AsyncDisposable {
  readonly origin: string;
}

interface Target {
  readonly namespace: string;
  readonly port: number;
}

export async function portForward(name: string, { namespace, port }: Target): Promise<Forward> {
  const local = await freePort();
  const cache = `--cache-dir=${join(runFolder, "kubectl-cache")}`;
  const flags = [`--kubeconfig=${clusterKubeconfig()}`, cache, "-n", namespace];
  const child = spawnChild({
    command: [toolPath("kubectl"), ...flags, "port-forward", name, `${local}:${port}`],
    logFile: join(runFolder, `port-forward-${local}.log`),
  });
  const origin = `http://localhost:${local}`;
  await waitFor(async () => (await fetch(`${origin}/healthz`)).ok, {
    timeoutMs: 120_000,
    what: `port ${port} of ${name}`,
  });
  return { origin, [Symbol.asyncDispose]: async () => await child.stop() };
}
