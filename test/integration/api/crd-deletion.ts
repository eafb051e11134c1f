/** Deleting CRDs, for which an API server can take minutes. */
import { waitFor, type ApiServer } from "@pko/testkit";

/** The API server waits a minute for the deletion of the objects of a kind, and then tries again after a pause. */
export const crdDeletionMs = 240_000;

/** Before a CRD is served, deleting it takes minutes. */
export async function untilServed(server: ApiServer): Promise<void> {
  const crds = await server.kubectl(["get", "customresourcedefinitions", "--output=name"]);
  const ours = crds.split("\n").filter((name) => name.endsWith("pulumi.com"));
  const kinds = ours.map((name) => name.split("/")[1]).join(",");
  await waitFor(() => server.kubectl(["get", kinds, "--all-namespaces"]).then(() => true), {
    timeoutMs: 60_000,
    what: `the kinds to be served: ${kinds}`,
  });
}
