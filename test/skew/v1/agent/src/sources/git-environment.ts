/** The world that the agent's git runs in: as the operator's, and told besides to leave alone what is not asked of it. */
import {
  gitEnvironment,
  gitSettings,
  openRepository,
  settingVariables,
  type GitConfigLine,
  type GitSurroundings,
  type OpenRepository,
  type RepositoryCredentials,
  type Unopened,
} from "../../../git/src/index.ts";
import type { GitSource } from "../../../rpc/src/index.ts";
import { done, failed, type Failure, type Outcome } from "../outcome.ts";

const reasons: Record<Unopened["trouble"], Failure["reason"]> = {
  refused: "sourceInvalid",
  credentials: "sourceInvalid",
  unresolved: "sourceUnavailable",
};

export async function openSource(source: GitSource, surroundings: GitSurroundings): Promise<Outcome<OpenRepository>> {
  const { url, auth, ca } = source;
  const repository = { url, credentials: credentialsOf(auth), ...(ca !== undefined && { ca }) };
  const opened = await openRepository(repository, { surroundings, settings: quietSettings });
  if (opened.kind === "unopened") return failed(reasons[opened.trouble], opened.message);
  return done({ ...opened, env: { ...opened.env, ...withoutLocks } });
}

/** For commands that only read and write on this machine. */
export function localGitEnvironment(surroundings: GitSurroundings): Record<string, string> {
  const settings = [...gitSettings(surroundings.policy), ...quietSettings];
  return { ...gitEnvironment(surroundings), ...withoutLocks, ...settingVariables(settings) };
}

const withoutLocks = { GIT_OPTIONAL_LOCKS: "0" };

const quietSettings: readonly GitConfigLine[] = [
  ["core.fsmonitor", "false"],
  ["http.lowSpeedTime", "60"],
  ["submodule.recurse", "false"],
  ["fetch.recurseSubmodules", "false"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["advice.detachedHead", "false"],
];

function credentialsOf(auth: GitSource["auth"]): RepositoryCredentials {
  if (!auth) return { kind: "none" };
  // The forges take a token as the password of any user.
  return auth.kind === "token" ? { kind: "basic", username: "git", password: auth.token } : auth;
}
