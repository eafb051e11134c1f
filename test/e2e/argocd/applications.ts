/** Applications of Argo CD, as its users see them. */
import { waitFor } from "@pko/testkit";

import { kubectl } from "../harness.ts";
import type { ArgoCd } from "./argo-cd.ts";

interface Application {
  readonly status: {
    readonly sync: { readonly status: string };
    readonly health: { readonly status: string };
    readonly operationState?: { readonly phase: string; readonly message: string };
    /** One entry a sync. */
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

/** Looks at Git first, as the button Refresh does. */
export async function refreshed(argoCd: ArgoCd, name: string): Promise<Application> {
  return (await argoCd.call(`applications/${name}?refresh=normal`)) as Application;
}

export async function applicationUntil(
  argoCd: ArgoCd,
  name: string,
  wish: (application: Application) => boolean,
): Promise<Application> {
  let last: Application | undefined;
  const satisfied = async (): Promise<Application | false> => {
    last = (await argoCd.call(`applications/${name}`)) as Application;
    await Bun.sleep(200);
    return wish(last) && last;
  };
  try {
    return await waitFor(satisfied, { timeoutMs: 240_000, what: `Application ${name}: ${wish.toString()}` });
  } catch (error) {
    const tree = await nodesOf(argoCd, name).catch(() => []);
    throw new Error(`${String(error)}\n${JSON.stringify([last?.status, tree], undefined, 2)}`, { cause: error });
  }
}

export async function nodesOf(argoCd: ArgoCd, name: string): Promise<readonly TreeNode[]> {
  const { nodes = [] } = (await argoCd.call(`applications/${name}/resource-tree`)) as { nodes?: readonly TreeNode[] };
  return nodes;
}

export async function stackNode(argoCd: ArgoCd, name: string): Promise<TreeNode | undefined> {
  return (await nodesOf(argoCd, name)).find(({ kind }) => kind === "Stack");
}

interface StackAction {
  readonly application: string;
  readonly namespace: string;
  readonly stack: string;
  readonly action: string;
}

export async function act(argoCd: ArgoCd, { application, namespace, stack, action }: StackAction): Promise<void> {
  const resource = { group: "pulumi.com", version: "v1", kind: "Stack", namespace, resourceName: stack };
  await argoCd.call(`applications/${application}/resource/actions/v2`, { ...resource, action });
}

export async function deleteApplication(argoCd: ArgoCd, name: string): Promise<void> {
  await kubectl(["delete", "application", name, "-n", argoCd.namespace, "--timeout=240s"]);
}
