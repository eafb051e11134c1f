/** The caller's identity and the server's capabilities. */
import type { Call, Handler } from "./http.ts";

export const readUser: Handler = (call: Call) => {
  const { login, organizations, kind, team } = call.identity();
  const [organization] = organizations;
  return {
    id: login,
    githubLogin: login,
    name: login,
    email: `${login}@example.com`,
    avatarUrl: "",
    organizations: organizations.map((name) => ({ githubLogin: name, name, avatarUrl: "" })),
    identities: [],
    ...(kind !== "personal" && { tokenInfo: { name: kind, organization, ...(team !== undefined && { team }) } }),
  };
};

export const readDefaultOrganization: Handler = (call: Call) => ({
  GitHubLogin: call.identity().organizations[0] ?? "",
});

/** Without journals: checkpoints are sent completely, or as deltas if they are larger than the cutoff. */
export const capabilities = (cutoffBytes: number): object => ({
  capabilities: [
    {
      capability: "delta-checkpoint-uploads-v2",
      version: 2,
      configuration: { checkpointCutoffSizeBytes: cutoffBytes },
    },
    { capability: "batch-encrypt" },
  ],
});
