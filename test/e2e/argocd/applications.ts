/** Applications of Argo CD, through its API. */
import { waitFor } from "@pko/testkit";

import { kubectl } from "../harness.ts";
import type { ArgoCd } from "./argo-cd.ts";

interface Application {
  readonly status: {
    readonly sync: { readonly status: string };
    readonly health: { readonly status: string };
    readonly operationState?: { readonly phase: string; readonly message: string };
    /** One entry per sync. */
    readonly history?: readonly object[];
  };
}

interface TreeNode {
  readonly kind: string;
  readonly name: string;
  readonly health?: { readonly status: string; readonly message?: string };
  readonly networkingInfo?: { readonly externalURLs?: readonly string[] };
}

export const isHealthy = ({ status }: Application): boolean =>
  status.health.status === "Healthy" && status.sync.status === "Synced";

export const isDegraded = ({ status }: Application): boolean => status.health.status === "Degraded";

/** Compares the Application with Git, as the Refresh button does. */
export async function refresh(argoCd: ArgoCd, name: string): Promise<void> {
  await argoCd.call(`applications/${name}?refresh=normal`);
}

export async function applicationUntil(
  argoCd: ArgoCd,
  name: string,
  isSatisfied: (application: Application) => boolean,
): Promise<Application> {
  let last: Application | undefined;
  const poll = async (): Promise<Application | false> => {
    last = (await argoCd.call(`applications/${name}`)) as Application;
    await Bun.sleep(200);
    return isSatisfied(last) && last;
  };
  try {
    return await waitFor(poll, { timeoutMs: 240_000, what: `Application ${name}: ${isSatisfied.toString()}` });
  } catch (error) {
    const tree = await resourceTree(argoCd, name).catch(() => []);
    throw new Error(`${String(error)}\n${JSON.stringify([last?.status, tree], undefined, 2)}`, { cause: error });
  }
}

export async function resourceTree(argoCd: ArgoCd, name: string): Promise<readonly TreeNode[]> {
  const { nodes = [] } = (await argoCd.call(`applications/${name}/resource-tree`)) as { nodes?: readonly TreeNode[] };
  return nodes;
}

export async function stackNode(argoCd: ArgoCd, name: string): Promise<TreeNode | undefined> {
  return (await resourceTree(argoCd, name)).find(({ kind }) => kind === "Stack");
}

interface StackAction {
  readonly application: string;
  readonly namespace: string;
  readonly stack: string;
  readonly action: string;
}

export async function runAction(argoCd: ArgoCd, { application, namespace, stack, action }: StackAction): Promise<void> {
  const resource = { group: "pulumi.com", version: "v1", kind: "Stack", namespace, resourceName: stack };
  await argoCd.call(`applications/${application}/resource/actions/v2`, { ...resource, action });
}

export async function deleteApplication(argoCd: ArgoCd, name: string): Promise<void> {
  await kubectl(["delete", "application", name, "-n", argoCd.namespace, "--timeout=240s"]);
}
