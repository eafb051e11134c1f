export { clusterKubeconfig, givenKubeconfig } from "./cluster.ts";
export { layout } from "./layout.ts";
export { publishOperatorImage } from "./operator-image.ts";
export { clusterNamespace, runningSupervisor } from "./lifecycle.ts";
export { network } from "./network.ts";
export { stateRoot } from "./paths.ts";
export * from "./pki.ts";
export { processesIn } from "./processes.ts";
export { toolPath, type ToolName } from "./tools.ts";
