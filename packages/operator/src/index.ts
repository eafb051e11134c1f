export * from "./kinds.ts";
export * from "./agents/agents.ts";
export { authority, authoritySecretName, type AuthorityOptions } from "./agents/authority.ts";
export { preparations, type PreparationsOptions } from "./agents/preparations.ts";
export { runs, type RunsOptions } from "./agents/runs.ts";
export { updateController, type UpdateController, type UpdateControllerOptions } from "./update/controller.ts";
export { updateFinalizer } from "./update/finalizer.ts";
export { updateIndexers } from "./update/observe.ts";
export { outputNamesAnnotation, readOutputs, type KeptOutput } from "./update/secrets.ts";
