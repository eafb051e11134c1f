/** The texts of `why`: what is wrong and what to do next. Pure: from data to text. */
import { leaseName, suspendAnnotation } from "@pko/api";

import { absolute, relative } from "../output/time.ts";
import type { StackFacts } from "./facts.ts";

type Named = Pick<StackFacts, "namespace" | "name">;

const stack = ({ name }: Named): string => `Stack ${name}`;
const flags = ({ namespace }: Named): string => `-n ${namespace}`;

export const commands = {
  reconcile: (of: Named): string => `kubectl pulumi reconcile ${of.name} ${flags(of)}`,
  logs: (of: Named): string => `kubectl pulumi logs ${of.name} ${flags(of)}`,
  history: (of: Named): string => `kubectl pulumi history ${of.name} ${flags(of)}`,
  edit: (of: Named): string => `kubectl edit stack ${of.name} ${flags(of)}`,
  approve: (of: Named): string => `kubectl pulumi approve ${of.name} ${flags(of)}`,
  resume: (of: Named): string => `kubectl pulumi resume ${of.name} ${flags(of)}`,
  unlock: (of: Named): string => `kubectl pulumi unlock ${of.name} ${flags(of)}`,
  drift: (of: Named): string => `kubectl pulumi drift ${of.name} ${flags(of)}`,
  watch: (of: Named): string => `kubectl pulumi watch ${of.name} ${flags(of)}`,
} as const;

export const next = {
  nothing: "Nothing: the operator continues by itself.",
  reconcile: (of: Named): string => `To try now: ${commands.reconcile(of)}`,
  logs: (of: Named): string => `To read the log of the workspace: ${commands.logs(of)}`,
  edit: (of: Named): string => `To change the spec: ${commands.edit(of)}`,
  retry: (time: string | undefined, now: number): string[] =>
    time === undefined ? [] : [`Otherwise it is retried at ${absolute(time, now)}.`],
  install: "Install the operator: see docs/operations.md, or give its namespace with --operator-namespace.",
  operatorPods: (namespace: string): string =>
    `Check its pods: kubectl get pods -n ${namespace} -l app.kubernetes.io/name=pulumi-kubernetes-operator`,
  namespace: "Delete the Stack before its namespace, or remove destroyOnFinalize from the Stack: see docs/deletion.md.",
  unprotect: (of: Named): string => `To allow the deletion, set spec.protect to false: ${commands.edit(of)}`,
  resume: (of: Named): string => `To resume: ${commands.resume(of)}`,
  resumeOperator: (namespace: string): string =>
    `To resume: kubectl annotate lease ${leaseName} -n ${namespace} ${suspendAnnotation}-`,
  approve: (of: Named): string => `To see the plan and decide: ${commands.approve(of)}`,
  unlock: (of: Named): string =>
    `If you are certain that no other update of the stack runs, remove its lock: ${commands.unlock(of)}`,
  slots: "If it waits too long, an administrator can raise maxConcurrentUpdates of the operator: see docs/limits.md.",
  policy: "An administrator has to install the admission policies of the chart or the quickstart manifest.",
  classes:
    "An administrator has to change the namespaceSelector of the classes that the message names, or the labels of the namespace.",
  classLimit:
    "Lower the resources that the message names in workspaceTemplate, or ask an administrator to raise the limit of the class.",
  rename: "Delete or rename the object that the message names, or rename the Stack.",
  inputs: "Create the object, or add the key, that the message names, in the namespace of the Stack.",
  createSource: "Create the object that the message names, in the namespace of the Stack, or correct its name.",
  source: "Check the address, the revision and the credentials of the source.",
  quota: ({ namespace }: Named): string =>
    `Free resources, or raise the quota: kubectl describe resourcequota -n ${namespace}`,
  serviceAccount: ({ namespace }: Named, account: string): string =>
    `Set another serviceAccountName, or create it: kubectl create serviceaccount ${account} -n ${namespace}`,
  rejected: "Change what the message names in workspaceTemplate, or the policy that rejects the pod.",
  capacity:
    "Add nodes, lower workspaceTemplate.spec.resources.requests, or change what the message names in the pod template.",
  image: "Correct workspaceTemplate.spec.image, or add imagePullSecrets.",
  pod: ({ namespace, name }: Named): string => `See the pod: kubectl describe pod ${name}-workspace-0 -n ${namespace}`,
  network: "Check that NetworkPolicies allow the operator to connect to port 50051 of the pod.",
  token: "Check the credentials of the backend: the Secrets of envRefs, and their expiration.",
  pending: "Set refresh: true once, or repair the state with pulumi refresh.",
  plugin: "Allow the pod to download plugins, or use an image that contains them.",
  createPulumiStack: "Create the Pulumi stack, correct spec.stack, or remove useLocalStackOnly.",
  program: "Fix the program, its configuration or its permissions, and push the change.",
  newImage: "Set a newer workspaceTemplate.spec.image.",
  waitFor: (of: Named): string => `To follow it: ${commands.watch(of)}`,
  cycle: "Remove one of the prerequisites or StackOutput references.",
  output: "Export the output in the program of that Stack, or correct the reference.",
  createStack: (name: string): string => `Create the Stack ${name}, or remove it from the prerequisites.`,
  node: "If the node is dead, follow the message. Never do so while the node is alive.",
  drift: "Change the program to match, or correct the drift with an update that refreshes.",
} as const;

export const summaries = {
  upToDate: (of: Named): string => `${stack(of)} is up to date.`,
  drifted: (of: Named): string => `${stack(of)} is up to date, but its resources have drifted.`,
  stackMissing: (of: Named): string => `There is no Stack ${of.name} in namespace ${of.namespace}.`,
  namespaceTerminating: (of: Named): string => `The namespace ${of.namespace} is being deleted.`,
  operatorAbsent: "No operator has processed the Stack, and there is no Lease of one.",
  operatorDown: (holder: string, since: string, now: number): string =>
    holder === ""
      ? "The operator is not running: its Lease has no holder."
      : `The operator is not running: ${holder} last renewed its Lease ${relative(since, now)}.`,
  operatorSuspended: "The operator is suspended, so nothing starts.",
  notObserved: (of: Named): string => `The operator has not processed the current spec of ${stack(of)}.`,
  suspended: (of: Named): string => `${stack(of)} is suspended.`,
  protected: (of: Named): string => `${stack(of)} is protected, so its deletion waits.`,
  nodeLost: (of: Named): string => `The workspace pod of ${stack(of)} does not respond, and its node may be lost.`,
  ownershipConflict: (of: Named): string => `A name that ${stack(of)} needs belongs to an object of another owner.`,
  classConflict: (of: Named): string => `More than one WorkspaceClass selects the namespace of ${stack(of)}.`,
  classLimitExceeded: (of: Named): string =>
    `The workspace pod of ${stack(of)} would exceed a limit of its WorkspaceClass.`,
  approvalPolicyMissing: (of: Named): string =>
    `${stack(of)} requires approvals, and their admission policy is missing.`,
  approvalRejected: (of: Named, by: string): string => `The changes of ${stack(of)} were rejected${by && ` by ${by}`}.`,
  awaitingApproval: (of: Named): string => `${stack(of)} waits for an approval.`,
  outsideUpdateWindow: (of: Named): string => `${stack(of)} waits for its next update window.`,
  waitingForSlot: (of: Named): string => `${stack(of)} waits until fewer updates are running.`,
  waitingForDependents: (of: Named): string => `${stack(of)} is being deleted, and waits for Stacks that depend on it.`,
  dependencyCycle: "Stacks depend on each other.",
  inputMissing: (of: Named): string => `A Secret or ConfigMap that ${stack(of)} needs is missing or incomplete.`,
  specInvalid: (of: Named): string => `The spec of ${stack(of)} is invalid.`,
  sourceUnavailable: (of: Named): string => `The program of ${stack(of)} cannot be fetched.`,
  prerequisite: (of: Named): string => `${stack(of)} waits for other Stacks.`,
  outputMissing: (of: Named): string => `${stack(of)} needs an output that another Stack does not have.`,
  locked: (of: Named): string => `Another update of the Pulumi stack of ${stack(of)} is running, or has left its lock.`,
  versionTooLow: (of: Named): string => `The Pulumi CLI in the workspace of ${stack(of)} is too old.`,
  quotaExceeded: (of: Named): string => `A quota of the namespace does not allow what ${stack(of)} needs.`,
  serviceAccountMissing: (of: Named): string =>
    `The service account of the workspace pod of ${stack(of)} does not exist.`,
  podRejected: (of: Named): string => `Admission rejects the workspace pod of ${stack(of)}.`,
  podUnschedulable: (of: Named): string => `No node can take the workspace pod of ${stack(of)}.`,
  imageNotPulled: (of: Named): string => `An image of the workspace pod of ${stack(of)} cannot be pulled.`,
  podCrashing: (of: Named): string => `A container of the workspace pod of ${stack(of)} crashes.`,
  podNotStarting: (of: Named): string => `The workspace pod of ${stack(of)} does not start.`,
  agentUnreachable: (of: Named): string => `The operator cannot connect to the workspace pod of ${stack(of)}.`,
  installationFailed: (of: Named): string => `The dependencies of the program of ${stack(of)} cannot be installed.`,
  stackNotFound: (of: Named): string => `The Pulumi stack of ${stack(of)} does not exist.`,
  workspaceFailed: (of: Named): string => `The workspace of ${stack(of)} cannot be prepared.`,
  outputsLost: (of: Named): string => `The last update of ${stack(of)} succeeded, but its outputs were not stored.`,
  updateRunning: (of: Named, type: string, since: string): string =>
    `The ${type || "update"} of ${stack(of)} is running${since && `, started ${since}`}.`,
  workspacePreparing: (of: Named): string => `${stack(of)} is being prepared for an update.`,
  failed: (of: Named, type: string): string => `The last ${type} of ${stack(of)} failed`,
  unknown: (of: Named): string => `${stack(of)} is not ready.`,
} as const;

/** By the class of a failed update, as the end of a sentence. */
export const failureTexts = {
  credentialsRejected: "because Pulumi's backend rejects the credentials",
  pendingOperations: "because an earlier update was interrupted, and the state of some resources is unknown",
  pluginMissing: "because a plugin is not available",
  policyViolation: "because a mandatory policy rejects it",
  stackNotFound: "because the Pulumi stack does not exist",
  planNotApplied: "because the approved plan no longer applies",
  unexpectedChanges: "because there are changes where none were expected",
  timedOut: "because it took longer than its timeout",
  cancelled: "because it was cancelled",
  interrupted: "because its pod or process was killed",
  programError: "because the program, or one of its resources, failed",
  updateFailed: "",
} as const;
