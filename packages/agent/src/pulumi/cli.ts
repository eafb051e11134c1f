/** The Pulumi CLI: its environment, its version and its short commands. `operation.ts` has the commands of runs. */
import { errorMessage, secretVariablesVariable, type KnownCli } from "@pko/rpc";
import { done, failed, type Outcome } from "../outcome.ts";
import { runCommand, type CommandEnd } from "../system/command.ts";
import type { Redactor } from "../system/redact.ts";
import { identifyCli } from "./cli-file.ts";
import { credentialsVariable, type SignIn, type SignInRequest } from "./cloud/sign-in.ts";
import { readEnvFile } from "./env-file.ts";
import { parseVersion, type Version } from "./version.ts";
import type { Caches } from "./project/caches.ts";
import { ensureFolder, withWritableFolders } from "./project/writable-folders.ts";

interface CliOptions {
  readonly file: string;
  /** The agent's folder. */
  readonly state: string;
  readonly inherited: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
  readonly signIn: SignIn;
  readonly caches?: Caches;
}

interface CliCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly input?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Passed first, because a command's own arguments may end with `--`. */
export const globalFlags: readonly string[] = ["--non-interactive", "--color=never"];

export const noPulumi = "the workspace's image has no `pulumi`; use one of the pulumi/pulumi images";

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

  /** Read for every command, because init containers and sidecars may append to `$PULUMI_ENV`. */
  async environment(): Promise<Record<string, string>> {
    const env = await this.ownEnvironment();
    return { ...env, ...this.#options.signIn.variables(env) };
  }

  /** Call this before commands that access the backend, which may be Pulumi Cloud. */
  async signIn(request: Omit<SignInRequest, "env">): Promise<Outcome<undefined>> {
    return await this.#options.signIn.ensure({ ...request, env: await this.ownEnvironment() });
  }

  /** Discards the token after the backend rejected it, so that the next command gets a new one. */
  signOut(): void {
    this.#options.signIn.forget();
  }

  /** Whether the access token from signing in has expired. */
  get hasTokenExpired(): boolean {
    return this.#options.signIn.hasExpired;
  }

  /** The environment without the variables from signing in. */
  async ownEnvironment(): Promise<Record<string, string>> {
    const { inherited, state, redactor, signIn, caches } = this.#options;
    // The container sets this folder for shells. Without it the CLI finds the credentials of the image.
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
      // By default the CLI keeps its logs for a week, up to 500 MB of the pod's disk.
      PULUMI_LOG_ROTATION_MAX_AGE_DAYS: "1",
      PULUMI_LOG_ROTATION_MAX_TOTAL_MB: "32",
      // An existing stack keeps its secrets provider although its settings file is not in the repository.
      PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER: "true",
      ...Object.fromEntries(own),
      ...added,
      // Enables `--event-log`.
      PULUMI_DEBUG_COMMANDS: "true",
    };
    redactor.addEnvironment(env);
    const result = withWritableFolders(env, state);
    return caches ? await caches.usable(result) : result;
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

  /** Undefined until the CLI has reported its version. */
  get knownVersion(): Version | undefined {
    return this.#knownVersion;
  }

  /** Identifies the executable; undefined if that does not determine its version. */
  async identity(): Promise<string | undefined> {
    const { PATH } = await this.ownEnvironment();
    return await identifyCli(this.file, PATH);
  }

  /** Adopts the version if it is known for this executable: a start of the CLI takes longer than the rest of most steps. */
  async adoptVersion(known: readonly KnownCli[]): Promise<void> {
    if (this.#version !== undefined || known.length === 0) return;
    const identity = await this.identity();
    const version = known.find(({ cli }) => cli === identity)?.version;
    const parsed = version === undefined ? undefined : parseVersion(version);
    if (!parsed) return;
    this.#version ??= Promise.resolve(done(parsed));
  }

  /** Read once, because the image of a running pod does not change. A failure is not cached. */
  async version(): Promise<Outcome<Version>> {
    const pending = (this.#version ??= this.#readVersion());
    const version = await pending;
    if (!version.ok && this.#version === pending) this.#version = undefined;
    if (version.ok) this.#knownVersion = version.value;
    return version;
  }

  /** Never rejects, because some callers do not await it. */
  async #readVersion(): Promise<Outcome<Version>> {
    let end: CommandEnd;
    try {
      end = await this.run({ args: ["version"], cwd: ensureFolder(this.#options.state), timeoutMs: 60_000 });
    } catch (error) {
      return failed("other", errorMessage(error));
    }
    if (end.kind === "missing") {
      return failed("toolMissing", noPulumi);
    }
    const version = end.kind === "exited" && end.code === 0 ? parseVersion(end.stdout) : undefined;
    return version
      ? done(version)
      : failed("other", "`pulumi version` did not print a version; check the workspace's image");
  }
}
