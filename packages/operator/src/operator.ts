/** Assembles the operator: the clients, the shared stores, the connections to agents, and a controller for each kind. */
import { autoComponentLabel, classesAnnotation, isComplete, leaseName } from "@pko/api";
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
  type Client,
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
  type Key,
  type KubeObject,
} from "@pko/kube";
import { selfSignedCertificate } from "@pko/rpc/pki";

import { policyProbe } from "./approvals/policy-probe.ts";
import { classReflectors } from "./classes/access.ts";
import { operatorCa } from "./agents/operator-ca.ts";
import { Agreements } from "./agents/agreements.ts";
import { preparations } from "./agents/preparations.ts";
import { runs } from "./agents/runs.ts";
import { upgradeCrds } from "./crds/upgrade.ts";
import { approvals, programs, receivers, stacks, updateRecords, updates, workspaces } from "./kinds.ts";
import type { Options } from "./options.ts";
import { programController } from "./program/controller.ts";
import { receiverController } from "./receiver/controller.ts";
import { recordsController } from "./records/controller.ts";
import { trimRecord } from "./records/stored-record.ts";
import { referencePoller, type ReferencePoller } from "./inputs/reference-poller.ts";
import { githubAppTokens } from "./sources/github-app.ts";
import { stackController } from "./stack/controller.ts";
import { ownedUpdateIndexers, stackIndexers } from "./stack/indexes.ts";
import { exposeStuckPods } from "./stuck-pod-metrics.ts";
import { updateController } from "./update/controller.ts";
import { approvalIndexers } from "./shared/approvals.ts";
import { clearances } from "./shared/channels/clearances.ts";
import { slots, type Slots } from "./shared/channels/slots.ts";
import { suspensionSwitch, type SuspensionSwitch } from "./shared/channels/suspension.ts";
import { restsUntil, updateIndexers, workspaceIndex } from "./shared/updates.ts";
import { workspaceOfPod } from "./shared/pods/workspace-pod.ts";
import { classReader, namespaceLimit, type ClassReflectors } from "./shared/workspace-classes.ts";
import { receiverIndexers } from "./webhooks/paths.ts";
import { createWebhooks, type Webhooks } from "./webhooks/webhooks.ts";
import { podIndexers, statefulSetIndexers, workspaceController } from "./workspace/index.ts";

const component = "pulumi-kubernetes-operator";
/** The component names of the Go operator's controllers. */
const eventSource = ({ kind = "" }: { readonly kind?: string }): string => `${kind.toLowerCase()}-controller`;
const ofWorkspaces = { labelSelector: `${autoComponentLabel}=workspace` };

interface OperatorContext {
  readonly options: Options;
  readonly credentials: Credentials;
  readonly log: Logger;
}

export async function operator(context: OperatorContext): Promise<Manager> {
  const { options, log } = context;
  const metrics = metricsRegistry();
  const webhooks = await createWebhooks(options, log);
  const api = await openApi(context, { metrics, webhooks });
  const { reading, client, elector, events, suspension, workspaceClasses } = api;
  const reflectors = sharedReflectors(reading, options, log);
  exposeStuckPods(metrics, { updates: reflectors.updates.store, workspaces: reflectors.workspaces.store });
  const ca = await loadCa(operatorCa({ client: reading, namespace: options.namespace, log }));
  const connections = { ca, agreements: new Agreements(), log };
  const preparing = preparations({ ...connections, wake: (workspace) => workspaceControl.enqueue(refKey(workspace)) });
  const running = runs({
    ...connections,
    wake: (runId) => updateControl.wakeRun(runId),
    unprepared: (pod, runId) => preparing.renew(pod, runId),
  });

  const githubApps = githubAppTokens({ policy: options, inherited: process.env });
  const cleared = clearances((update) => updateControl.enqueue(update));
  const references = referencePoller({ client: reading, everyMs: options.referenceCheckMs, log });
  const wakes = () => ({ owners: [stackControl, workspaceControl], updates: updateControl });
  const limited = operatorSlots(options, { reflectors, workspaceClasses, metrics, wakes });
  const approvalPolicy = policyProbe({ client, log });
  const shared = { client, events, log, metrics, workspaceClasses, references, approvalPolicy, slots: limited };
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
  const stackControl = stackController({
    ...shared,
    reflectors,
    suspension,
    pushes: webhooks.pushes,
    ...stackSettings(options, githubApps),
  });
  const programControl = programController({ ...shared, reflector: reflectors.programs });
  const receiverControl = receiverController({ ...shared, ...webhooks, reflector: reflectors.receivers });
  const recordsControl = recordsController({ ...shared, ...reflectors, maxTotalBytes: options.maxRecordsBytes });
  // Workspaces without a pod get a certificate when they wake.
  const stopFollowingCa = ca.follow(() => enqueueAll(workspaceControl, workspacesWithPods(reflectors)));

  return manager({
    reflectors: { ...reflectors, ...workspaceClasses },
    controllers: [stackControl, workspaceControl, updateControl, programControl, recordsControl, receiverControl],
    services: webhooks.serve({ store: reflectors.receivers.store, metrics, isLeading: () => elector.isCertain() }),
    elector,
    probes: options.probes,
    metricsEndpoint: { ...options.metrics, ...(options.metricsSecure && (await metricsProtection(reading))) },
    flush: () => endTerm({ references, stopFollowingCa, slots: limited, events, preparing, running }),
    log,
    metrics,
  });
}

interface ApiParts {
  readonly metrics: Registry;
  readonly webhooks: Webhooks;
}

/** What reads from the API server, and what may write to it while this process leads. */
async function openApi({ options, credentials, log }: OperatorContext, { metrics, webhooks }: ApiParts) {
  const connection = { ...connectOptions(options), onResponse: requestTelemetry({ log, metrics }) };
  const reading = connect(credentials, connection);
  if (options.upgradeCrds) await upgradeCrds({ client: reading, log });
  const suspension = suspensionSwitch({ log, metrics });
  const workspaceClasses = await classReflectors(reading, { ...watchErrors(log), timing: unhurried }, log);
  const parts = { credentials, connection, log, metrics, suspension, workspaceClasses, webhooks };
  const elector = createElector(options, parts);
  const client = connectFenced({ credentials, leadership: elector, options: connection });
  const events = eventRecorder({ client, component: eventSource, instance: options.podName, log, metrics });
  return { reading, client, elector, events, suspension, workspaceClasses };
}

interface TermParts {
  readonly references: Pick<ReferencePoller, "stop">;
  readonly stopFollowingCa: () => void;
  readonly slots: Pick<Slots, "clear">;
  readonly events: Pick<EventRecorder, "flush">;
  readonly preparing: { stop(): Promise<unknown> };
  readonly running: { stop(): Promise<unknown> };
}

/** The agents continue their work, and the next leader attaches to it. */
async function endTerm(parts: TermParts): Promise<void> {
  // The controllers have stopped, so none of their passes can follow or claim anything from here on.
  parts.references.stop();
  parts.stopFollowingCa();
  parts.slots.clear();
  await Promise.all([parts.events.flush(), parts.preparing.stop(), parts.running.stop()]);
}

async function loadCa(ca: ReturnType<typeof operatorCa>): Promise<typeof ca> {
  await ca.load();
  return ca;
}

interface SlotParts {
  readonly reflectors: ReturnType<typeof sharedReflectors>;
  readonly workspaceClasses: ClassReflectors | undefined;
  readonly metrics: Registry;
  /** The controllers of what waits for a slot. A Workspace has the name of its Stack. */
  readonly wakes: () => { readonly owners: readonly Controller[]; readonly updates: Controller };
}

function operatorSlots(options: Options, { reflectors, workspaceClasses, metrics, wakes }: SlotParts): Slots {
  const { maxConcurrentUpdates: total, maxConcurrentUpdatesPerNamespace } = options;
  const inNamespace = namespaceLimit(classReader(workspaceClasses), maxConcurrentUpdatesPerNamespace);
  const { store } = reflectors.updates;
  const wake = (workspace: Key): void => {
    const waiting = store.activeByIndex(workspaceIndex, workspace).filter((update) => !isComplete(update));
    for (const control of wakes().owners) control.enqueue(workspace);
    for (const update of waiting) wakes().updates.enqueue(keyOf(update));
  };
  return slots({ limits: { total, inNamespace }, updates: store, wake, metrics });
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
function sharedReflectors(reading: Client, options: Options, log: Logger) {
  const watched = <T extends KubeObject>(more: ReflectorOptions<T> = {}): ReflectorOptions<T> => ({
    ...watchedNamespaces(options),
    ...watchErrors(log),
    ...more,
  });
  return {
    stacks: reflector(reading, stacks, watched({ indexers: stackIndexers })),
    programs: reflector(reading, programs, watched()),
    workspaces: reflector(reading, workspaces, watched()),
    updates: reflector(
      reading,
      updates,
      watched({ indexers: { ...updateIndexers, ...ownedUpdateIndexers }, archive: restsUntil }),
    ),
    approvals: reflector(reading, approvals, watched({ indexers: approvalIndexers })),
    receivers: reflector(reading, receivers, watched({ indexers: receiverIndexers })),
    // Never their content, which would take more memory than everything else.
    records: reflector(reading, metadataOf(updateRecords), watched({ trim: trimRecord, timing: unhurried })),
    statefulSets: reflector(reading, builtin.statefulSets, watched({ ...ofWorkspaces, indexers: statefulSetIndexers })),
    pods: reflector(reading, builtin.pods, watched({ ...ofWorkspaces, indexers: podIndexers })),
  };
}

interface ElectorParts extends Pick<OperatorContext, "credentials" | "log"> {
  readonly connection: ConnectOptions;
  readonly metrics: Registry;
  readonly suspension: SuspensionSwitch;
  readonly workspaceClasses: ClassReflectors | undefined;
  readonly webhooks: Webhooks;
}

function createElector(options: Options, parts: ElectorParts): Elector {
  const { credentials, connection, log, metrics, suspension, workspaceClasses, webhooks } = parts;
  if (!options.leaderElection) return soleLeader();
  return leaseElector({
    client: connect(credentials, connection),
    lease: { namespace: options.namespace, name: leaseName },
    identity: uniqueIdentity(options.podName),
    alarm: kernelAlarm(),
    annotations: () => ({ [classesAnnotation]: workspaceClasses ? "on" : "off", ...webhooks.ownAnnotations() }),
    onAnnotations(present) {
      suspension.read(present);
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
