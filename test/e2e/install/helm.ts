/** The Helm CLI and the chart of this clone. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { clusterKubeconfig, goProgramEnv, toolPath } from "@pko/cluster";
import { parseAllDocuments } from "yaml";

const root = join(import.meta.dir, "../../..");
const home = mkdtempSync(join(tmpdir(), "pko-helm-"));

export const chart = join(root, "charts/pulumi-kubernetes-operator");

/** Runs Helm on the test cluster. Returns standard output; throws with standard error if Helm fails. */
export async function helm(...args: readonly string[]): Promise<string> {
  return await helmOn(clusterKubeconfig(), ...args);
}

export async function helmOn(kubeconfig: string, ...args: readonly string[]): Promise<string> {
  const child = Bun.spawn([toolPath("helm"), ...args], {
    cwd: root,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: {
      ...goProgramEnv,
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      KUBECONFIG: kubeconfig,
      HELM_CACHE_HOME: join(home, "cache"),
      HELM_CONFIG_HOME: join(home, "config"),
      HELM_DATA_HOME: join(home, "data"),
    },
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`helm ${args.join(" ")} failed with exit code ${code}: ${errors.trim()}`);
  return output;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly rules?: readonly object[];
}

export function manifestsIn(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => (document.toJSON() as Manifest | null) ?? []);
}
