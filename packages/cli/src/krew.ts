/** The manifest of kubectl-pulumi for krew. `make release-files` fills in the checksums. */
import { version } from "@pko/api";

const platforms = ["linux", "darwin"].flatMap((os) => ["amd64", "arm64"].map((arch) => ({ os, arch })));
const homepage = "https://github.com/pulumi/pulumi-kubernetes-operator";

export const krewTemplate: object = {
  apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
  kind: "Plugin",
  metadata: { name: "pulumi" },
  spec: {
    version: `v${version}`,
    homepage,
    shortDescription: "Show and control Pulumi Stacks",
    description:
      "Shows why a Stack of the Pulumi Kubernetes Operator is not up to date, its logs, history and outputs, and controls it: reconcile, cancel, suspend, approve. Uses only the permissions of its user.",
    platforms: platforms.map(({ os, arch }) => {
      const archive = `kubectl-pulumi-${os}-${arch}.tar.gz`;
      return {
        selector: { matchLabels: { os, arch } },
        uri: `${homepage}/releases/download/v${version}/${archive}`,
        sha256: `SHA256_OF_${archive}`,
        files: [
          { from: "kubectl-pulumi", to: "." },
          { from: "LICENSE", to: "." },
        ],
        bin: "kubectl-pulumi",
      };
    }),
  },
};
