/** What the operator decides for all workspaces. */
import type { OidcDefaults } from "./oidc.ts";

export interface WorkspaceSettings {
  /** The image that holds the agent's executable. */
  readonly agentImage: string;
  readonly agentImagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** More flags for the agent, as its options.ts lists them. */
  readonly agentFlags?: readonly string[];
  /** How long a pod is kept after its last Update, where the Workspace says nothing; 0 keeps it for ever. */
  readonly idleTimeoutMs: number;
  /** How long a pod may be overdue before its node counts as lost; `defaultLostNodeMs` when absent. */
  readonly lostNodeAfterMs?: number;
  /** Whether templates that break their security profile are refused; they are when absent. */
  readonly enforceSecurityProfile?: boolean;
  /** How workspaces sign in to Pulumi Cloud that have no token. */
  readonly oidc?: OidcDefaults;
  /** The most bytes that a Flux artifact may unpack to; the agent's own bound when absent. */
  readonly maxUnpackedBytes?: number;
}
