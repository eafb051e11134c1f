/** `version`: of this command, the cluster and the operator. */
import { crdVersionAnnotation, stackDefinition, version } from "@pko/api";
import { serverVersion } from "@pko/kube";

import { flag, type Command } from "../command.ts";
import { documentOf } from "../documents.ts";
import { crds } from "../kinds.ts";
import { fields, type Field } from "../output/blocks.ts";
import { look, seenValue } from "../visibility.ts";

export const clientVersion: Command = {
  name: "version",
  summary: "Print the versions of this command, the cluster and the operator",
  group: "Administer",
  options: [{ flags: "--client", description: "Only the version of this command, without a cluster." }],
  isLocal: (input) => flag(input, "client"),
  runLocally: async () => ({
    document: documentOf("Version", { client: version }),
    blocks: [fields([["kubectl-pulumi", version]])],
  }),
  async run({ client, credentials, io }) {
    const name = `${stackDefinition.plural}.${stackDefinition.group}`;
    const [kubernetes, crd] = await Promise.all([
      serverVersion(credentials, { signal: io.signal }),
      look("the CRD of Stacks", client.get(crds, { name })),
    ]);
    const operator = seenValue(crd)?.metadata.annotations?.[crdVersionAnnotation];
    const shown: Field[] = [
      ["kubectl-pulumi", version],
      ["Kubernetes", kubernetes],
      [
        "operator",
        operator ??
          (crd.kind === "hidden" ? "unknown: you do not have permission to get its CRDs" : "unknown or not installed"),
      ],
    ];
    return {
      document: documentOf("Version", { client: version, kubernetes, ...(operator !== undefined && { operator }) }),
      blocks: [fields(shown)],
    };
  },
};
