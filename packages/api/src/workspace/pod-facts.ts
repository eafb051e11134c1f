/** Fixed names and paths in a workspace pod, on which templates and init containers may rely. */

export const pulumiContainer = "pulumi";
/** The init container that installs the agent. It runs before all others. */
export const bootstrapContainer = "bootstrap";
export const shareVolume = "share";
export const shareFolder = "/share";
/** The program, with its Pulumi.yaml. */
export const workspaceFolder = `${shareFolder}/workspace`;

/** Names the file to which init containers may append environment variables for Pulumi. */
export const dynamicEnvVariable = "PULUMI_ENV";

export const secretFolderOf = (secretName: string): string =>
  `/var/run/secrets/stacks.pulumi.com/secrets/${secretName}`;

export const configMapFolderOf = (configMapName: string): string =>
  `/var/run/configmaps/stacks.pulumi.com/configmaps/${configMapName}`;

export const securityProfiles = ["restricted", "baseline"] as const;
export type SecurityProfile = (typeof securityProfiles)[number];

export const defaultImages: Readonly<Record<SecurityProfile, string>> = {
  restricted: "pulumi/pulumi:latest-nonroot",
  baseline: "pulumi/pulumi:latest",
};

export const defaultRequests = { memory: "64Mi", cpu: "100m" } as const;
