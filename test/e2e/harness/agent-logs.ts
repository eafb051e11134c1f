/** The logs of agents: what a test looks for in one, and that none has an error. */
import { autoComponentLabel } from "@pko/api";
import { layout, podLogFolders, stateRoot } from "@pko/cluster";
import {
  builtin,
  isBadRequest,
  isNotFound,
  isTransient,
  podLogs,
  type ApiObject,
  type Client,
  type KubeObject,
  type ObjectRef,
  type PodLogOptions,
} from "@pko/kube";
import { waitFor } from "@pko/testkit";
import type { Pod as PodType } from "kubernetes-types/core/v1";

import { agentErrors, assertNoErrors } from "../../logs/errors.ts";
import { LogFiles } from "../../logs/log-files.ts";
import { clusterCredentials, servedKind, type Place } from "./cluster.ts";

const container = "pulumi";

type LogPlace = Pick<Place, "client" | "namespace">;
type LogOptions = Pick<PodLogOptions, "previous">;
type Pod = ApiObject<PodType>;

export async function agentLog({ namespace }: Pick<Place, "namespace">, stack: string): Promise<string> {
  return await readLog({ namespace, name: `${stack}-workspace-0` });
}

/** Fails if an agent whose pod still exists logged an error that the test does not expect, before or after a restart. */
export async function assertCleanAgentLogs(place: LogPlace, expected: readonly RegExp[] = []): Promise<void> {
  assertNoErrors(agentErrors((await agentLogs(place)).join("\n")), expected);
}

/** The logs of all agents of a namespace from now on, also of those whose pods are deleted. Only on the local cluster. */
export function agentLogFiles(namespace: string): LogFiles {
  return new LogFiles(podLogFolders(layout(stateRoot)), { namespace, container });
}

/** Fails if there is an agent whose log is not among the files: then these would show nothing. */
export async function assertFollowed({ client, namespace }: LogPlace, files: LogFiles): Promise<void> {
  const hasLog = (log: string): boolean => log !== "";
  if (files.read().some(hasLog)) return;
  if ((await agentLogs({ client, namespace })).some(hasLog))
    throw new Error("the files with the agents' logs are not found");
}

/** The logs of all workspace pods of the namespace that have one: not of pods that have not started, or whose node is lost. */
export async function agentLogs({ client, namespace }: LogPlace): Promise<string[]> {
  const labelSelector = `${autoComponentLabel}=workspace`;
  const { items } = await client.list(builtin.pods, { namespace, labelSelector });
  return (await Promise.all(items.map((pod) => logsOf(client, pod)))).flat();
}

/** An agent that crashed logged why in the container before the restart. */
async function logsOf(client: Client, pod: Pod): Promise<string[]> {
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container);
  const hasRestarted = (status?.restartCount ?? 0) > 0;
  const options: readonly LogOptions[] = hasRestarted ? [{ previous: true }, {}] : [{}];
  return await Promise.all(options.map((each) => logIfAny(client, pod, each)));
}

/** Waits for an API server or a kubelet that does not respond: its error must not count as a log without errors. */
async function logIfAny(client: Client, pod: Pod, options: LogOptions): Promise<string> {
  const { name = "", namespace = "" } = pod.metadata;
  const read = async (): Promise<{ readonly text: string }> => {
    try {
      return { text: await readLog({ name, namespace }, options) };
    } catch (error) {
      if (await isWithoutLog(client, pod, error)) return { text: "" };
      throw error;
    }
  };
  return (await waitFor(read, { what: `the log of ${name}` })).text;
}

async function isWithoutLog(client: Client, { spec }: Pod, error: unknown): Promise<boolean> {
  // The pod was deleted, or its container has not started, or what it logged before a restart was removed.
  if (isNotFound(error) || isBadRequest(error)) return true;
  return isTransient(error) && !(await isNodeReady(client, spec?.nodeName ?? ""));
}

type Node = KubeObject & {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
};

async function isNodeReady(client: Client, name: string): Promise<boolean> {
  const nodes = servedKind({ apiVersion: "v1", kind: "Node" }, { namespaced: false });
  const node: Node | undefined = await client.find(nodes, { name });
  return node?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
}

async function readLog(ref: ObjectRef, options: LogOptions = {}): Promise<string> {
  let log = "";
  for await (const chunk of podLogs(await clusterCredentials(), ref, { container, ...options })) log += chunk;
  return log;
}
