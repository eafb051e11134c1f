/** Assembles the operator: the clients, the shared stores, the connections to agents, and a controller for each kind. */
import { autoComponentLabel, classesAnnotation, isComplete, leaseName, version } from "@pko/api";
import {
  builtin,
  connect,
  connectFenced,
  eventRecorder,
  kernelAlarm,
  keyOf,
  leaseElector,
  manager,
  metadataOf,
  metricsRegistry,
  reflector,
  refKey,
  requestTelemetry,
  soleLeader,
  systemClock,
  tokenAccess,
  uniqueIdentity,
  type Alarm,
  type Client,
  type Clock,
  type ConnectOptions,
  type Controller,
  type Credentials,
  type Elector,
  type EventRecorder,
  type Logger,
  type Manager,
  type Protection,
  type Registry,
  type ReflectorOptions,
  type Service,
  type Key,
  type KubeObject,
  type Transport,
} from "@pko/kube";
import type { connectAgent } from "@pko/rpc/client";
import { selfSignedCertificate } from "@pko/rpc/pki";

import { policyProbe } from "./approvals/policy-probe.ts";
import { classReflectors } from "./classes/access.ts";
import { operatorCa, type Pki } from "./agents/operator-ca.ts";
import { Agreements } from "./agents/agreements.ts";
import { preparations } from "./agents/preparations.ts";
import { runs } from "./agents/runs.ts";
import { upgradeCrds } from "./crds/upgrade.ts";
import { approvals, notifications, programs, receivers, stacks, updateRecords, updates, workspaces } from "./kinds.ts";
import { notificationController } from "./notification/controller.ts";
import type { Options } from "./options.ts";
import { programController } from "./program/controller.ts";
import { pullRequestController } from "./pull-requests/controller.ts";
import { previewIndexers } from "./pull-requests/indexes.ts";
import { receiverController } from "./receiver/controller.ts";
import { reportController } from "./report/controller.ts";
import { recordsController } from "./records/controller.ts";
import { trimRecord } from "./records/stored-record.ts";
import { referencePoller, type ReferencePoller } from "./inputs/reference-poller.ts";
import type { ListRefs } from "./sources/git-remote.ts";
import { githubAppTokens } from "./sources/github-app.ts";
import { stackController } from "./stack/controller.ts";
import { ownedUpdateIndexers, stackIndexers } from "./stack/indexes.ts";
import { exposeStuckPods } from "./stuck-pod-metrics.ts";
import { updateController } from "./update/controller.ts";
import { approvalIndexers } from "./shared/approvals.ts";
import { clearances } from "./shared/channels/clearances.ts";
import { slots, type Slots } from "./shared/channels/slots.ts";
import type { LogLevelSwitch } from "./shared/channels/log-level.ts";
import { suspensionSwitch, type SuspensionSwitch } from "./shared/channels/suspension.ts";
import { restsUntil, updateIndexers, workspaceIndex } from "./shared/updates.ts";
import { workspaceOfPod } from "./shared/pods/workspace-pod.ts";
import { classReader, namespaceLimit, type ClassReflectors } from "./shared/workspace-classes.ts";
import { createTracer } from "./shared/traces/tracer.ts";
import { UpdateTraces } from "./shared/traces/update-traces.ts";
import { receiverIndexers } from "./webhooks/paths.ts";
import { createWebhooks, type Webhooks } from "./webhooks/webhooks.ts";
import { podIndexers, statefulSetIndexers, workspaceController } from "./workspace/index.ts";

const component = "pulumi-kubernetes-operator";
/** The component names of the Go operator's controllers. */
const eventSource = ({ kind = "" }: { readonly kind?: string }): string => `${kind.toLowerCase()}-controller`;
const ofWorkspaces = { labelSelector: `${autoComponentLabel}=workspace` };

export interface OperatorContext {
  readonly options: Options;
  readonly credentials: Credentials;
  readonly log: Logger;
  /** Receives the level that an annotation of the Lease requests. */
  readonly logLevel?: LogLevelSwitch;
  /** Configures traces, which are off without it. */
  readonly environment?: NodeJS.ProcessEnv;
  /** The operating system's and the network's unless given. */
  readonly platform?: Platform;
}

/** Everything through which the operator reaches what is outside of its process. */
export interface Platform {
  readonly clock?: Clock;
  /** Ends a process that was frozen. */
  readonly alarm?: Alarm | undefined;
  /** Sends requests to the API server. */
  readonly transport?: Transport;
  /** Connects to the agent of a workspace. */
  readonly connectAgent?: typeof connectAgent;
  /** Reads the refs of repositories. */
  readonly listRefs?: ListRefs;
  /** Issues certificates. */
  readonly pki?: Pki;
}

export async function operator(context: OperatorContext): Promise<Manager> {
  const { options, log, platform: { clock = systemClock, ...platform } = {} } = context;
  const metrics = metricsRegistry();
  const traces = updateTraces(context, metrics);
  const webhooks = await createWebhooks(options, log);
  const api = await openApi(context, { metrics, webhooks, clock });
  const { reading, client, elector, events, suspension, workspaceClasses } = api;
  const reflectors = sharedReflectors(reading, options, { log, clock });
  exposeOperator(metrics, reflectors);
  const ca = await loadCa({ client: reading, namespace: options.namespace, ...platform, clock, log, metrics });
  const connections = { ca, agreements: new Agreements(), log, clock, connect: platform.connectAgent };
  const preparing = preparations({
    ...connections,
    wake: (workspace) => workspaceControl.enqueue(refKey(workspace)),
    onEnd: (workspace, preparation) => traces?.prepared(refKey(workspace), preparation),
  });
  const running = runs({
    ...connections,
    wake: (runId) => updateControl.wakeRun(runId),
    preparations: preparing,
    ...(traces && { onEvent: traces.runEvent.bind(traces) }),
  });

  const githubApps = githubAppTokens({ policy: options, inherited: process.env, clock });
  const cleared = clearances((update) => updateControl.enqueue(update));
  const references = referencePoller({ client: reading, everyMs: options.referenceCheckMs, log, clock });
  const wakes = () => ({ owners: [stackControl, workspaceControl], updates: updateControl });
  const limited = operatorSlots(options, { reflectors, workspaceClasses, metrics, wakes, clock });
  const approvalPolicy = policyProbe({ client, log, clock });
  const shared = { ...api, log, metrics, clock, references, approvalPolicy, slots: limited, traces };
  const workspaceControl = workspaceController({
    ...shared,
    reflectors,
    ca,
    preparations: preparing,
    runs: running,
    githubApps,
    clearances: cleared,
    settings: workspaceSettings(options),
  });
  const updateControl = updateController({
    ...shared,
    ...reflectors,
    runs: running,
    projects: preparing,
    clearances: cleared,
    lostNodeAfterMs: options.lostNodeAfterMs,
  });
  const followed = { suspension, pushes: webhooks.pushes, ...stackSettings(options, githubApps) };
  const stackControl = stackController({ ...shared, ...platform, clock, reflectors, ...followed });
  const otherControls = [
    programController({ ...shared, reflector: reflectors.programs }),
    receiverController({ ...shared, ...webhooks, reflector: reflectors.receivers }),
    notificationController({ ...shared, reflectors, sending: { policy: options, inherited: process.env } }),
    recordsController({ ...shared, ...reflectors, maxTotalBytes: options.maxRecordsBytes }),
    reportController({ ...shared, ...reflectors, suspension, githubApps, http: forgeSettings(options) }),
    pullRequestController({ ...shared, reflector: reflectors.stacks, updates: reflectors.updates, ...followed }),
  ];

  return manager({
    reflectors: { ...reflectors, ...workspaceClasses },
    controllers: [stackControl, workspaceControl, updateControl, ...otherControls],
    services: services({ ca, webhooks, reflectors, workspaceControl, elector, metrics }),
    elector,
    ...(await endpoints(options, reading)),
    flush: () => endTerm({ references, slots: limited, events, preparing, running, traces }),
    log,
    metrics,
    clock,
  });
}

/** Undefined if traces are off. */
function updateTraces(
  { options, log, environment = {} }: OperatorContext,
  metrics: Registry,
): UpdateTraces | undefined {
  const tracer = createTracer({ environment, podName: options.podName, log, metrics });
  return tracer && new UpdateTraces(tracer);
}

/** What belongs to no controller. */
function exposeOperator(metrics: Registry, reflectors: ReturnType<typeof sharedReflectors>): void {
  const build = metrics.gauge({
    name: "operator_build_info",
    help: "1, with the versions of the operator and of its runtime.",
    labels: ["version", "bun"],
  });
  build.set({ version, bun: Bun.version }, 1);
  const { updates, workspaces } = reflectors;
  exposeStuckPods(metrics, { updates: updates.store, workspaces: workspaces.store });
}

interface ApiParts {
  readonly metrics: Registry;
  readonly webhooks: Webhooks;
  readonly clock: Clock;
}

/** What reads from the API server, and what may write to it while this process leads. */
async function openApi(context: OperatorContext, { metrics, webhooks, clock }: ApiParts) {
  const { options, credentials, log, platform: { transport } = {} } = context;
  const onResponse = requestTelemetry({ log, metrics, clock });
  const connection = { ...connectOptions(options), clock, onResponse, ...(transport && { transport }) };
  const reading = connect(credentials, connection);
  if (options.upgradeCrds) await upgradeCrds({ client: reading, log });
  const suspension = suspensionSwitch({ log, metrics });
  const workspaceClasses = await classReflectors(reading, { ...watchErrors(log), clock, timing: unhurried }, log);
  const parts = { ...context, connection, clock, metrics, suspension, workspaceClasses, webhooks };
  const elector = createElector(options, parts);
  const client = connectFenced({ credentials, leadership: elector, options: connection });
  const events = eventRecorder({ client, component: eventSource, instance: options.podName, log, metrics, clock });
  return { reading, client, elector, events, suspension, workspaceClasses };
}

interface TermParts {
  readonly references: Pick<ReferencePoller, "stop">;
  readonly slots: Pick<Slots, "clear">;
  readonly events: Pick<EventRecorder, "flush">;
  readonly preparing: { stop(): Promise<unknown> };
  readonly running: { stop(): Promise<unknown> };
  readonly traces: Pick<UpdateTraces, "flush"> | undefined;
}

/** The agents continue their work, and the next leader attaches to it. */
async function endTerm(parts: TermParts): Promise<void> {
  // The controllers have stopped, so none of their passes can follow or claim anything from here on.
  parts.references.stop();
  parts.slots.clear();
  await Promise.all([parts.events.flush(), parts.preparing.stop(), parts.running.stop()]);
  await parts.traces?.flush();
}

async function loadCa(options: Parameters<typeof operatorCa>[0]): Promise<ReturnType<typeof operatorCa>> {
  const ca = operatorCa(options);
  await ca.load();
  return ca;
}

interface ServiceParts {
  readonly ca: Pick<ReturnType<typeof operatorCa>, "follow">;
  readonly webhooks: Webhooks;
  readonly reflectors: ReturnType<typeof sharedReflectors>;
  readonly workspaceControl: Controller;
  readonly elector: Elector;
  readonly metrics: Registry;
}

/** They also run on standby: a replica may lead again after it has lost its Lease. */
function services(parts: ServiceParts): readonly Service[] {
  const { ca, webhooks, reflectors, workspaceControl, elector, metrics } = parts;
  const followCa = (): (() => Promise<void>) => {
    // Workspaces without a pod get a certificate when they wake.
    const stop = ca.follow(() => enqueueAll(workspaceControl, workspacesWithPods(reflectors)));
    return () => Promise.resolve(stop());
  };
  const { store } = reflectors.receivers;
  return [{ start: followCa }, ...webhooks.serve({ store, metrics, isLeading: () => elector.isCertain() })];
}

interface SlotParts {
  readonly reflectors: ReturnType<typeof sharedReflectors>;
  readonly workspaceClasses: ClassReflectors | undefined;
  readonly metrics: Registry;
  readonly clock: Clock;
  /** The controllers of what waits for a slot. A Workspace has the name of its Stack. */
  readonly wakes: () => { readonly owners: readonly Controller[]; readonly updates: Controller };
}

function operatorSlots(options: Options, parts: SlotParts): Slots {
  const { reflectors, workspaceClasses, metrics, clock, wakes } = parts;
  const { maxConcurrentUpdates: total, maxConcurrentUpdatesPerNamespace } = options;
  const inNamespace = namespaceLimit(classReader(workspaceClasses), maxConcurrentUpdatesPerNamespace);
  const { store } = reflectors.updates;
  const wake = (workspace: Key): void => {
    const waiting = store.activeByIndex(workspaceIndex, workspace).filter((update) => !isComplete(update));
    for (const control of wakes().owners) control.enqueue(workspace);
    for (const update of waiting) wakes().updates.enqueue(keyOf(update));
  };
  return slots({ limits: { total, inNamespace }, updates: store, wake, metrics, clock });
}

/** All if none is named. */
const watchedNamespaces = ({ watchNamespaces }: Options): { namespaces?: readonly string[] } =>
  watchNamespaces.length > 0 ? { namespaces: watchNamespaces } : {};

/** Those without a pod get a certificate when they wake. */
const stackSettings = (options: Options, githubApps: ReturnType<typeof githubAppTokens>) => ({
  git: { policy: options, inherited: process.env, githubApps },
  minResyncSeconds: options.minResyncMs / 1000,
  ...watchedNamespaces(options),
});

const forgeSettings = (options: Options) => ({ policy: options, environment: process.env });

function enqueueAll(controller: Controller, keys: readonly Key[]): void {
  for (const key of keys) controller.enqueue(key);
}

const workspacesWithPods = ({ pods }: ReturnType<typeof sharedReflectors>): Key[] =>
  pods.store.list().flatMap((pod) => workspaceOfPod(pod) ?? []);

/** Of kinds for which no one waits, and that rarely change: a lost event may be found minutes later. */
const unhurried = { quietCompareMinMs: 8 * 60_000, quietCompareMaxMs: 10 * 60_000 };

const watchErrors = (log: Logger): Pick<ReflectorOptions<KubeObject>, "onError"> => ({
  onError: (error, what) => log.warn("watch interrupted", { what, error }),
});

/** The stores that the controllers share. */
function sharedReflectors(reading: Client, options: Options, { log, clock }: Pick<ElectorParts, "log" | "clock">) {
  const watched = <T extends KubeObject>(more: ReflectorOptions<T> = {}): ReflectorOptions<T> => ({
    ...watchedNamespaces(options),
    ...watchErrors(log),
    clock,
    ...more,
  });
  return {
    stacks: reflector(reading, stacks, watched({ indexers: { ...stackIndexers, ...previewIndexers } })),
    programs: reflector(reading, programs, watched()),
    workspaces: reflector(reading, workspaces, watched()),
    updates: reflector(
      reading,
      updates,
      watched({ indexers: { ...updateIndexers, ...ownedUpdateIndexers }, archive: restsUntil }),
    ),
    approvals: reflector(reading, approvals, watched({ indexers: approvalIndexers })),
    receivers: reflector(reading, receivers, watched({ indexers: receiverIndexers, timing: unhurried })),
    notifications: reflector(reading, notifications, watched({ timing: unhurried })),
    // Never their content, which would take more memory than everything else.
    records: reflector(reading, metadataOf(updateRecords), watched({ trim: trimRecord, timing: unhurried })),
    statefulSets: reflector(reading, builtin.statefulSets, watched({ ...ofWorkspaces, indexers: statefulSetIndexers })),
    pods: reflector(reading, builtin.pods, watched({ ...ofWorkspaces, indexers: podIndexers })),
  };
}

interface ElectorParts extends Pick<OperatorContext, "credentials" | "log" | "logLevel" | "platform"> {
  readonly clock: Clock;
  readonly connection: ConnectOptions;
  readonly metrics: Registry;
  readonly suspension: SuspensionSwitch;
  readonly workspaceClasses: ClassReflectors | undefined;
  readonly webhooks: Webhooks;
}

function createElector(options: Options, parts: ElectorParts): Elector {
  const { credentials, connection, log, logLevel, metrics, suspension, workspaceClasses, webhooks, clock } = parts;
  if (!options.leaderElection) return soleLeader();
  return leaseElector({
    client: connect(credentials, connection),
    lease: { namespace: options.namespace, name: leaseName },
    identity: uniqueIdentity(options.podName),
    alarm: parts.platform ? parts.platform.alarm : kernelAlarm(),
    clock,
    annotations: () => ({ [classesAnnotation]: workspaceClasses ? "on" : "off", ...webhooks.ownAnnotations() }),
    onAnnotations(present) {
      suspension.read(present);
      logLevel?.read(present, log);
      webhooks.readLeader(present);
    },
    log,
    metrics,
    ...options.leaderElection,
  });
}

/** A third for each attempt, so that an attempt that hangs leaves time for another. */
function connectOptions({ kubeApiTimeoutMs }: Options): ConnectOptions {
  return { userAgent: component, timeoutMs: kubeApiTimeoutMs, attemptTimeoutMs: Math.ceil(kubeApiTimeoutMs / 3) };
}

/** Not served if they have no address. */
async function endpoints({ probes, metrics, metricsSecure }: Options, client: Client) {
  return {
    ...(probes && { probes }),
    ...(metrics && { metricsEndpoint: { ...metrics, ...(metricsSecure && (await metricsProtection(client))) } }),
  };
}

async function metricsProtection(client: Client): Promise<Protection> {
  return {
    tls: await selfSignedCertificate(component, new Date(systemClock.now())),
    ...tokenAccess({ client, path: "/metrics" }),
  };
}

function workspaceSettings(options: Options) {
  return {
    agentImage: options.agentImage,
    ...(options.agentImagePullPolicy && { agentImagePullPolicy: options.agentImagePullPolicy }),
    idleTimeoutMs: options.idleTimeoutSeconds * 1000,
    lostNodeAfterMs: options.lostNodeAfterMs,
    enforceSecurityProfile: options.enforceSecurityProfile,
    oidc: options.oidc,
    maxUnpackedBytes: options.maxUnpackedBytes,
    agentFlags: [
      ...(options.allowHttp ? ["--allow-http"] : []),
      ...(options.allowedAddresses.length > 0 ? [`--allow-addresses=${options.allowedAddresses.join(",")}`] : []),
    ],
  };
}
