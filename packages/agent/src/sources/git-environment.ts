/** The environment of the agent's git: the same as the operator's, with background work and submodules disabled. */
import {
  gitEnvironment,
  gitSettings,
  openRepository,
  settingVariables,
  type GitConfigLine,
  type GitProcessContext,
  type OpenRepository,
  type RepositoryCredentials,
  type Unopened,
} from "@pko/git";
import type { GitSource } from "@pko/rpc";
import { done, failed, type Failure, type Outcome } from "../outcome.ts";

const reasons: Record<Unopened["problem"], Failure["reason"]> = {
  refused: "sourceInvalid",
  credentials: "sourceInvalid",
  unresolved: "sourceUnavailable",
};

export async function openSource(source: GitSource, context: GitProcessContext): Promise<Outcome<OpenRepository>> {
  const { url, auth, ca } = source;
  const repository = { url, credentials: toCredentials(auth), ...(ca !== undefined && { ca }) };
  const opened = await openRepository(repository, { context, settings: agentSettings });
  if (opened.kind === "unopened") return failed(reasons[opened.problem], opened.message);
  return done({ ...opened, env: { ...opened.env, ...withoutLocks } });
}

/** For commands that do not access the network. */
export function localGitEnvironment(context: GitProcessContext): Record<string, string> {
  const settings = [...gitSettings(context.policy), ...agentSettings];
  return { ...gitEnvironment(context), ...withoutLocks, ...settingVariables(settings) };
}

const withoutLocks = { GIT_OPTIONAL_LOCKS: "0" };

const agentSettings: readonly GitConfigLine[] = [
  ["core.fsmonitor", "false"],
  ["http.lowSpeedTime", "60"],
  ["submodule.recurse", "false"],
  ["fetch.recurseSubmodules", "false"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["advice.detachedHead", "false"],
];

function toCredentials(auth: GitSource["auth"]): RepositoryCredentials {
  if (!auth) return { kind: "none" };
  // Git hosting services accept a token as the password of any user.
  return auth.kind === "token" ? { kind: "basic", username: "git", password: auth.token } : auth;
}
