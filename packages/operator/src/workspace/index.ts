/** What the rest of the operator needs from the Workspace controller. */
export { workspaceController } from "./controller.ts";
export { statefulSetIndexers } from "./observe/pod.ts";
export { podIndexers } from "./preemptions.ts";
export { plainOidc, type OidcDefaults } from "./pod/oidc.ts";
export { projectYaml } from "./prepare/request.ts";
export type { WorkspaceSettings } from "./settings.ts";
