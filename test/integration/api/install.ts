/** Puts the API into the tests' API server, as the quickstart manifest does, once for a run. */
import { customResourceDefinitions, programKind, stackKind, updateKind, workspaceKind } from "@pko/api";
import type { Program, Stack, Update, Workspace } from "@pko/api";
import { isInvalid, resource } from "@pko/kube";
import { sharedApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { fileURLToPath } from "node:url";

export const stacks = resource<Stack>(stackKind);
export const programs = resource<Program>(programKind);
export const workspaces = resource<Workspace>(workspaceKind);
export const updates = resource<Update>(updateKind);

export const pathTo = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const quickstart = pathTo("../../../deploy/quickstart/install.yaml");

let installed: Promise<ApiServer> | undefined;

export async function apiServerWithApi(): Promise<ApiServer> {
  installed ??= install();
  return await installed;
}

async function install(): Promise<ApiServer> {
  const server = await sharedApiServer();
  await server.kubectl(["apply", "--filename", quickstart, "--filename", pathTo("fixtures/other-kinds.yaml")]);
  const crds = customResourceDefinitions().map(({ metadata }) => `crd/${metadata.name}`);
  await server.kubectl(["wait", ...crds, "--for=condition=Established", "--timeout=30s"]);
  await waitFor(async () => policyIsInForce(server), { what: "the admission policy to be in force" });
  return server;
}

/** The API server reads new policies a moment after they are written. */
async function policyIsInForce(server: ApiServer): Promise<boolean> {
  const probe: Stack = {
    apiVersion: stackKind.apiVersion,
    kind: stackKind.kind,
    metadata: { name: "probe", namespace: "default" },
    spec: { stack: "dev", programRef: { name: "probe" }, prerequisites: [{ type: "Stack" }] },
  };
  try {
    await server.client.create(stacks, probe, { dryRun: true });
    return false;
  } catch (error) {
    if (isInvalid(error)) return true;
    throw error;
  }
}
