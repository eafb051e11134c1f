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
import { isForbidden, resource } from "@pko/kube";
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
  const list = ["get", kinds.join(","), "--all-namespaces"];
  await waitFor(async () => (await server.kubectl(list)) !== undefined, {
    timeoutMs: testTimeoutMs / 2,
    what: "the kinds to be served",
  });
  await untilPoliciesAreInForce(server);
  return server;
}

/**
 * The API server enforces new policies after a delay, in the order in which they were created. The last one of the manifest protects
 * Stacks from deletion.
 */
async function untilPoliciesAreInForce({ client }: ApiServer): Promise<void> {
  const { apiVersion, kind } = stackKind;
  const probe = { name: "probe", namespace: "default" };
  const spec = { stack: "dev", programRef: { name: "probe" }, protect: true };
  await client.create(stacks, { apiVersion, kind, metadata: probe, spec });
  const isDenied = (): Promise<boolean> =>
    client.delete(stacks, probe, { dryRun: true }).then(() => false, isForbidden);
  await waitFor(isDenied, { timeoutMs: testTimeoutMs / 2, what: "the policies to be in force" });
  await client.patch(stacks, probe, { patch: { type: "merge", body: { spec: { protect: false } } } });
  await client.delete(stacks, probe);
}
