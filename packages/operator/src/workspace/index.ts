/** What others need of the Workspace controller. */
export { clearances, type Clearances } from "./clearances.ts";
export { workspaceController } from "./controller.ts";
export { podIndexers } from "./observe.ts";
export { projectYaml, type AppToken, type GitHubApp, type GitHubAppTokens } from "./prepare-request.ts";
export { plainOidc, type OidcDefaults } from "./oidc.ts";
export type { WorkspaceSettings } from "./settings.ts";
