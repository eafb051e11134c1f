/** Installs the quickstart manifest in the shared API server, once per process. */
import {
  customResourceDefinitions,
  programKind,
  stackKind,
  updateKind,
  updateRecordKind,
  workspaceKind,
} from "@pko/api";
import type { Program, Stack, Update, UpdateRecord, Workspace } from "@pko/api";
import { isInvalid, resource } from "@pko/kube";
import { sharedApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { fileURLToPath } from "node:url";

export const stacks = resource<Stack>(stackKind);
export const programs = resource<Program>(programKind);
export const workspaces = resource<Workspace>(workspaceKind);
export const updates = resource<Update>(updateKind);
export const updateRecords = resource<UpdateRecord>(updateRecordKind);

export const pathTo = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const quickstart = pathTo("../../../deploy/quickstart/install.yaml");

/** Timeout in milliseconds for a test or the start of the API server on a busy machine. */
export const testTimeoutMs = 180_000;

/** CRDs of Flux and Argo CD. */
const otherKinds = ["gitrepositories.source.toolkit.fluxcd.io", "applications.argoproj.io"];

let installed: Promise<ApiServer> | undefined;

export async function apiServerWithApi(): Promise<ApiServer> {
  installed ??= install();
  return await installed;
}

async function install(): Promise<ApiServer> {
  const server = await sharedApiServer();
  // Each `kubectl apply` would also read every object, and the schemas of all kinds.
  const files = ["--filename", quickstart, "--filename", pathTo("fixtures/other-kinds.yaml")];
  await server.kubectl(["create", "--validate=false", ...files]);
  const kinds = [...customResourceDefinitions().map(({ metadata }) => metadata.name), ...otherKinds];
  await server.kubectl(["wait", "crd", ...kinds, "--for=condition=Established", "--timeout=30s"]);
  // An established CRD may not be served yet.
  const list = ["get", kinds.join(","), "--all-namespaces"];
  await waitFor(async () => (await server.kubectl(list)) !== undefined, {
    timeoutMs: testTimeoutMs / 2,
    what: "the kinds to be served",
  });
  await waitFor(async () => policyIsInForce(server), {
    timeoutMs: testTimeoutMs / 2,
    what: "the policy to be in force",
  });
  return server;
}

/** The API server enforces a new policy after a delay. */
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
