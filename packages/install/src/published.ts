/** Where .github/workflows/release.yaml publishes a release. The pages name these addresses. */
import { imageTag, version } from "@pko/api";

export const repositoryUrl = "https://github.com/pulumi/pulumi-kubernetes-operator";

export const chartAddress = "oci://ghcr.io/pulumi/helm-charts/pulumi-kubernetes-operator";
export const chartArguments = [chartAddress, "--version", version] as const;
export const manifestUrl = `${repositoryUrl}/releases/download/${imageTag}/install.yaml`;
