/** What the operator decides for all workspaces. */

export interface WorkspaceSettings {
  /** The image that holds the agent's executable. */
  readonly agentImage: string;
  readonly agentImagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** More flags for the agent, as its options.ts lists them. */
  readonly agentFlags?: readonly string[];
  /** How long a pod is kept after its last Update, where the Workspace says nothing; 0 keeps it for ever. */
  readonly idleTimeoutMs: number;
  /** The most bytes that a Flux artifact may unpack to; the agent's own bound when absent. */
  readonly maxUnpackedBytes?: number;
}

export const defaultIdleTimeoutMs = 10 * 60_000;
