/** The Pulumi CLI: its environment, its version, and its short commands. Runs are started by `operation.ts`. */
import { errorMessage, secretVariablesVariable } from "@pko/rpc";
import { done, failed, type Outcome } from "../outcome.ts";
import { runCommand, type CommandEnd } from "../system/command.ts";
import type { Redactor } from "../system/redact.ts";
import { credentialsVariable, type SignIn, type SignInRequest } from "./cloud/sign-in.ts";
import { readEnvFile } from "./env-file.ts";
import { parseVersion, type Version } from "./version.ts";
import { ensureFolder, withWritableFolders } from "./writable-folders.ts";

interface CliOptions {
  readonly file: string;
  /** A folder of the agent's own. */
  readonly state: string;
  readonly inherited: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
  readonly signIn: SignIn;
}

interface CliCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly input?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** First, because a command's own arguments may end its options. */
export const globalFlags: readonly string[] = ["--non-interactive", "--color=never"];

const commandTimeoutMs = 10 * 60_000;

export class PulumiCli {
  readonly file: string;
  readonly redactor: Redactor;
  readonly #options: CliOptions;
  #version: Promise<Outcome<Version>> | undefined;
  #knownVersion: Version | undefined;

  constructor(options: CliOptions) {
    this.file = options.file;
    this.redactor = options.redactor;
    this.#options = options;
  }

  /** Read anew for every command: init containers and sidecars may have added to `$PULUMI_ENV`. */
  async environment(): Promise<Record<string, string>> {
    const env = await this.#ownEnvironment();
    return { ...env, ...this.#options.signIn.variables(env) };
  }

  /** Before commands that speak to the backend, which may be Pulumi Cloud. */
  async signIn(request: Omit<SignInRequest, "env">): Promise<Outcome<undefined>> {
    return await this.#options.signIn.ensure({ ...request, env: await this.#ownEnvironment() });
  }

  /** The backend refuses the token that signing in brought: the next time brings another. */
  signOut(): void {
    this.#options.signIn.forget();
  }

  /** Whether the token that signing in brought is over. */
  get hasTokenEnded(): boolean {
    return this.#options.signIn.hasEnded;
  }

  async #ownEnvironment(): Promise<Record<string, string>> {
    const { inherited, state, redactor, signIn } = this.#options;
    // The folder of credentials is the container's for shells: a login of the image's own must be found without it.
    const isForShells = (name: string, value: string): boolean =>
      name === credentialsVariable && value === signIn.credentialsFolder;
    const own = Object.entries(inherited).flatMap(([name, value]) =>
      value === undefined || name === secretVariablesVariable || isForShells(name, value)
        ? []
        : [[name, value] as const],
    );
    const added = await readEnvFile(inherited["PULUMI_ENV"]);
    const env: Record<string, string> = {
      PULUMI_SKIP_UPDATE_CHECK: "true",
      // The CLI's own logs of every command: by default a week of them, up to 500 MB of the pod's disk.
      PULUMI_LOG_ROTATION_MAX_AGE_DAYS: "1",
      PULUMI_LOG_ROTATION_MAX_TOTAL_MB: "32",
      // A stack that exists keeps its secrets provider, though its settings file is not in the repository.
      PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER: "true",
      ...Object.fromEntries(own),
      ...added,
      // What shows `--event-log`.
      PULUMI_DEBUG_COMMANDS: "true",
    };
    redactor.addEnvironment(env);
    return withWritableFolders(env, state);
  }

  async run(command: CliCommand): Promise<CommandEnd> {
    return await runCommand({
      file: this.file,
      args: [...globalFlags, ...command.args],
      cwd: command.cwd,
      env: await this.environment(),
      timeoutMs: command.timeoutMs ?? commandTimeoutMs,
      ...(command.input !== undefined && { input: command.input }),
      ...(command.signal && { signal: command.signal }),
    });
  }

  /** Undefined until the CLI has answered. */
  get knownVersion(): Version | undefined {
    return this.#knownVersion;
  }

  /** Asked once: the image does not change under a living pod. A failure is not remembered. */
  async version(): Promise<Outcome<Version>> {
    const asked = (this.#version ??= this.#readVersion());
    const version = await asked;
    if (!version.ok && this.#version === asked) this.#version = undefined;
    if (version.ok) this.#knownVersion = version.value;
    return version;
  }

  /** Asked without waiting for it, too: so whatever breaks is a failure, which whoever waits reports. */
  async #readVersion(): Promise<Outcome<Version>> {
    let end: CommandEnd;
    try {
      end = await this.run({ args: ["version"], cwd: ensureFolder(this.#options.state), timeoutMs: 60_000 });
    } catch (error) {
      return failed("other", errorMessage(error));
    }
    if (end.kind === "missing") {
      return failed("toolMissing", "the workspace's image has no `pulumi`: use one of the pulumi/pulumi images");
    }
    const version = end.kind === "exited" && end.code === 0 ? parseVersion(end.stdout) : undefined;
    return version ? done(version) : failed("other", "`pulumi version` did not answer with a version");
  }
}
