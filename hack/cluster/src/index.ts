export { buildCli, buildOwnCli } from "./cli-executable.ts";
export { ensureClients, helmCommand, kubectlCommand } from "./clients.ts";
export { clusterUp } from "./cluster.ts";
export { podLogFolders } from "./config-files.ts";
export { imageValues } from "./deploy.ts";
export { clusterKubeconfig, givenKubeconfig, givenVariables } from "./given-cluster.ts";
export { goBuildEnv, goProgramEnv } from "./go-programs.ts";
export { imagesFingerprint, isPublished, publishImage } from "./images.ts";
export {
  containersOf,
  describeOperator,
  installedOperators,
  isScaledToZero,
  manifestDeployment,
  operatorNamespace,
  readDeployments,
  servedNamespaces,
  type InstalledOperator,
  type OperatorDeployment,
} from "./installed-operator.ts";
export { kubernetesVersion } from "./kubernetes.ts";
export { layout } from "./layout.ts";
export { deployableImage, prepareOperatorImage, publishOperatorImage, replaceImage } from "./operator-image.ts";
export { clusterNamespace, runningSupervisor } from "./lifecycle.ts";
export { network } from "./network.ts";
export { firstNode, secondNode } from "./nodes.ts";
export { startSecondNode, stopSecondNode } from "./second-node.ts";
export { cacheRoot, repositoryRoot, stateRoot } from "./paths.ts";
export * from "./pki.ts";
export { processesIn } from "./processes.ts";
export { cliVersion } from "./pulumi.ts";
export { step } from "./progress.ts";
export { attempt, CommandFailed, run } from "./shell.ts";
export { answer as answerRegistry } from "./registry.ts";
export { together } from "./together.ts";
export { buildTools, dependencyFolder, moduleSources, providerVersion, toolPath } from "./tools.ts";
export { UserError } from "./user-error.ts";
export { userShellSetup } from "./user-shell.ts";
