/** The operator's settings for all workspaces. */
import type { OidcDefaults } from "./pod/oidc.ts";

export interface WorkspaceSettings {
  /** The image that contains the agent's executable. */
  readonly agentImage: string;
  readonly agentImagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** More flags for the agent; its options.ts lists them. */
  readonly agentFlags?: readonly string[];
  /** How long a pod is kept after its last Update, unless the Workspace sets it; 0 keeps it forever. */
  readonly idleTimeoutMs: number;
  /** How long a pod may be overdue before its node counts as lost; `defaultLostNodeMs` by default. */
  readonly lostNodeAfterMs?: number;
  /** How long the certificate of an agent is not read again; a minute by default. */
  readonly certificateMs?: number;
  /** Whether templates that violate their security profile are refused; true by default. */
  readonly enforceSecurityProfile?: boolean;
  /** How workspaces without a token sign in to Pulumi Cloud. */
  readonly oidc?: OidcDefaults;
  /** The size limit of an unpacked Flux artifact in bytes; the agent's own limit by default. */
  readonly maxUnpackedBytes?: number;
}
