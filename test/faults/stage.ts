/** Shared by all lifecycles: a real API server, the Kubernetes controllers that a workspace needs, and our two programs. */
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { toolPath } from "@pko/cluster";
import { approvals } from "@pko/operator";
import { programPath, spawnChild, type ApiServer, type ChildProcess } from "@pko/testkit";

import { apiServerWithApi } from "../integration/api/install.ts";
import { untilDenied } from "../integration/install/users.ts";

export interface Stage extends AsyncDisposable {
  readonly server: ApiServer;
  readonly folder: string;
  readonly programs: Programs;
}

/** The commands that start our programs, without their flags. */
export interface Programs {
  readonly operator: readonly string[];
  readonly agent: readonly string[];
}

interface ControllerOptions {
  readonly controllers?: readonly string[];
  readonly flags?: readonly string[];
}

export const bundledPrograms = (): Programs => ({
  operator: [process.execPath, programPath("operator")],
  agent: [process.execPath, programPath("agent")],
});

export async function setStage(programs: Programs = bundledPrograms()): Promise<Stage> {
  const server = await apiServerWithApi();
  await untilDenied("the policy for Approvals to be in force", () => approveAsNobody(server));
  const folder = mkdtempSync(join(tmpdir(), "pko-faults-"));
  const controllers = startControllers(server, folder);
  return {
    server,
    folder,
    programs,
    async [Symbol.asyncDispose]() {
      await controllers.stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function approveAsNobody({ client }: ApiServer): Promise<void> {
  const { apiVersion, kind } = approvals;
  const metadata = { name: "probe", namespace: "default" };
  const spec = { updateName: "a", updateUid: "a", digest: "a", decision: "Reject", decidedBy: "nobody" } as const;
  await client.create(approvals, { apiVersion, kind, metadata, spec }, { dryRun: true });
}

const workspaceControllers = ["statefulset-controller", "garbage-collector-controller"];

/** By default, those that a workspace needs. */
export function startControllers(
  server: ApiServer,
  folder: string,
  { controllers = workspaceControllers, flags = [] }: ControllerOptions = {},
): ChildProcess {
  const program = join(folder, "kube-controller-manager");
  symlinkSync(toolPath("kube"), program);
  const command = [
    program,
    `--kubeconfig=${server.kubeconfig}`,
    `--controllers=${controllers.join(",")}`,
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
    "--concurrent-gc-syncs=4",
    ...flags,
  ];
  return spawnChild({ command, logFile: join(folder, "controllers.log") });
}
