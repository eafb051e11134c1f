/** A real Flux source-controller as a process that serves one namespace. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { clusterKubeconfig, moduleSources, toolPath } from "@pko/cluster";
import { freePort, spawnChild, waitFor } from "@pko/testkit";

import { kubectl, machineAddress } from "../harness.ts";

export interface SourceController {
  /** The folder of the artifacts: `kind/namespace/name/digest.tar.gz`. */
  readonly storage: string;
  log(): Promise<string>;
  stop(): Promise<void>;
}

export async function startSourceController(namespace: string): Promise<SourceController> {
  const crds = join(await moduleSources("source-controller"), "config/crd/bases");
  await kubectl(["apply", "--server-side", "--force-conflicts", "-f", crds]);
  // A new CRD has no conditions at first, which kubectl reports as an error.
  const wait = ["wait", "--for=condition=Established", "-f", crds, "--timeout=30s"];
  await waitFor(() => kubectl(wait), { timeoutMs: 60_000, what: "the CRDs" });
  const folder = mkdtempSync(join(tmpdir(), "pko-flux-"));
  const address = `${machineAddress}:${await freePort()}`;
  const child = spawnChild({
    command: [
      toolPath("source-controller"),
      "--watch-all-namespaces=false",
      `--storage-path=${folder}`,
      `--storage-addr=${address}`,
      `--storage-adv-addr=${address}`,
      "--metrics-addr=0",
      "--health-addr=0",
    ],
    logFile: join(folder, "log"),
    env: { KUBECONFIG: clusterKubeconfig(), RUNTIME_NAMESPACE: namespace, HOME: folder, TMPDIR: folder },
  });
  await waitFor(async () => (await child.log()).includes("Starting workers") || !child.running, { timeoutMs: 120_000 });
  if (!child.running) throw new Error(`the source-controller exited: ${await child.log()}`);
  return { storage: folder, log: () => child.log(), stop: () => child.stop() };
}
