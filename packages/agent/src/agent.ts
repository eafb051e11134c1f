/** Assembles the agent's parts into the service that `@pko/rpc/server` serves. */
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { fail, protocolVersion, succeed, type InfoResult, type PrepareMessage, type RunResult } from "@pko/rpc";
import type { AgentService, Answer, Messages } from "@pko/rpc/server";
import type { Options } from "./options.ts";
import { PulumiCli } from "./pulumi/cli.ts";
import { SignIn } from "./pulumi/cloud/sign-in.ts";
import { Caches } from "./pulumi/project/caches.ts";
import { SecretStore } from "./pulumi/project/secrets.ts";
import { gitHome } from "./sources/git.ts";
import { RunManager } from "./runs/run-manager.ts";
import type { RunRecord } from "./runs/run-folder.ts";
import { removeFolder } from "./system/files.ts";
import { Mutex } from "./system/mutex.ts";
import type { Log } from "./system/log.ts";
import type { Redactor } from "./system/redact.ts";
import { removeLeftovers } from "./workspace/checkout.ts";
import { Preparer } from "./workspace/preparer.ts";
import { recoverWorkspaceLink } from "./workspace/shell.ts";
import { StateFile, type Ready } from "./workspace/state.ts";
import { findTarget } from "./workspace/target.ts";

interface AgentParts {
  readonly options: Options;
  readonly inherited: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly version: string;
}

interface Agent {
  readonly service: AgentService;
  /** Restores the state of an earlier agent process. Await it before serving. */
  recover(): Promise<void>;
  /** Interrupts the active run and waits for its result. */
  stop(): Promise<void>;
}

export function createAgent(parts: AgentParts): Agent {
  const { options, inherited, redactor, log } = parts;
  const startedAt = new Date();
  const state = new StateFile(options.paths.state);
  const signIn = new SignIn({ oidc: options.oidc, redactor, log });
  redactor.addEnvironment(inherited, options.secretVariables);
  const cli = new PulumiCli({
    file: options.pulumi,
    state: options.paths.state,
    inherited,
    redactor,
    signIn,
    caches: new Caches({ folder: options.caches, plugins: options.pluginCache, log }),
  });
  const secrets = new SecretStore();
  const preparer = new Preparer({ options, inherited, cli, secrets, state, log });
  const runs = createRunManager(parts, { cli, secrets, state, preparer });
  // A run and a preparation exclude each other, so checking for one and starting the other must be atomic.
  const mutex = new Mutex();
  const progress = { stopping: false };

  const info = async (): Answer<InfoResult> => {
    // Do not wait for the CLI here: an operator calls `info` before its first request.
    const version = cli.knownVersion;
    const { ready } = await state.read();
    const activeRun = await runs.activeRun();
    return succeed({
      protocol: protocolVersion,
      agentVersion: parts.version,
      ...(version && { pulumiVersion: version.text }),
      hostname: hostname(),
      startedAt: startedAt.toISOString(),
      stopping: progress.stopping,
      ...(ready && { prepared: { revision: ready.revision, stack: ready.stacks[0]?.name ?? "" } }),
      ...(activeRun !== undefined && { activeRun }),
      residentBytes: process.memoryUsage.rss(),
    });
  };

  const prepare: AgentService["prepare"] = (request) =>
    mutex.run(async (): Messages<PrepareMessage> => {
      if (progress.stopping) return fail("stopping", "the workspace is stopping");
      const activeRun = await runs.activeRun();
      if (activeRun !== undefined) return { ok: false, error: { code: "busy", message: "a run is active", activeRun } };
      return succeed(await preparer.prepare(request));
    });

  return {
    service: {
      info,
      prepare,
      attach: (runId) => runs.attach(runId),
      start: (request) =>
        mutex.run(async () =>
          preparer.isBusy ? fail("busy", "the workspace is being prepared") : await runs.start(request),
        ),
      cancel: (request) => runs.cancel(request),
      watch: (request, signal) => runs.watch(request, signal),
      outputs: ({ runId }, signal) => runs.outputs(runId, signal),
      plan: ({ runId }) => runs.plan(runId),
      record: ({ runId }) => runs.record(runId),
    },
    async recover() {
      await recoverFolders(parts, state);
      await runs.recover();
    },
    async stop() {
      progress.stopping = true;
      await Promise.all([preparer.stop(), runs.stop()]);
    },
  };
}

interface RunParts {
  readonly cli: PulumiCli;
  readonly secrets: SecretStore;
  readonly state: StateFile;
  readonly preparer: Preparer;
}

function createRunManager({ options, inherited, log, version }: AgentParts, parts: RunParts): RunManager {
  const { cli, secrets, state, preparer } = parts;
  return new RunManager({
    runs: options.paths.runs,
    cli,
    log,
    hostname: hostname(),
    namespace: inherited["POD_NAMESPACE"],
    graceSeconds: options.graceSeconds,
    agentVersion: version,
    workspaceUid: options.workspaceUid,
    image: options.image,
    policyPacks: options.policyPacks,
    targetFor: (request) => findTarget(request, state, { cli, secrets, state: options.paths.state }),
    knowsSecrets: () => preparer.hasStarted,
    onResult: (record, result) => settleStack(state, record, result),
  });
}

/** Removes what an earlier agent process left behind, and restores the links for shells. */
async function recoverFolders({ options, log }: AgentParts, state: StateFile): Promise<void> {
  await removeLeftovers(options.paths);
  const { ready } = await state.read();
  await recoverWorkspaceLink(options.paths.workspace, ready?.projectFolder, log);
  // Git credentials that a killed agent could not delete.
  await removeFolder(join(options.paths.state, gitHome));
}

/** Updates the prepared state after a run that removed its stack or did not find it. */
async function settleStack(state: StateFile, record: RunRecord, result: RunResult): Promise<void> {
  const { operation } = record;
  const removes = operation.kind === "destroy" && operation.remove === true && operation.previewOnly !== true;
  const isRemoved = removes && result.outcome === "succeeded";
  if (!isRemoved && result.error?.class !== "stackNotFound") return;
  const { selected = [], ready, source, ...rest } = await state.read();
  const { stack, settings } = record.ready;
  const remaining = ready && withoutStack(ready, stack, isRemoved);
  await state.write({
    ...rest,
    // The CLI also removes the stack's settings file from the checkout, so the source is checked out again.
    ...(source && !isRemoved && { source }),
    selected: selected.filter((known) => known.stack !== stack),
    ...(remaining && { ready: remaining }),
  });
  if (isRemoved) await removeFolder(dirname(settings));
}

/** The prepared state without a stack that no longer exists. Undefined if the workspace must be prepared again. */
function withoutStack(ready: Ready, stack: string, isRemoved: boolean): Ready | undefined {
  // The source may have contained settings for a stack that the workspace does not list.
  if (ready.stacks.length === 0) return isRemoved ? undefined : ready;
  const stacks = ready.stacks.filter(({ name }) => name !== stack);
  return stacks.length === 0 ? undefined : { ...ready, stacks };
}
